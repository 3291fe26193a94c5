use std::collections::BTreeSet;
use std::time::Duration;

use switchboard_schedule::{Fate, Filter, Status};

use crate::stage::{Course, Stage, every, manners, once};

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_that_are_due_in_the_same_second_are_each_delivered_once() {
    const COUNT: usize = 100_000;
    let at_once = switchboard_schedule::Manners { at_once: 8, per_group: 8, batch: 64, ..manners() };
    let stage = Stage::with(at_once, false, |_| Course::Take).await;
    for _ in 0..COUNT / 2_000 {
        futures::future::join_all((0..2_000).map(|_| stage.make(once("ada", 100)))).await;
    }
    stage.until(130.0).await;
    let arrivals = stage.arrivals();
    assert_eq!(arrivals.len(), COUNT);
    assert_eq!(arrivals.iter().map(|arrival| &arrival.key).collect::<BTreeSet<_>>().len(), COUNT);
    assert!(arrivals.iter().all(|arrival| arrival.late_ms() >= 0), "nothing is early");
    assert!(stage.most_at_once_to_all() <= 8);
    let completed = Filter { status: Some(vec![Status::Completed]), ..Filter::default() };
    assert_eq!(stage.schedules.list(&completed).await.unwrap().len(), COUNT);
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_never_answers_makes_no_other_late_and_has_its_own_places_only() {
    let stage =
        Stage::new(|delivery| if &*delivery.address.to == "abyss" { Course::Hang } else { Course::Take })
            .await;
    for _ in 0..50 {
        stage.make(every("abyss", 1)).await;
    }
    let mut healthy = Vec::new();
    for index in 0..40 {
        healthy.push(stage.make(every(&format!("agent{index}"), 1)).await);
    }
    stage.until(60.5).await;
    let arrivals = stage.arrivals();
    let reached: Vec<_> = arrivals.iter().filter(|arrival| &*arrival.to != "abyss").collect();
    assert_eq!(reached.len(), 40 * 60);
    for arrival in reached {
        assert!((0..=1).contains(&arrival.late_ms()), "{arrival:?}");
    }
    assert_eq!(stage.most_at_once("abyss"), 4, "as many as one group may have");
    for id in healthy {
        let records = stage.schedules.history(id, 100).await.unwrap();
        assert!(records.iter().all(|record| matches!(record.fate, Fate::Delivered { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_is_slow_for_long_gets_fewer_places() {
    let stage = Stage::new(|_| Course::TakeAfter(Duration::from_secs(8))).await;
    for _ in 0..100 {
        stage.make(once("abyss", 1)).await;
    }
    stage.until(200.0).await;
    // Four at once at first, two at once later.
    let by_then = |second: f64| stage.times().into_iter().filter(|time| *time < second).count();
    assert_eq!(by_then(2.0), 4);
    let later = by_then(180.0) - by_then(100.0);
    assert_eq!(later, 20, "two every eight seconds");
}
