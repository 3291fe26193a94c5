use std::collections::BTreeSet;
use std::time::Duration;

use switchboard_schedule::{Fate, Outcome, Overlap, Retry, Status};

use crate::stage::{Course, Stage, every, once, seconds};

#[tokio::test(start_paused = true)]
async fn what_is_due_is_delivered_at_its_time() {
    let stage = Stage::new(|_| Course::Take).await;
    stage.make(once("ada", 10)).await;
    stage.make(every("bob", 1)).await;
    stage.until(30.5).await;
    let arrivals = stage.arrivals();
    assert_eq!(arrivals.iter().filter(|arrival| &*arrival.to == "ada").count(), 1);
    assert_eq!(arrivals.iter().filter(|arrival| &*arrival.to == "bob").count(), 30);
    for arrival in arrivals {
        assert!((0..=1).contains(&arrival.late_ms()), "{arrival:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_tried_again_after_growing_pauses_under_the_same_key() {
    let stage = Stage::new(|_| Course::Say(Outcome::failed("not now"))).await;
    let id = stage.make(once("ada", 1)).await;
    stage.until(60.0).await;
    let arrivals = stage.arrivals();
    assert_eq!(arrivals.iter().map(|arrival| arrival.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(arrivals.iter().map(|arrival| &arrival.key).collect::<BTreeSet<_>>().len(), 1);
    for (pause, pair) in [1_000, 2_000, 4_000].into_iter().zip(arrivals.windows(2)) {
        let waited = pair[1].at_ms - pair[0].at_ms;
        assert!((pause..=pause + pause / 4 + 1).contains(&waited), "{waited} ms, not {pause}");
    }
    let record = &stage.schedules.history(id, 10).await.unwrap()[0];
    assert_eq!((record.attempts, &record.fate), (4, &Fate::Dead { error: "not now".into() }));
    assert_eq!(stage.schedules.get(id).await.unwrap().unwrap().schedule.status, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_says_when_is_tried_again_then() {
    let stage = Stage::new(|delivery| match delivery.attempt {
        1 => Course::Say(Outcome::Failed {
            error: "busy".to_owned(),
            permanent: false,
            retry_after: Some(Duration::from_secs(30)),
        }),
        _ => Course::Take,
    })
    .await;
    stage.make(once("ada", 1)).await;
    stage.until(60.0).await;
    assert_eq!(stage.times(), [1.0, 31.0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_target_refuses_is_not_tried_again() {
    let stage = Stage::new(|_| Course::Say(Outcome::refused("never"))).await;
    let id = stage.make(once("ada", 1)).await;
    stage.until(600.0).await;
    assert_eq!(stage.times(), [1.0]);
    let record = &stage.schedules.history(id, 10).await.unwrap()[0];
    assert_eq!(record.fate, Fate::Dead { error: "never".into() });
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_an_answer_is_over_after_the_time_a_target_has() {
    let stage = Stage::new(|delivery| if delivery.attempt == 1 { Course::Hang } else { Course::Take }).await;
    let mut spec = once("ada", 1);
    spec.more_mut().retry = Some(Retry { first_ms: 1_000, factor: 1, max_ms: 1_000, attempts: Some(2) });
    let id = stage.make(spec).await;
    stage.until(60.0).await;
    let times = stage.times();
    assert_eq!(times.len(), 2);
    assert!((12.0..12.3).contains(&times[1]), "a timeout of 10 s and a pause of 1 s: {times:?}");
    assert!(matches!(stage.schedules.history(id, 10).await.unwrap()[0].fate, Fate::Delivered { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_may_not_overlap_waits_or_is_skipped_and_what_may_does_not() {
    for (overlap, expected) in [
        (Overlap::Queue, vec![2.0, 5.0, 8.0]),
        (Overlap::Skip, vec![2.0, 6.0, 10.0]),
        (Overlap::Allow, vec![2.0, 4.0, 6.0, 8.0, 10.0]),
    ] {
        let stage = Stage::new(|_| Course::TakeAfter(Duration::from_secs(3))).await;
        let mut spec = every("ada", 2);
        spec.overlap = overlap;
        stage.make(spec).await;
        stage.until(10.5).await;
        assert_eq!(stage.times(), expected, "{overlap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_as_many_deliveries_as_were_asked_for_a_schedule_is_completed() {
    let stage = Stage::new(|_| Course::Take).await;
    let mut spec = every("ada", 1);
    spec.max_repetitions = 3.try_into().ok();
    let id = stage.make(spec).await;
    stage.until(60.0).await;
    assert_eq!(stage.times(), [1.0, 2.0, 3.0]);
    let schedule = stage.schedules.get(id).await.unwrap().unwrap().schedule;
    assert_eq!((schedule.status, schedule.delivered), (Status::Completed, 3));
    assert_eq!(schedule.last_run_ms.map(seconds), Some(3.0));
}
