//! A journal that refuses, or does not answer.

use switchboard_exchange::{CommandError, SignedDuration, Timestamp};

use crate::stage::{Add, Fate, Read, SetAlarm, Stage, settle};

#[tokio::test]
async fn while_the_journal_takes_no_writes_questions_are_answered_and_nothing_happens() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let writes = [stage.begin(Add(10)).await, stage.begin(Add(10)).await];
    let read = stage.begin(Read).await;
    let refused = stage.begin(Add(-1)).await;
    stage.journal.let_through(1);
    assert_eq!(held.outcome().await.unwrap(), 1);
    stage.journal.next([Fate::Unavailable]);
    stage.journal.open_gate();
    for write in writes {
        assert!(matches!(write.outcome().await, Err(CommandError::Unavailable(_))));
    }
    assert_eq!(read.outcome().await.unwrap(), 1);
    assert!(matches!(refused.outcome().await, Err(CommandError::Rejected(_))));
    assert_eq!(stage.send(Add(1)).await.unwrap(), 2);
    assert_eq!(stage.restart().await.total().await, 2);
}

#[tokio::test]
async fn while_the_journal_takes_no_writes_a_repeated_call_still_gets_its_first_reply() {
    let stage = Stage::new();
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    let held = stage.hold().await;
    let write = stage.begin(Add(10)).await;
    let repeated = stage.begin_as("a", Add(5)).await;
    stage.journal.let_through(1);
    held.outcome().await.unwrap();
    stage.journal.next([Fate::Unavailable]);
    stage.journal.open_gate();
    assert!(matches!(write.outcome().await, Err(CommandError::Unavailable(_))));
    assert_eq!(repeated.outcome().await.unwrap(), 5);
}

#[tokio::test]
async fn a_call_repeated_within_a_batch_that_failed_fails_with_it() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let calls = [stage.begin_as("a", Add(5)).await, stage.begin_as("a", Add(5)).await];
    stage.journal.let_through(1);
    held.outcome().await.unwrap();
    stage.journal.next([Fate::Unavailable]);
    stage.journal.open_gate();
    for call in calls {
        assert!(matches!(call.outcome().await, Err(CommandError::Unavailable(_))));
    }
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 6);
}

#[tokio::test]
async fn an_append_that_nobody_knows_of_is_found_out_by_its_command_id() {
    let stage = Stage::new();
    stage.journal.next([Fate::UnknownWritten]);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(stage.total().await, 5);
}

#[tokio::test]
async fn an_append_that_nobody_knows_of_is_not_repeated_for_a_call_without_id() {
    let stage = Stage::new();
    stage.journal.next([Fate::UnknownWritten]);
    assert!(matches!(stage.send(Add(5)).await, Err(CommandError::Unknown(_))));
    assert_eq!(stage.total().await, 5);
    stage.journal.next([Fate::UnknownLost]);
    assert!(matches!(stage.send(Add(5)).await, Err(CommandError::Unknown(_))));
    assert_eq!(stage.total().await, 5);
}

#[tokio::test]
async fn repeating_a_call_of_unknown_fate_has_one_effect() {
    for fate in [Fate::UnknownLost, Fate::UnknownWritten] {
        let stage = Stage::new();
        let held = stage.hold().await;
        let calls = [stage.begin_as("a", Add(5)).await, stage.begin_as("b", Add(7)).await];
        stage.journal.let_through(1);
        held.outcome().await.unwrap();
        stage.journal.next([fate.clone()]);
        stage.journal.open_gate();
        for call in calls {
            let outcome = call.outcome().await;
            assert!(outcome.is_ok() == matches!(fate, Fate::UnknownWritten), "{fate:?} gives {outcome:?}");
        }
        assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 6);
        assert_eq!(stage.send_as("b", Add(7)).await.unwrap(), 13);
        assert_eq!(stage.total().await, 13);
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_read_back_answers_nothing_from_memory_until_it_can() {
    let stage = Stage::new();
    stage.send(Add(1)).await.unwrap();
    let held = stage.hold().await;
    let batch = [stage.begin(Add(10)).await, stage.begin(Add(10)).await];
    stage.journal.let_through(1);
    held.outcome().await.unwrap();
    stage.journal.next([Fate::Unavailable]);
    stage.journal.set_unreadable(true);
    stage.journal.open_gate();
    for call in batch {
        assert!(call.outcome().await.is_err());
    }
    assert!(matches!(stage.send(Read).await, Err(CommandError::Unreadable(_))));
    assert!(stage.exchange.look(&stage.stream, |counter| counter.total).await.is_err());
    stage.journal.set_unreadable(false);
    assert_eq!(stage.total().await, 2);
    assert_eq!(stage.exchange.look(&stage.stream, |counter| counter.total).await.unwrap(), 2);
}

#[tokio::test]
async fn a_deadline_that_cannot_be_acted_on_is_tried_again_after_a_pause() {
    let stage = Stage::new();
    stage.send(SetAlarm(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(10))).await.unwrap();
    stage.journal.next([Fate::Unavailable]);
    stage.clock.advance(10);
    stage.journal.begun(2).await;
    settle().await;
    assert_eq!(stage.journal.appends(), 2, "it waits before it tries again");
    stage.clock.advance(1);
    stage.journal.begun(3).await;
    settle().await;
    assert_eq!(stage.exchange.look(&stage.stream, |counter| counter.rung).await.unwrap(), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_loaded_says_so_and_can_be_loaded_later() {
    let stage = Stage::new();
    stage.send(Add(1)).await.unwrap();
    let stage = stage.restart().await;
    stage.journal.set_unreadable(true);
    assert!(matches!(stage.send(Read).await, Err(CommandError::Unreadable(_))));
    stage.journal.set_unreadable(false);
    assert_eq!(stage.total().await, 1);
}
