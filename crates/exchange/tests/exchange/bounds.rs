//! Everything has a bound, and reaching one is an answer.

use switchboard_exchange::{CommandError, Options};
use switchboard_journal::Payload;

use crate::stage::{Add, Boast, Fate, Pad, Stage};

#[tokio::test]
async fn a_full_queue_answers_busy_and_takes_calls_again_when_there_is_room() {
    let stage = Stage::with(Options { queue: 2, ..Options::default() });
    let held = stage.hold().await;
    let waiting = [stage.begin(Add(1)).await, stage.begin(Add(1)).await];
    let outcome = stage.send(Add(1)).await;
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "stream 'counter/one' has 2 calls waiting, the most it takes: call again in a moment"
    );
    assert!(stage.exchange.look(&stage.stream, |counter| counter.total).await.is_err());
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    for call in waiting {
        call.outcome().await.unwrap();
    }
    assert_eq!(stage.send(Add(1)).await.unwrap(), 4);
}

#[tokio::test]
async fn a_batch_takes_so_many_commands() {
    let stage = Stage::with(Options { batch: 3, ..Options::default() });
    let held = stage.hold().await;
    let mut calls = Vec::new();
    for _ in 0..7 {
        calls.push(stage.begin(Add(1)).await);
    }
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    for call in calls {
        call.outcome().await.unwrap();
    }
    let sizes: Vec<usize> = stage
        .journal
        .entries(&stage.stream, 1)
        .await
        .iter()
        .map(|entry| entry.matches("added").count())
        .collect();
    assert_eq!(sizes, [3, 3, 1]);
}

#[tokio::test]
async fn a_batch_takes_four_mebibytes() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let mut calls = Vec::new();
    for _ in 0..9 {
        calls.push(stage.begin(Pad(1 << 20)).await);
    }
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    for call in calls {
        call.outcome().await.unwrap();
    }
    let entries = stage.journal.entries(&stage.stream, 1).await;
    assert_eq!(entries.iter().map(|entry| entry.len() >> 20).collect::<Vec<_>>(), [4, 4, 1]);
}

#[tokio::test]
async fn replies_that_are_remembered_count_for_the_size_of_a_batch() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let mut calls = Vec::new();
    for id in ["a", "b", "c", "d", "e"] {
        calls.push(stage.begin_as(id, Boast(1 << 20)).await);
    }
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    for call in calls {
        call.outcome().await.unwrap();
    }
    let entries = stage.journal.entries(&stage.stream, 1).await;
    assert_eq!(entries.iter().map(|entry| entry.len() >> 20).collect::<Vec<_>>(), [4, 1]);
}

#[tokio::test]
async fn a_decision_that_no_entry_holds_is_refused_alone() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let before = stage.begin(Add(1)).await;
    let large = stage.begin(Pad(Payload::MAX_BYTES)).await;
    let after = stage.begin_as("a", Add(1)).await;
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    assert!(matches!(large.outcome().await, Err(CommandError::TooLarge(_))));
    assert_eq!(before.outcome().await.unwrap(), 2);
    assert_eq!(after.outcome().await.unwrap(), 3);
    assert_eq!(stage.total().await, 3);
}

#[tokio::test]
async fn who_loses_a_hundred_races_is_told_that_the_stream_is_busy() {
    let stage = Stage::new();
    stage.journal.next(vec![Fate::Overtaken(1); 100]);
    assert!(matches!(stage.send(Add(1_000)).await, Err(CommandError::Busy { .. })));
    assert_eq!(stage.total().await, 100);
}
