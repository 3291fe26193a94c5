use std::collections::BTreeSet;
use std::time::Duration;

use switchboard_schedule::{Fate, Missed, Outcome, SkipReason};

use crate::stage::{Course, Stage, every, once, seconds};

#[tokio::test(start_paused = true)]
async fn what_was_made_is_there_after_a_restart_and_is_delivered_in_time() {
    let mut stage = Stage::new(|_| Course::Take).await;
    let id = stage.make(every("ada", 1)).await;
    stage.until(3.5).await;
    stage.restart(Duration::from_secs(1), Duration::ZERO).await;
    stage.until(6.5).await;
    assert_eq!(stage.times(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(stage.schedules.get(id).await.unwrap().unwrap().schedule.delivered, 6);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_ends_while_the_server_stops_is_not_made_again() {
    let mut stage = Stage::new(|_| Course::TakeAfter(Duration::from_secs(3))).await;
    let id = stage.make(once("ada", 1)).await;
    stage.until(2.0).await;
    stage.restart(Duration::from_secs(5), Duration::from_mins(1)).await;
    stage.until(120.0).await;
    assert_eq!(stage.times(), [1.0]);
    assert!(matches!(stage.schedules.history(id, 1).await.unwrap()[0].fate, Fate::Delivered { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_the_server_did_not_wait_for_is_made_again_under_the_same_key() {
    let mut stage =
        Stage::new(|delivery| if delivery.attempt == 1 { Course::Hang } else { Course::Take }).await;
    stage.make(once("ada", 1)).await;
    stage.until(2.0).await;
    stage.restart(Duration::from_secs(1), Duration::ZERO).await;
    stage.until(10.0).await;
    let arrivals = stage.arrivals();
    assert_eq!(arrivals.iter().map(|arrival| arrival.attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(arrivals[0].key, arrivals[1].key);
    assert!(arrivals[1].at_ms - arrivals[0].at_ms < 2_500, "as soon as the server is back: {arrivals:?}");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_next_try_is_tried_after_a_restart() {
    let mut stage = Stage::new(|delivery| match delivery.attempt {
        1 => Course::Say(Outcome::failed("not now")),
        _ => Course::Take,
    })
    .await;
    stage.make(once("ada", 1)).await;
    stage.until(1.1).await;
    stage.restart(Duration::ZERO, Duration::ZERO).await;
    stage.until(5.0).await;
    let arrivals = stage.arrivals();
    assert_eq!(arrivals.iter().map(|arrival| arrival.attempt).collect::<Vec<_>>(), [1, 2]);
    assert!(seconds(arrivals[1].at_ms) >= 2.0, "not before its pause is over: {arrivals:?}");
}

#[tokio::test(start_paused = true)]
async fn due_times_of_a_stopped_server_are_made_up_for_as_the_schedule_says() {
    for (missed, made_up) in [
        (Missed::Skip, vec![]),
        (Missed::Once, vec![20.0]),
        (Missed::All { max: 3, window_ms: 86_400_000 }, vec![80.0, 90.0, 100.0]),
        (Missed::All { max: 9, window_ms: 16_000 }, vec![90.0, 100.0]),
    ] {
        let mut stage = Stage::new(|_| Course::Take).await;
        let mut spec = every("ada", 10);
        spec.missed = missed;
        let id = stage.make(spec).await;
        stage.until(15.0).await;
        stage.restart(Duration::ZERO, Duration::from_secs(90)).await;
        stage.until(109.0).await;
        let due: Vec<_> = stage.arrivals()[1..].iter().map(|arrival| seconds(arrival.due_ms)).collect();
        assert_eq!(due, made_up, "{missed:?}");
        let records = stage.schedules.history(id, 100).await.unwrap();
        let skipped: u64 = records
            .iter()
            .map(|record| match record.fate {
                Fate::Skipped { why: SkipReason::Missed, count, .. } => count,
                _ => 0,
            })
            .sum();
        assert_eq!(usize::try_from(skipped).unwrap() + made_up.len(), 9, "{missed:?}: {records:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_however_often_the_server_restarts() {
    let mut stage = Stage::new(|_| Course::TakeAfter(Duration::from_millis(700))).await;
    let mut spec = every("ada", 1);
    spec.missed = Missed::All { max: 100, window_ms: 86_400_000 };
    stage.make(spec).await;
    for round in 0..20_u64 {
        stage.restart(Duration::from_millis(round * 50), Duration::from_millis(1_300 * (round % 3))).await;
        stage.until(seconds(stage.now_ms()) + 2.3).await;
    }
    stage.until(200.0).await;
    let keys: BTreeSet<_> = stage.arrivals().into_iter().map(|arrival| arrival.due_ms).collect();
    let expected: BTreeSet<_> = (1..=198).map(|second| crate::stage::BEGIN + second * 1_000).collect();
    assert!(expected.is_subset(&keys), "{:?}", expected.difference(&keys).collect::<Vec<_>>());
}
