use std::time::Duration;

use switchboard_exchange::{CommandError, CommandId};
use switchboard_schedule::{
    Cancelled, Change, Fate, Filter, Message, Outcome, Rejection, SkipReason, Status,
};

use crate::stage::{BEGIN, Course, KIND, Stage, every, once};

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_in_time_is_not_delivered() {
    let stage = Stage::new(|_| Course::Take).await;
    let id = stage.make(once("ada", 10)).await;
    // Claimed a moment ahead of its due time already.
    stage.until(9.9).await;
    assert_eq!(stage.schedules.cancel(id, None).await.unwrap(), Cancelled::Now);
    assert_eq!(stage.schedules.cancel(id, None).await.unwrap(), Cancelled::Before);
    stage.until(60.0).await;
    assert!(stage.arrivals().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_is_under_way_when_its_schedule_is_cancelled_still_counts_and_is_the_last() {
    let stage = Stage::new(|_| Course::TakeAfter(Duration::from_secs(5))).await;
    let id = stage.make(every("ada", 2)).await;
    stage.until(5.0).await;
    stage.schedules.cancel(id, None).await.unwrap();
    stage.until(60.0).await;
    assert_eq!(stage.times(), [2.0]);
    let records = stage.schedules.history(id, 10).await.unwrap();
    let fate =
        |second: i64| &records.iter().find(|record| record.due_ms == BEGIN + second * 1_000).unwrap().fate;
    assert!(matches!(fate(2), Fate::Delivered { .. }));
    assert!(matches!(fate(4), Fate::Skipped { why: SkipReason::Cancelled, .. }));
    assert_eq!(stage.schedules.get(id).await.unwrap().unwrap().schedule.delivered, 1);
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_not_tried_again_once_its_schedule_is_cancelled() {
    let stage = Stage::new(|_| Course::Say(Outcome::failed("not now"))).await;
    let id = stage.make(once("ada", 1)).await;
    stage.until(1.5).await;
    stage.schedules.cancel(id, None).await.unwrap();
    stage.until(60.0).await;
    assert_eq!(stage.times(), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_forgotten() {
    let stage = Stage::new(|_| Course::Take).await;
    let id = stage.make(every("ada", 1)).await;
    stage.until(2.5).await;
    stage.schedules.delete(id, None).await.unwrap();
    stage.until(9.5).await;
    assert_eq!(stage.arrivals().len(), 2);
    assert_eq!(stage.schedules.get(id).await.unwrap(), None);
    assert!(stage.schedules.history(id, 10).await.unwrap().is_empty());
    let again = stage.schedules.pause(id, None).await;
    assert!(matches!(again, Err(CommandError::Rejected(Rejection::Unknown { .. }))));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_delivered_during_a_pause_and_its_due_times_are_not_made_up_for() {
    let stage = Stage::new(|_| Course::Take).await;
    let id = stage.make(every("ada", 1)).await;
    stage.until(2.5).await;
    stage.schedules.pause(id, None).await.unwrap();
    stage.until(10.5).await;
    stage.schedules.resume(id, None).await.unwrap();
    stage.until(12.5).await;
    assert_eq!(stage.times(), [1.0, 2.0, 11.0, 12.0]);
    let records = stage.schedules.history(id, 10).await.unwrap();
    assert!(
        records
            .iter()
            .any(|record| matches!(record.fate, Fate::Skipped { why: SkipReason::Paused, count: 8, .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn run_now_delivers_at_once_and_moves_no_due_time() {
    let stage = Stage::new(|_| Course::Take).await;
    let id = stage.make(every("ada", 10)).await;
    stage.until(3.0).await;
    let call = Some(CommandId::new("once").unwrap());
    let occurrence = stage.schedules.run_now(id, call.clone()).await.unwrap();
    assert_eq!(stage.schedules.run_now(id, call).await.unwrap(), occurrence, "a repetition is the same");
    let record = stage.schedules.settled(occurrence).await.unwrap().unwrap();
    assert!(matches!(record.fate, Fate::Delivered { .. }));
    stage.until(10.5).await;
    assert_eq!(stage.times(), [3.0, 10.0]);
    assert_eq!(stage.schedules.get(id).await.unwrap().unwrap().schedule.delivered, 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_counts_for_what_is_not_due_yet() {
    let stage = Stage::new(|_| Course::Take).await;
    let id = stage.make(once("ada", 10)).await;
    stage.until(9.9).await;
    let timing = Some((once("ada", 20).timing, "later".into()));
    let change = Change { timing, message: Some(Message::Text("now".into())), ..Change::default() };
    stage.schedules.update(id, change, None).await.unwrap();
    stage.until(60.0).await;
    assert_eq!(stage.times(), [20.0]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_creation_makes_no_second_schedule() {
    let stage = Stage::new(|_| Course::Take).await;
    let call = Some(CommandId::new("same").unwrap());
    let first = stage.schedules.create(once("ada", 1), call.clone()).await.unwrap();
    assert_eq!(stage.schedules.create(once("ada", 1), call).await.unwrap(), first);
    stage.until(5.0).await;
    assert_eq!(stage.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_target_cannot_take_is_refused_when_it_is_made() {
    let stage = Stage::new(|_| Course::Take).await;
    let why = stage.schedules.create(once("nobody", 1), None).await.unwrap_err().to_string();
    assert_eq!(why, "nobody is not there");
    let mut spec = once("ada", 1);
    spec.address.kind = "pigeon".into();
    let why = stage.schedules.create(spec, None).await.unwrap_err().to_string();
    assert_eq!(why, format!("there are no targets of kind 'pigeon': the kinds are {KIND}"));
}

#[tokio::test(start_paused = true)]
async fn a_list_holds_what_its_filter_takes_in_the_order_of_making() {
    let stage = Stage::new(|_| Course::Take).await;
    let mut made = Vec::new();
    for to in ["ada", "bob", "ada", "bob"] {
        made.push(stage.make(every(to, 100)).await);
    }
    stage.schedules.pause(made[0], None).await.unwrap();
    stage.schedules.cancel(made[1], None).await.unwrap();
    let listed = async |filter: Filter| -> Vec<_> {
        stage.schedules.list(&filter).await.unwrap().iter().map(|info| info.id).collect()
    };
    assert_eq!(listed(Filter::default()).await, made);
    assert_eq!(listed(Filter::live()).await, [made[0], made[2], made[3]]);
    let ada = Filter { to: Some("ada".into()), ..Filter::default() };
    assert_eq!(listed(ada).await, [made[0], made[2]]);
    let cancelled = Filter { status: Some(vec![Status::Cancelled]), ..Filter::default() };
    assert_eq!(listed(cancelled).await, [made[1]]);
    let other = Filter { kind: Some("pigeon".into()), ..Filter::default() };
    assert!(listed(other).await.is_empty());
}
