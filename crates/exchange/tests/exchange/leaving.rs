//! Streams leave memory and come back; exchanges stop.

use std::num::NonZeroUsize;

use switchboard_exchange::{CommandError, Options, SignedDuration, Timestamp};
use switchboard_journal::{Journal as _, ReadError, Seq, StreamId};

use crate::stage::{Add, Read, SetAlarm, Stage, settle};

fn idle_after_a_minute() -> Options {
    Options { idle_after: SignedDuration::from_secs(60), ..Options::default() }
}

#[tokio::test]
async fn an_idle_stream_leaves_memory_and_comes_back() {
    let stage = Stage::with(idle_after_a_minute());
    stage.send(Add(5)).await.unwrap();
    stage.clock.advance(59);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 1);
    assert_eq!(stage.total().await, 5);
    stage.clock.advance(59);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 1, "the call moved its leaving");
    stage.clock.advance(1);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 0);
    assert_eq!(stage.send(Add(1)).await.unwrap(), 6);
    assert_eq!(stage.exchange.live_streams(), 1);
}

#[tokio::test]
async fn a_stream_with_a_deadline_or_somebody_waiting_does_not_leave() {
    let stage = Stage::with(idle_after_a_minute());
    stage.send(SetAlarm(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000))).await.unwrap();
    let waited_for = StreamId::new("counter/two").unwrap();
    let (exchange, stream) = (stage.exchange.clone(), waited_for.clone());
    let waiting =
        tokio::spawn(
            async move { exchange.wait_for(&stream, |counter| (counter.total > 0).then_some(())).await },
        );
    settle().await;
    stage.clock.advance(500);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 2);
    stage.exchange.send(&waited_for, Add(1), None).await.unwrap();
    waiting.await.unwrap().unwrap();
    stage.clock.advance(60);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 1);
    // The alarm rings, then nothing holds the other one either.
    stage.clock.advance(440);
    settle().await;
    stage.clock.advance(60);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 0);
    assert_eq!(stage.exchange.look(&stage.stream, |counter| counter.rung).await.unwrap(), 1);
}

#[tokio::test]
async fn a_stream_that_leaves_with_a_long_past_leaves_a_snapshot() {
    let stage = Stage::with(Options { snapshot_on_leave: 3, ..idle_after_a_minute() });
    for _ in 0..2 {
        stage.send(Add(1)).await.unwrap();
    }
    stage.clock.advance(60);
    settle().await;
    assert_eq!(stage.journal.memory.load_snapshot(&stage.stream).await.unwrap(), None);
    stage.send(Add(1)).await.unwrap();
    stage.exchange.stop().await;
    let snapshot = stage.journal.memory.load_snapshot(&stage.stream).await.unwrap().unwrap();
    // Coming back left an entry of its own: what waited before is over.
    assert_eq!(snapshot.seq.get(), 4);
    assert!(snapshot.state.contains(r#""total":3"#), "{}", snapshot.state);
}

#[tokio::test]
async fn a_stream_comes_back_from_its_snapshot_and_the_entries_after_it() {
    let stage = Stage::with(Options {
        snapshot_every: 5,
        snapshot_on_leave: 1_000,
        keep_entries: 0,
        ..Options::default()
    });
    for _ in 0..12 {
        stage.send(Add(1)).await.unwrap();
        settle().await;
    }
    let snapshot = stage.journal.memory.load_snapshot(&stage.stream).await.unwrap().unwrap();
    assert_eq!(snapshot.seq.get(), 10);
    let past = stage.journal.memory.read(&stage.stream, Seq::START, NonZeroUsize::MIN).await;
    assert!(matches!(past, Err(ReadError::Trimmed { trimmed, .. }) if trimmed.get() == 10));
    assert_eq!(stage.restart().await.total().await, 12);
}

#[tokio::test]
async fn entries_before_a_snapshot_are_kept_for_those_who_resume() {
    let stage = Stage::with(Options { snapshot_every: 10, keep_entries: 4, ..Options::default() });
    for _ in 0..10 {
        stage.send(Add(1)).await.unwrap();
    }
    settle().await;
    assert_eq!(stage.journal.entries(&stage.stream, 6).await.len(), 4);
    let gone = stage.journal.memory.read(&stage.stream, Seq::new(5), NonZeroUsize::MIN).await;
    assert!(matches!(gone, Err(ReadError::Trimmed { .. })));
}

#[tokio::test]
async fn stopping_answers_all_who_wait_and_takes_nobody_else() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let waiting = [stage.begin(Add(1)).await, stage.begin(Add(1)).await];
    let (exchange, stream) = (stage.exchange.clone(), stage.stream.clone());
    let condition = tokio::spawn(async move {
        exchange.wait_for(&stream, |counter| (counter.total > 99).then_some(())).await
    });
    let exchange = stage.exchange.clone();
    let stopping = tokio::spawn(async move { exchange.stop().await });
    settle().await;
    assert!(!stopping.is_finished());
    let other = StreamId::new("counter/two").unwrap();
    assert!(matches!(stage.exchange.send(&other, Read, None).await, Err(CommandError::Stopping)));

    stage.journal.open_gate();
    stopping.await.unwrap();
    assert_eq!(held.outcome().await.unwrap(), 1);
    for (call, total) in waiting.into_iter().zip(2..) {
        assert_eq!(call.outcome().await.unwrap(), total);
    }
    assert!(matches!(condition.await.unwrap(), Err(CommandError::Stopping)));
    assert!(matches!(stage.send(Add(1)).await, Err(CommandError::Stopping)));
    assert_eq!(stage.exchange.live_streams(), 0);
    assert_eq!(stage.restart().await.total().await, 3);
}

#[tokio::test]
async fn stopping_twice_or_with_nothing_live_returns() {
    let stage = Stage::new();
    stage.exchange.stop().await;
    stage.exchange.stop().await;
    assert!(matches!(stage.send(Read).await, Err(CommandError::Stopping)));
}

#[tokio::test]
async fn what_waited_for_a_process_that_is_gone_is_over_when_the_stream_comes_back() {
    let stage = Stage::new();
    stage.send(Add(1)).await.unwrap();
    let stage = stage.restart().await;
    assert_eq!(stage.exchange.look(&stage.stream, |counter| counter.abandoned).await.unwrap(), 1);
}
