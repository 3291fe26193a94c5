//! Entries that mean nothing, and rules with mistakes.

use switchboard_exchange::CommandError;
use switchboard_journal::{Journal as _, Seq, Snapshot, StreamId};

use crate::stage::{Add, Break, Read, Stage, entry};

#[tokio::test]
async fn an_entry_of_a_newer_version_is_refused_by_naming_both() {
    let stage = Stage::new();
    stage.journal.write(&stage.stream, &entry(r#"{"added":1}"#)).await;
    stage.journal.write(&stage.stream, r#"{"v":7,"at":"tomorrow","happenings":[]}"#).await;
    assert_eq!(
        stage.send(Read).await.unwrap_err().to_string(),
        "nothing was changed: entry 2 of stream 'counter/one' cannot be understood: it is of format version 7, this \
         program reads up to 1: run a newer switchboard"
    );
}

#[tokio::test]
async fn a_snapshot_of_a_newer_version_is_refused_by_naming_both() {
    let stage = Stage::new();
    stage.journal.write(&stage.stream, &entry(r#"{"added":1}"#)).await;
    let snapshot = Snapshot { seq: Seq::new(1), state: r#"{"v":2,"state":"new"}"#.into() };
    stage.journal.memory.save_snapshot(&stage.stream, snapshot).await.unwrap();
    let error = stage.send(Read).await.unwrap_err().to_string();
    assert!(error.contains("format version 2, this program reads up to 1"), "{error}");
}

#[tokio::test]
async fn a_damaged_entry_is_an_error_that_names_it_and_spares_other_streams() {
    for damage in
        ["", "{", "nonsense", "[]", r#"{"v":1,"at":"1970-01-01T00:00:00Z","events":[{"exploded":1}]}"#]
    {
        let stage = Stage::new();
        stage.journal.write(&stage.stream, &entry(r#"{"added":1}"#)).await;
        stage.journal.write(&stage.stream, damage).await;
        for _ in 0..2 {
            match stage.send(Add(1)).await {
                Err(CommandError::Damaged { stream, entry: 2, .. }) => assert_eq!(stream, stage.stream),
                outcome => panic!("{damage:?} gives {outcome:?}"),
            }
        }
        let other = StreamId::new("counter/two").unwrap();
        assert_eq!(stage.exchange.send(&other, Add(1), None).await.unwrap(), 1);
        // What cannot be mended can be redacted.
        stage.journal.memory.redact(&stage.stream, &[Seq::new(2)]).await.unwrap();
        assert_eq!(stage.send(Add(1)).await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_mistake_in_a_rule_fails_its_batch_and_the_stream_is_loaded_again() {
    let stage = Stage::new();
    stage.send(Add(1)).await.unwrap();
    let held = stage.hold().await;
    let before = stage.begin(Add(1)).await;
    let broken = stage.begin(Break::Deciding).await;
    stage.journal.open_gate();
    assert_eq!(held.outcome().await.unwrap(), 2);
    assert!(matches!(broken.outcome().await, Err(CommandError::Unknown(_))));
    assert!(matches!(before.outcome().await, Err(CommandError::Unknown(_))));
    assert_eq!(stage.total().await, 2);
    assert_eq!(stage.send(Add(1)).await.unwrap(), 3);
}

#[tokio::test]
async fn an_event_that_cannot_be_applied_does_not_take_the_exchange_down() {
    let stage = Stage::new();
    for _ in 0..2 {
        assert!(matches!(stage.send(Break::Applying).await, Err(CommandError::Unknown(_))));
    }
    assert!(stage.exchange.look(&stage.stream, |counter| counter.total).await.is_err());
    let other = StreamId::new("counter/two").unwrap();
    assert_eq!(stage.exchange.send(&other, Add(1), None).await.unwrap(), 1);
    stage.exchange.stop().await;
}
