use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use switchboard_schedule::Outcome;

use crate::stage::{Course, KIND, Stage, every, manners, once, seconds};

#[tokio::test(start_paused = true)]
async fn what_is_delivered_by_passes_waits_for_one() {
    let stage = Stage::with(manners(), true, |_| Course::Take).await;
    let id = stage.make(once("ada", 1)).await;
    stage.make(once("bob", 100)).await;
    stage.until(10.0).await;
    assert!(stage.arrivals().is_empty());
    let passed = stage.schedules.pass(KIND).await.unwrap();
    assert_eq!(stage.times(), [10.0]);
    assert_eq!(passed.iter().map(|entry| (entry.id, entry.delivered)).collect::<Vec<_>>(), [(id, true)]);
    assert!(stage.schedules.pass(KIND).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_a_pass_is_tried_in_the_next() {
    let works = Arc::new(AtomicBool::new(false));
    let does = works.clone();
    let stage = Stage::with(manners(), true, move |_| {
        if does.load(Relaxed) { Course::Take } else { Course::Say(Outcome::failed("not now")) }
    })
    .await;
    stage.make(once("ada", 1)).await;
    stage.until(2.0).await;
    assert!(!stage.schedules.pass(KIND).await.unwrap()[0].delivered);
    stage.until(100.0).await;
    assert_eq!(stage.arrivals().len(), 1);
    works.store(true, Relaxed);
    assert!(stage.schedules.pass(KIND).await.unwrap()[0].delivered);
    let arrivals = stage.arrivals();
    assert_eq!(arrivals[0].key, arrivals[1].key);
}

#[tokio::test(start_paused = true)]
async fn a_pass_says_of_everything_that_was_due_what_became_of_it_however_much_it_is() {
    let stage = Stage::with(manners(), true, |_| Course::Take).await;
    let mut spec = every("ada", 1);
    spec.max_repetitions = 2.try_into().ok();
    let repeated = stage.make(spec).await;
    let made = futures::future::join_all((0..10_000).map(|_| stage.make(once("ada", 1)))).await;
    stage.until(2.5).await;
    let passed = stage.schedules.pass(KIND).await.unwrap();
    assert_eq!(passed.len(), made.len() + 2);
    assert!(passed.iter().all(|entry| entry.delivered));
    let last = passed.iter().rfind(|entry| entry.id == repeated).unwrap();
    assert_eq!((last.repetitions, last.completed, last.next_ms.map(seconds)), (2, true, None));
}
