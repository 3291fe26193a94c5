//! The machine is woken when it wants to be.

use switchboard_exchange::{Clock as _, SignedDuration, Timestamp};

use crate::stage::{Read, SetAlarm, Stage, settle};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

async fn rung(stage: &Stage) -> u32 {
    stage.exchange.look(&stage.stream, |counter| counter.rung).await.unwrap()
}

#[tokio::test]
async fn a_deadline_is_acted_on_without_anybody_calling() {
    let stage = Stage::new();
    stage.send(SetAlarm(at(10))).await.unwrap();
    stage.clock.advance(9);
    settle().await;
    assert_eq!(stage.journal.appends(), 1);
    stage.clock.advance(1);
    stage.journal.begun(2).await;
    assert_eq!(stage.journal.entries(&stage.stream, 1).await.len(), 1);
}

#[tokio::test]
async fn a_command_at_the_deadline_sees_what_the_deadline_brought() {
    let stage = Stage::new();
    stage.send(SetAlarm(at(10))).await.unwrap();
    let held = stage.hold().await;
    let behind = stage.begin(SetAlarm(at(20))).await;
    stage.clock.advance(10);
    stage.journal.open_gate();
    held.outcome().await.unwrap();
    assert_eq!(behind.outcome().await.unwrap(), 1);
}

#[tokio::test]
async fn a_later_deadline_takes_the_place_of_an_earlier_one() {
    let stage = Stage::new();
    stage.send(SetAlarm(at(10))).await.unwrap();
    stage.send(SetAlarm(at(20))).await.unwrap();
    stage.clock.advance(15);
    assert_eq!(rung(&stage).await, 0);
    stage.clock.advance(5);
    assert_eq!(rung(&stage).await, 1);
}

#[tokio::test]
async fn a_deadline_that_passed_while_nobody_served_is_acted_on_at_once() {
    let stage = Stage::new();
    stage.send(SetAlarm(at(10))).await.unwrap();
    stage.exchange.stop().await;
    stage.clock.advance(100);
    let stage = stage.restart().await;
    assert_eq!(stage.send(Read).await.unwrap(), 0);
    assert_eq!(rung(&stage).await, 1);
    assert_eq!(stage.clock.now(), at(100));
}

#[tokio::test]
async fn a_clock_that_goes_back_harms_nothing() {
    let stage = Stage::new();
    stage.clock.advance(100);
    stage.send(SetAlarm(at(110))).await.unwrap();
    stage.clock.advance(-50);
    assert_eq!(rung(&stage).await, 0);
    stage.clock.advance(60);
    settle().await;
    assert_eq!(rung(&stage).await, 1);
}
