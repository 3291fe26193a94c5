//! Several nodes on one journal.

use switchboard_exchange::{CommandError, Options, SignedDuration, Timestamp};
use switchboard_journal::MemoryJournal;

use crate::stage::{Add, Fate, ManualClock, SetAlarm, Stage, TestJournal, settle};

fn two_nodes(options: Options) -> (Stage, Stage) {
    let one = Stage::over(TestJournal::over(MemoryJournal::shared()), ManualClock::new(), options);
    let other = one.other_node();
    (one, other)
}

#[tokio::test]
async fn a_call_sees_what_was_acknowledged_on_any_node() {
    let (one, other) = two_nodes(Options::default());
    for round in 0..20 {
        assert_eq!(one.send(Add(1)).await.unwrap(), 2 * round + 1);
        assert_eq!(other.exchange.look(&other.stream, |counter| counter.total).await.unwrap(), 2 * round + 1);
        assert_eq!(other.send(Add(1)).await.unwrap(), 2 * round + 2);
        assert_eq!(one.total().await, 2 * round + 2);
    }
}

#[tokio::test]
async fn of_two_nodes_that_race_both_are_counted() {
    let (one, other) = two_nodes(Options::default());
    let mut calls = Vec::new();
    for _ in 0..50 {
        calls.push(one.begin(Add(1)).await);
        calls.push(other.begin(Add(1)).await);
    }
    let mut totals = Vec::new();
    for call in calls {
        totals.push(call.outcome().await.unwrap());
    }
    totals.sort_unstable();
    assert_eq!(totals, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_waits_on_one_node_learns_what_another_appends() {
    let (one, other) = two_nodes(Options::default());
    let (exchange, stream) = (one.exchange.clone(), one.stream.clone());
    let waiting = tokio::spawn(async move {
        exchange.wait_for(&stream, |counter| (counter.total == 3).then_some(())).await
    });
    settle().await;
    other.send(Add(1)).await.unwrap();
    settle().await;
    assert!(!waiting.is_finished());
    other.send(Add(2)).await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_deadline_is_acted_on_once_whoever_comes_first() {
    let (one, other) = two_nodes(Options::default());
    one.send(SetAlarm(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(10))).await.unwrap();
    assert_eq!(other.total().await, 0);
    one.clock.advance(10);
    settle().await;
    for node in [&one, &other] {
        assert_eq!(node.exchange.look(&node.stream, |counter| counter.rung).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn what_waits_on_other_nodes_is_not_taken_for_abandoned() {
    let (one, other) = two_nodes(Options::default());
    one.send(Add(1)).await.unwrap();
    assert_eq!(other.exchange.look(&other.stream, |counter| counter.abandoned).await.unwrap(), 0);
}

#[tokio::test]
async fn a_repeated_call_gets_the_first_reply_from_any_node() {
    let (one, other) = two_nodes(Options::default());
    assert_eq!(one.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(other.send_as("a", Add(5)).await.unwrap(), 5);
    assert_eq!(other.total().await, 5);
}

#[tokio::test]
async fn a_node_that_fell_behind_what_is_kept_goes_on_from_the_snapshot() {
    let (one, other) = two_nodes(Options { snapshot_every: 5, keep_entries: 0, ..Options::default() });
    assert_eq!(other.total().await, 0);
    // Away from the news, as a node is that was cut off.
    other.journal.close_gate();
    for _ in 0..11 {
        one.send(Add(1)).await.unwrap();
    }
    other.journal.open_gate();
    assert_eq!(other.total().await, 11);
    assert_eq!(other.send(Add(1)).await.unwrap(), 12);
}

#[tokio::test]
async fn a_node_that_cannot_look_at_the_tail_does_not_answer_with_what_may_be_old() {
    let (one, other) = two_nodes(Options::default());
    assert_eq!(other.total().await, 0);
    other.journal.set_unreadable(true);
    assert!(matches!(other.send(crate::stage::Read).await, Err(CommandError::Unreadable(_))));
    assert!(other.exchange.look(&other.stream, |counter| counter.total).await.is_err());
    other.journal.set_unreadable(false);
    one.send(Add(1)).await.unwrap();
    assert_eq!(other.exchange.look(&other.stream, |counter| counter.total).await.unwrap(), 1);
}

#[tokio::test]
async fn a_node_that_is_ahead_of_the_journal_shows_nobody_when_news_come() {
    let (one, other) = two_nodes(Options::default());
    let (exchange, stream) = (other.exchange.clone(), other.stream.clone());
    let waiting = tokio::spawn(async move {
        exchange.wait_for(&stream, |counter| (counter.total > 0).then_some(counter.total)).await
    });
    settle().await;
    // A batch is refused while the stream cannot be read back: the node stays ahead by 20.
    let held = other.hold().await;
    let batch = [other.begin(Add(10)).await, other.begin(Add(10)).await];
    other.journal.next([Fate::Unavailable, Fate::Unavailable]);
    other.journal.let_through(1);
    assert!(held.outcome().await.is_err());
    other.journal.begun(2).await;
    other.journal.set_unreadable(true);
    other.journal.let_through(1);
    for call in batch {
        assert!(call.outcome().await.is_err());
    }
    one.send(Add(1)).await.unwrap();
    settle().await;
    other.journal.set_unreadable(false);
    other.clock.advance(1);
    one.send(Add(1)).await.unwrap();
    settle().await;
    assert_eq!(other.total().await, 2);
    assert!((1..=2).contains(&waiting.await.unwrap().unwrap()), "it saw what never happened");
}
