//! A reply comes once its events are durable.

use switchboard_exchange::CommandError;
use switchboard_journal::Journal as _;

use crate::stage::{Add, Fate, Read, Refused, Stage, settle};

#[tokio::test]
async fn a_reply_waits_for_its_entry_and_so_does_everybody_who_would_see_it() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let read = stage.begin(Read).await;
    let exchange = stage.exchange.clone();
    let stream = stage.stream.clone();
    let look = tokio::spawn(async move { exchange.look(&stream, |counter| counter.total).await.unwrap() });
    assert!(!held.is_answered().await && !read.is_answered().await && !look.is_finished());

    stage.journal.let_through(1);
    assert_eq!(held.outcome().await.unwrap(), 1);
    assert_eq!(read.outcome().await.unwrap(), 1);
    assert_eq!(look.await.unwrap(), 1);
}

#[tokio::test]
async fn commands_that_wait_share_one_entry_and_see_each_other_in_order() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let mut begun = Vec::new();
    for _ in 0..10 {
        begun.push(stage.begin(Add(1)).await);
    }
    stage.journal.let_through(2);
    assert_eq!(held.outcome().await.unwrap(), 1);
    for (call, total) in begun.into_iter().zip(2..) {
        assert_eq!(call.outcome().await.unwrap(), total);
    }
    assert_eq!(stage.journal.appends(), 2);
    let entries = stage.journal.entries(&stage.stream, 1).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].matches("added").count(), 10);
}

#[tokio::test]
async fn a_question_appends_nothing() {
    let stage = Stage::new();
    assert_eq!(stage.send(Read).await.unwrap(), 0);
    assert_eq!(stage.send(Add(0)).await.unwrap(), 0);
    assert!(matches!(stage.send(Add(-1)).await, Err(CommandError::Rejected(Refused))));
    assert_eq!(stage.journal.appends(), 0);
    assert_eq!(stage.exchange.look(&stage.stream, |counter| counter.noted).await.unwrap(), 2);
}

#[tokio::test]
async fn a_command_takes_effect_also_if_its_caller_left() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let begun = stage.begin(Add(10)).await;
    begun.drop_caller().await;
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    assert_eq!(stage.total().await, 11);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let stage = Stage::new();
    for number in 1..=5 {
        stage.send(Add(number)).await.unwrap();
    }
    assert_eq!(stage.restart().await.total().await, 15);
}

#[tokio::test]
async fn streams_do_not_wait_for_each_other() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let other = switchboard_journal::StreamId::new("counter/two").unwrap();
    assert_eq!(stage.exchange.send(&other, Read, None).await.unwrap(), 0);
    assert!(!held.is_answered().await);
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    assert_eq!(stage.exchange.live_streams(), 2);
}

#[tokio::test]
async fn a_lost_race_is_decided_again() {
    let stage = Stage::new();
    stage.journal.next([Fate::Overtaken(100)]);
    assert_eq!(stage.send(Add(1)).await.unwrap(), 101);
    assert_eq!(stage.journal.appends(), 2);
    assert_eq!(stage.journal.memory.head(&stage.stream).await.unwrap().get(), 2);
}

#[tokio::test]
async fn a_batch_that_lost_the_race_is_decided_again_and_each_call_is_noted_once() {
    let stage = Stage::new();
    let held = stage.hold().await;
    let begun = [stage.begin(Add(1)).await, stage.begin(Add(0)).await, stage.begin(Add(1)).await];
    stage.journal.let_through(1);
    assert_eq!(held.outcome().await.unwrap(), 1);
    stage.journal.next([Fate::Overtaken(100), Fate::Overtaken(1_000)]);
    stage.journal.open_gate();
    let mut totals = Vec::new();
    for call in begun {
        totals.push(call.outcome().await.unwrap());
    }
    assert_eq!(stage.exchange.look(&stage.stream, |counter| counter.noted).await.unwrap(), 4);
    assert_eq!(totals, [1_102, 1_102, 1_103]);
}

#[tokio::test]
async fn who_waits_for_a_condition_learns_of_it_once_it_is_durable() {
    let stage = Stage::new();
    let (exchange, stream) = (stage.exchange.clone(), stage.stream.clone());
    let waiting = tokio::spawn(async move {
        exchange.wait_for(&stream, |counter| (counter.total >= 2).then_some(counter.total)).await.unwrap()
    });
    stage.send(Add(1)).await.unwrap();
    settle().await;
    assert!(!waiting.is_finished());
    let appends = stage.journal.appends();
    stage.journal.close_gate();
    let held = stage.begin(Add(1)).await;
    stage.journal.begun(appends + 1).await;
    settle().await;
    assert!(!waiting.is_finished());
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    assert_eq!(waiting.await.unwrap(), 2);
}
