//! A command with an id takes effect once.

use switchboard_exchange::{CommandError, CommandId, Options, SignedDuration};
use switchboard_journal::Seq;

use crate::stage::{Add, Boast, Read, Stage};

#[tokio::test]
async fn a_repeated_call_has_no_second_effect_and_gets_the_first_reply() {
    let stage = Stage::new();
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(stage.send(Add(1)).await.unwrap(), 6);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(stage.send_as("b", Add(5)).await.unwrap(), 11);
    assert_eq!(stage.total().await, 11);
}

#[tokio::test]
async fn a_call_repeated_while_the_first_is_on_its_way_gets_the_first_reply() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let calls = [stage.begin_as("a", Add(5)).await, stage.begin_as("a", Add(5)).await];
    stage.journal.let_through(1);
    let late = stage.begin_as("a", Add(5)).await;
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    for call in calls {
        assert_eq!(call.outcome().await.unwrap(), 6);
    }
    assert_eq!(late.outcome().await.unwrap(), 6);
    assert_eq!(stage.total().await, 6);
}

#[tokio::test]
async fn a_repeated_call_gets_the_first_reply_after_a_restart() {
    let stage = Stage::new();
    stage.send_as("a", Add(5)).await.unwrap();
    stage.send(Add(1)).await.unwrap();
    let stage = stage.restart().await;
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(stage.total().await, 6);
}

#[tokio::test]
async fn a_repeated_call_gets_the_first_reply_from_a_snapshot() {
    let stage = Stage::with(Options { snapshot_every: 1, keep_entries: 0, ..Options::default() });
    stage.send_as("a", Add(5)).await.unwrap();
    stage.send(Add(1)).await.unwrap();
    let stage = stage.restart().await;
    let trimmed = stage.exchange.watch(&stage.stream, Seq::START).await.unwrap();
    let first = futures::StreamExt::into_future(trimmed).await.0.unwrap();
    assert!(first.is_err(), "the entry with the first reply is gone");
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(stage.total().await, 6);
}

#[tokio::test]
async fn an_id_is_not_lent_to_another_command() {
    let stage = Stage::new();
    stage.send_as("a", Add(5)).await.unwrap();
    let outcome = stage.send_as("a", Boast(3)).await;
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "command id 'a' was used for 'add' and cannot be used for 'boast'"
    );
    assert_eq!(stage.total().await, 5);
}

#[tokio::test]
async fn what_was_refused_or_changed_nothing_is_decided_anew() {
    let stage = Stage::new();
    assert!(matches!(stage.send_as("a", Add(-1)).await, Err(CommandError::Rejected(_))));
    assert_eq!(stage.send_as("a", Read).await.unwrap(), 0);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
}

#[tokio::test]
async fn an_id_is_forgotten_after_the_window() {
    let stage = Stage::with(Options { reply_window: SignedDuration::from_secs(60), ..Options::default() });
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    stage.clock.advance(60);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 5);
    stage.clock.advance(1);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 10);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 10);
}

#[tokio::test]
async fn an_id_used_again_after_the_window_is_remembered_for_a_whole_window_also_after_a_restart() {
    let stage = Stage::with(Options { reply_window: SignedDuration::from_secs(60), ..Options::default() });
    stage.send_as("a", Add(5)).await.unwrap();
    stage.clock.advance(61);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 10);
    let stage = stage.restart().await;
    stage.clock.advance(30);
    assert_eq!(stage.send_as("a", Add(5)).await.unwrap(), 10);
    assert_eq!(stage.total().await, 10);
}

#[tokio::test]
async fn the_latest_4096_ids_of_a_stream_are_remembered() {
    let stage = Stage::new();
    for number in 0..4_098 {
        stage.send_as(&number.to_string(), Add(1)).await.unwrap();
    }
    assert_eq!(stage.send_as("4097", Add(1)).await.unwrap(), 4_098);
    assert_eq!(stage.send_as("2", Add(1)).await.unwrap(), 3);
    assert_eq!(stage.send_as("0", Add(1)).await.unwrap(), 4_099);
}

#[test]
fn a_command_id_has_1_to_128_bytes() {
    assert!(CommandId::new("x".repeat(128)).is_ok());
    assert_eq!(
        CommandId::new("").unwrap_err().to_string(),
        "a command id has 1 to 128 bytes, this one has 0"
    );
    assert!(CommandId::new("é".repeat(65)).is_err());
}
