//! What every backend must keep, as functions that a backend's tests call.
//!
//! Each function is named after the rule it checks, takes a journal that is empty and that nobody else uses, and panics
//! where the rule is broken. [`conformance_tests!`](crate::conformance_tests) makes a test of each, so that a backend's test
//! file names none and a new rule reaches every backend; [`conformance_tests_of_nodes!`](crate::conformance_tests_of_nodes)
//! does the same for backends that several nodes share.
//!
//! Not checked here, because it takes the backend's own means: that what was acknowledged survives a crash, and that
//! faults of the medium are answered as [`AppendError`] says.

// A broken rule is reported by a panic, as in any test.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};

use crate::{AppendError, Entry, Journal, Payload, ReadError, Seq, Snapshot, StreamHead, StreamId, Tail};

/// Makes a test of every rule that one node can check.
///
/// The argument is an async function (or closure) without parameters that opens an empty journal. It returns the
/// `Arc<dyn Journal>` and anything that has to live as long, such as a temporary directory.
///
/// ```ignore
/// switchboard_journal::conformance_tests!(async || {
///     let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
///     (journal, ())
/// });
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($open:expr) => {
        $crate::conformance_tests!(@each $open;
            entries_are_numbered_from_one_without_gaps,
            a_stale_append_is_refused_and_writes_nothing,
            an_append_beyond_the_end_is_refused_and_writes_nothing,
            of_racing_appends_exactly_one_wins,
            racers_that_catch_up_lose_nothing,
            many_streams_append_at_once,
            an_unknown_stream_is_empty,
            a_read_keeps_to_its_limit,
            a_read_beyond_the_end_is_empty,
            a_read_sees_every_acknowledged_append,
            a_read_sees_entries_whole,
            payloads_come_back_byte_for_byte,
            large_payloads_come_back_byte_for_byte,
            an_append_that_nobody_waits_for_leaves_the_stream_usable,
            a_tail_gives_every_entry_once_in_order,
            a_tail_begins_after_the_given_entry,
            a_tail_waits_for_a_stream_that_does_not_exist_yet,
            a_tail_sees_what_was_appended_while_it_was_not_polled,
            tails_of_one_stream_do_not_share_their_position,
            a_tail_from_trimmed_entries_ends_with_an_error,
            a_tail_that_is_ahead_survives_a_trim,
            the_newest_snapshot_wins,
            a_snapshot_of_the_same_entry_replaces_the_last,
            large_snapshots_come_back_byte_for_byte,
            snapshots_leave_the_stream_as_it_is,
            a_trim_without_a_snapshot_forgets_nothing,
            a_trim_stops_at_the_snapshot,
            a_trim_may_stop_before_the_snapshot,
            a_trimmed_stream_keeps_its_numbers,
            a_long_trim_forgets_all_it_was_asked_to,
            a_read_of_trimmed_entries_is_refused,
            a_redaction_replaces_the_named_entries_only,
            a_redaction_ignores_what_is_not_there,
            streams_are_listed_in_byte_order_with_their_heads,
            streams_are_listed_by_prefix,
            streams_are_listed_in_pages,
            odd_names_are_kept_apart,
            the_longest_names_are_kept_apart,
        );
    };
    (@each $open:expr; $($check:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let open = $open;
                let (journal, _kept) = open().await;
                $crate::conformance::$check(journal).await;
            }
        )*
    };
}

/// Makes a test of every rule that takes two nodes, for backends whose journals are shared.
///
/// The argument is an async function without parameters that opens an empty journal twice. It returns the two
/// `Arc<dyn Journal>` as an array, and anything that has to live as long.
#[macro_export]
macro_rules! conformance_tests_of_nodes {
    ($open:expr) => {
        $crate::conformance_tests_of_nodes!(@each $open;
            the_journal_says_that_it_is_shared,
            of_racing_nodes_exactly_one_wins,
            a_node_reads_what_another_wrote,
            a_tail_sees_the_entries_of_other_nodes,
            a_node_that_was_overtaken_is_refused,
        );
    };
    (@each $open:expr; $($check:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let open = $open;
                let (nodes, _kept) = open().await;
                $crate::conformance::$check(nodes).await;
            }
        )*
    };
}

const LIMITLESS: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

fn stream(name: &str) -> StreamId {
    StreamId::new(name).unwrap()
}

fn payload(text: &str) -> Payload {
    Payload::new(serde_json::to_string(text).unwrap()).unwrap()
}

fn numbered(number: u64) -> Payload {
    payload(&format!("entry {number}"))
}

fn limit(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn state(seq: u64, text: &str) -> Snapshot {
    Snapshot { seq: Seq::new(seq), state: serde_json::to_string(text).unwrap().into() }
}

/// Appends entries `from` to `to`, each holding its number.
async fn append_numbered(journal: &dyn Journal, stream: &StreamId, from: u64, to: u64) {
    for number in from..=to {
        let seq = journal.append(stream, Seq::new(number - 1), numbered(number)).await.unwrap();
        assert_eq!(seq, Seq::new(number));
    }
}

async fn read_all(journal: &dyn Journal, stream: &StreamId, after: u64) -> Vec<Entry> {
    journal.read(stream, Seq::new(after), LIMITLESS).await.unwrap()
}

/// Checks that the stream reads as entries `from` to `to`, each holding its number, and ends there.
async fn check_numbered(journal: &dyn Journal, stream: &StreamId, from: u64, to: u64) {
    let expected: Vec<_> =
        (from..=to).map(|number| Entry { seq: Seq::new(number), payload: numbered(number) }).collect();
    assert_eq!(read_all(journal, stream, from - 1).await, expected);
    assert_eq!(journal.head(stream).await.unwrap(), Seq::new(to));
}

async fn check_conflict(journal: &dyn Journal, stream: &StreamId, after: u64, actual: u64) {
    let refused = journal.append(stream, Seq::new(after), payload("refused")).await;
    match refused {
        Err(AppendError::Conflict { stream: named, expected, actual: found }) => {
            assert_eq!((&named, expected, found), (stream, Seq::new(after), Seq::new(actual)));
        }
        other => panic!("an append after {after} of a stream that ends at {actual} gave {other:?}"),
    }
}

/// Checks that the next entries of `tail` are `from` to `to`, each holding its number.
async fn check_tail(tail: &mut Tail, from: u64, to: u64) {
    for number in from..=to {
        let entry = tail.next().await.expect("a tail does not end").unwrap();
        assert_eq!(entry, Entry { seq: Seq::new(number), payload: numbered(number) });
    }
}

fn heads(streams: &[StreamHead]) -> Vec<(&str, u64)> {
    streams.iter().map(|head| (head.stream.as_str(), head.head.get())).collect()
}

/// Entries get the numbers 1, 2, 3 …, and a read gives them back under these.
pub async fn entries_are_numbered_from_one_without_gaps(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 50).await;
    check_numbered(&*journal, &stream, 1, 50).await;
}

/// An append after an entry that has followers is refused with the stream's end, and leaves no trace.
pub async fn a_stale_append_is_refused_and_writes_nothing(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 3).await;
    for after in 0..3 {
        check_conflict(&*journal, &stream, after, 3).await;
    }
    check_numbered(&*journal, &stream, 1, 3).await;
    append_numbered(&*journal, &stream, 4, 4).await;
}

/// An append that would leave a gap is refused, also in a stream that does not exist, and does not make it exist.
pub async fn an_append_beyond_the_end_is_refused_and_writes_nothing(journal: Arc<dyn Journal>) {
    let (short, missing) = (stream("short"), stream("missing"));
    append_numbered(&*journal, &short, 1, 1).await;
    check_conflict(&*journal, &short, 2, 1).await;
    check_conflict(&*journal, &missing, 1, 0).await;
    check_numbered(&*journal, &short, 1, 1).await;
    let streams = journal.streams("", None, LIMITLESS).await.unwrap();
    assert_eq!(heads(&streams), [("short", 1)]);
    append_numbered(&*journal, &missing, 1, 1).await;
}

/// Of appends after the same entry, made at the same time, one is acknowledged, and that one is in the stream.
pub async fn of_racing_appends_exactly_one_wins(journal: Arc<dyn Journal>) {
    let nodes = [Arc::clone(&journal), journal];
    race(nodes, 8, 25).await;
}

async fn race(nodes: [Arc<dyn Journal>; 2], racers: usize, rounds: u64) {
    let stream = stream("contended");
    for round in 0..rounds {
        let start = Arc::new(tokio::sync::Barrier::new(racers));
        let tasks: Vec<_> = (0..racers)
            .map(|racer| {
                let (node, stream, start) =
                    (Arc::clone(&nodes[racer % 2]), stream.clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    let own = payload(&format!("racer {racer}"));
                    (own.clone(), node.append(&stream, Seq::new(round), own).await)
                })
            })
            .collect();
        let mut winners = Vec::new();
        for task in tasks {
            let (own, result) = task.await.unwrap();
            match result {
                Ok(seq) => winners.push(Entry { seq, payload: own }),
                Err(AppendError::Conflict { actual, .. }) => assert_eq!(actual, Seq::new(round + 1)),
                Err(other) => panic!("a lost race gave {other:?}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round} was won by {winners:?}");
        for node in &nodes {
            assert_eq!(read_all(&**node, &stream, round).await, winners);
        }
    }
}

/// Writers that append, on a conflict read what came first and then append again, each get all their entries in, once.
pub async fn racers_that_catch_up_lose_nothing(journal: Arc<dyn Journal>) {
    let stream = stream("contended");
    let (racers, entries_each) = (4_u64, 25_u64);
    let tasks: Vec<_> = (0..racers)
        .map(|racer| {
            let (journal, stream) = (Arc::clone(&journal), stream.clone());
            tokio::spawn(async move {
                let mut head = Seq::START;
                for number in 0..entries_each {
                    let own = payload(&format!("racer {racer} entry {number}"));
                    loop {
                        match journal.append(&stream, head, own.clone()).await {
                            Ok(seq) => break head = seq,
                            Err(AppendError::Conflict { actual, .. }) => {
                                let seen = read_all(&*journal, &stream, head.get()).await;
                                head = seen.last().expect("a conflict names entries that can be read").seq;
                                assert!(head >= actual);
                            }
                            Err(other) => panic!("a race gave {other:?}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let entries = read_all(&*journal, &stream, 0).await;
    let numbers: Vec<_> = entries.iter().map(|entry| entry.seq.get()).collect();
    assert_eq!(numbers, (1..=racers * entries_each).collect::<Vec<_>>());
    let distinct: BTreeSet<_> = entries.iter().map(|entry| entry.payload.as_str()).collect();
    assert_eq!(distinct.len(), entries.len());
}

/// Streams do not hold each other up, and what one gets never shows in another.
pub async fn many_streams_append_at_once(journal: Arc<dyn Journal>) {
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let journal = Arc::clone(&journal);
            tokio::spawn(async move {
                let stream = stream(&format!("session/{number}"));
                append_numbered(&*journal, &stream, 1, number).await;
                check_conflict(&*journal, &stream, number + 1, number).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for number in 1..40 {
        check_numbered(&*journal, &stream(&format!("session/{number}")), 1, number).await;
    }
}

/// A stream without entries reads as empty, and trimming or redacting it does nothing.
pub async fn an_unknown_stream_is_empty(journal: Arc<dyn Journal>) {
    let stream = stream("missing");
    assert_eq!(read_all(&*journal, &stream, 0).await, []);
    assert_eq!(read_all(&*journal, &stream, 7).await, []);
    assert_eq!(journal.head(&stream).await.unwrap(), Seq::START);
    assert_eq!(journal.load_snapshot(&stream).await.unwrap(), None);
    journal.trim(&stream, Seq::new(3)).await.unwrap();
    journal.redact(&stream, &[Seq::new(1)]).await.unwrap();
    assert_eq!(journal.streams("", None, LIMITLESS).await.unwrap(), []);
    append_numbered(&*journal, &stream, 1, 1).await;
}

/// A read gives the oldest entries up to its limit, and fewer only at the end.
pub async fn a_read_keeps_to_its_limit(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 5).await;
    for (after, count, expected) in
        [(0, 1, 1..2), (0, 4, 1..5), (0, 5, 1..6), (0, 6, 1..6), (3, 1, 4..5), (3, 2, 4..6), (4, 9, 5..6)]
    {
        let entries = journal.read(&stream, Seq::new(after), limit(count)).await.unwrap();
        let numbers: Vec<_> = entries.iter().map(|entry| entry.seq.get()).collect();
        assert_eq!(numbers, expected.collect::<Vec<_>>(), "after {after}, limit {count}");
    }
}

/// A read after the last entry, or far beyond it, is empty and no error.
pub async fn a_read_beyond_the_end_is_empty(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 2).await;
    for after in [2, 3, 1 << 40, u64::MAX] {
        assert_eq!(read_all(&*journal, &stream, after).await, []);
    }
    let entries = journal.read(&stream, Seq::START, NonZeroUsize::MAX).await.unwrap();
    assert_eq!(entries.len(), 2);
}

/// A read, head or listing that begins after an append was acknowledged shows it.
pub async fn a_read_sees_every_acknowledged_append(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    for number in 1..=30 {
        append_numbered(&*journal, &stream, number, number).await;
        let last = Entry { seq: Seq::new(number), payload: numbered(number) };
        assert_eq!(read_all(&*journal, &stream, number - 1).await, [last]);
        assert_eq!(journal.head(&stream).await.unwrap(), Seq::new(number));
        let streams = journal.streams("project/", None, LIMITLESS).await.unwrap();
        assert_eq!(heads(&streams), [("project/shop", number)]);
    }
}

/// Whoever reads while entries are appended sees each of them whole, and no gap.
pub async fn a_read_sees_entries_whole(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    let total = 40;
    let large = |number: u64| payload(&format!("{number};").repeat(20_000));
    let writer = {
        let (journal, stream) = (Arc::clone(&journal), stream.clone());
        tokio::spawn(async move {
            for number in 1..=total {
                journal.append(&stream, Seq::new(number - 1), large(number)).await.unwrap();
            }
        })
    };
    let mut last = 0;
    while last < total {
        for entry in read_all(&*journal, &stream, last).await {
            last += 1;
            assert_eq!(entry.seq, Seq::new(last));
            assert!(entry.payload == large(last), "entry {last} is not what was appended");
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

/// The journal changes nothing about a payload, whatever characters it holds.
pub async fn payloads_come_back_byte_for_byte(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    let texts = [
        "0",
        "null",
        "{}",
        "[]",
        r#""""#,
        r#"{ "spaced" :  [ 1 ,2.50, -0, 1e400 ] }"#,
        r#"{"twice":1,"twice":2}"#,
        r#""quotes ' \" ` $1 ?1 :x -- ; %s""#,
        r#""\u0000 escaped""#,
        "\"grüße 日本 🦀 \u{feff} \u{10ffff}\"",
        "\r\n\"line\"\n",
    ];
    for (after, text) in (0..).zip(texts) {
        journal.append(&stream, Seq::new(after), Payload::new(text).unwrap()).await.unwrap();
    }
    let entries = read_all(&*journal, &stream, 0).await;
    let read: Vec<_> = entries.iter().map(|entry| entry.payload.as_str()).collect();
    assert_eq!(read, texts);
}

/// Payloads of any size from one byte over each likely boundary to several megabytes come back as they were.
pub async fn large_payloads_come_back_byte_for_byte(journal: Arc<dyn Journal>) {
    let stream = stream("session/transcript");
    let sizes = [1_000, 4_095, 4_096, 4_097, 65_535, 65_536, 1 << 20, 5_000_000];
    let of_size = |size: usize| payload(&"0123456789abcdef".repeat(size / 16 + 1)[..size]);
    for (after, size) in (0..).zip(sizes) {
        journal.append(&stream, Seq::new(after), of_size(size)).await.unwrap();
    }
    for (after, size) in (0..).zip(sizes) {
        let entries = journal.read(&stream, Seq::new(after), limit(1)).await.unwrap();
        assert!(entries[0].payload == of_size(size), "a payload of {size} bytes came back changed");
    }
}

/// Dropping the future of an append leaves a stream with or without the entry, and appends after it work.
pub async fn an_append_that_nobody_waits_for_leaves_the_stream_usable(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 1).await;
    // Polled once, then dropped.
    let _ = journal.append(&stream, Seq::new(1), numbered(2)).now_or_never();
    let mut head = journal.head(&stream).await.unwrap();
    if head == Seq::new(1) {
        // It may still be on its way, and then this one loses.
        match journal.append(&stream, head, numbered(2)).await {
            Ok(seq) => head = seq,
            Err(AppendError::Conflict { actual, .. }) => head = actual,
            Err(other) => panic!("an append after an abandoned one gave {other:?}"),
        }
    }
    assert_eq!(head, Seq::new(2));
    append_numbered(&*journal, &stream, 3, 3).await;
    check_numbered(&*journal, &stream, 1, 3).await;
}

/// A tail that is polled while entries are appended gives each once, in order.
pub async fn a_tail_gives_every_entry_once_in_order(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 300).await;
    let mut tail = journal.tail(&stream, Seq::START);
    let writer = {
        let (journal, stream) = (Arc::clone(&journal), stream.clone());
        tokio::spawn(async move { append_numbered(&*journal, &stream, 301, 700).await })
    };
    check_tail(&mut tail, 1, 700).await;
    writer.await.unwrap();
    // Another entry follows directly: nothing was repeated in between.
    append_numbered(&*journal, &stream, 701, 701).await;
    check_tail(&mut tail, 701, 701).await;
}

/// A tail begins with the entry that follows the given one, wherever that is.
pub async fn a_tail_begins_after_the_given_entry(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 5).await;
    let mut middle = journal.tail(&stream, Seq::new(3));
    let mut end = journal.tail(&stream, Seq::new(5));
    check_tail(&mut middle, 4, 5).await;
    assert!(end.next().now_or_never().is_none(), "a tail from the end gave an entry before there was one");
    append_numbered(&*journal, &stream, 6, 6).await;
    check_tail(&mut middle, 6, 6).await;
    check_tail(&mut end, 6, 6).await;
}

/// A stream may be followed before its first entry.
pub async fn a_tail_waits_for_a_stream_that_does_not_exist_yet(journal: Arc<dyn Journal>) {
    let (followed, other) = (stream("later"), stream("other"));
    let mut tail = journal.tail(&followed, Seq::START);
    assert!(tail.next().now_or_never().is_none());
    append_numbered(&*journal, &other, 1, 2).await;
    append_numbered(&*journal, &followed, 1, 2).await;
    check_tail(&mut tail, 1, 2).await;
}

/// A tail that rests, at its beginning or midway, goes on with the entry where it stopped.
pub async fn a_tail_sees_what_was_appended_while_it_was_not_polled(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    let mut tail = journal.tail(&stream, Seq::START);
    append_numbered(&*journal, &stream, 1, 10).await;
    check_tail(&mut tail, 1, 4).await;
    append_numbered(&*journal, &stream, 11, 600).await;
    check_tail(&mut tail, 5, 600).await;
    assert!(tail.next().now_or_never().is_none());
    append_numbered(&*journal, &stream, 601, 601).await;
    check_tail(&mut tail, 601, 601).await;
}

/// Each tail has a position of its own; dropping one does not touch the others.
pub async fn tails_of_one_stream_do_not_share_their_position(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    let mut first = journal.tail(&stream, Seq::START);
    let mut second = journal.tail(&stream, Seq::new(2));
    let third = journal.tail(&stream, Seq::START);
    append_numbered(&*journal, &stream, 1, 4).await;
    check_tail(&mut first, 1, 3).await;
    drop(third);
    check_tail(&mut second, 3, 4).await;
    drop(first);
    append_numbered(&*journal, &stream, 5, 5).await;
    check_tail(&mut second, 5, 5).await;
}

/// A tail that asks for entries that are gone says so and ends, rather than skip them.
pub async fn a_tail_from_trimmed_entries_ends_with_an_error(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 5).await;
    journal.save_snapshot(&stream, state(3, "three")).await.unwrap();
    journal.trim(&stream, Seq::new(3)).await.unwrap();
    let mut tail = journal.tail(&stream, Seq::new(1));
    match tail.next().await {
        Some(Err(ReadError::Trimmed { stream: named, after, trimmed })) => {
            assert_eq!((named, after, trimmed), (stream.clone(), Seq::new(1), Seq::new(3)));
        }
        other => panic!("a tail from trimmed entries gave {other:?}"),
    }
    assert!(tail.next().await.is_none(), "a tail went on after an error");
    check_tail(&mut journal.tail(&stream, Seq::new(3)), 4, 5).await;
}

/// Trimming what a tail has passed does not disturb it.
pub async fn a_tail_that_is_ahead_survives_a_trim(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 3).await;
    let mut tail = journal.tail(&stream, Seq::START);
    check_tail(&mut tail, 1, 3).await;
    journal.save_snapshot(&stream, state(3, "three")).await.unwrap();
    journal.trim(&stream, Seq::new(3)).await.unwrap();
    append_numbered(&*journal, &stream, 4, 4).await;
    check_tail(&mut tail, 4, 4).await;
}

/// A snapshot of an earlier entry than the stream's newest is ignored.
pub async fn the_newest_snapshot_wins(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 9).await;
    for (saved, expected) in [(4, 4), (2, 4), (7, 7), (4, 7), (9, 9)] {
        journal.save_snapshot(&stream, state(saved, &format!("after {saved}"))).await.unwrap();
        let loaded = journal.load_snapshot(&stream).await.unwrap();
        assert_eq!(loaded, Some(state(expected, &format!("after {expected}"))));
    }
}

/// A snapshot can be replaced without a new entry: that is how an owner removes redacted text from it.
pub async fn a_snapshot_of_the_same_entry_replaces_the_last(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 2).await;
    journal.save_snapshot(&stream, state(2, "with a secret")).await.unwrap();
    journal.save_snapshot(&stream, state(2, "without")).await.unwrap();
    assert_eq!(journal.load_snapshot(&stream).await.unwrap(), Some(state(2, "without")));
}

/// States of several megabytes come back as they were.
pub async fn large_snapshots_come_back_byte_for_byte(journal: Arc<dyn Journal>) {
    let stream = stream("memory/ada");
    append_numbered(&*journal, &stream, 1, 2).await;
    for (seq, size) in [(1, 5_000_000), (2, 70_000)] {
        let saved = state(seq, &"grün 🌱 ".repeat(size / 11));
        journal.save_snapshot(&stream, saved.clone()).await.unwrap();
        let loaded = journal.load_snapshot(&stream).await.unwrap();
        assert!(loaded == Some(saved), "a state of {size} bytes came back changed");
    }
}

/// Snapshots belong to their stream, and neither read nor head nor append notices them.
pub async fn snapshots_leave_the_stream_as_it_is(journal: Arc<dyn Journal>) {
    let (stream, other) = (stream("project/shop"), stream("project/shop/annex"));
    append_numbered(&*journal, &stream, 1, 3).await;
    append_numbered(&*journal, &other, 1, 1).await;
    journal.save_snapshot(&stream, state(2, "two")).await.unwrap();
    check_numbered(&*journal, &stream, 1, 3).await;
    append_numbered(&*journal, &stream, 4, 4).await;
    assert_eq!(journal.load_snapshot(&other).await.unwrap(), None);
}

/// Without a snapshot nothing covers the entries, so none is forgotten.
pub async fn a_trim_without_a_snapshot_forgets_nothing(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 3).await;
    journal.trim(&stream, Seq::new(3)).await.unwrap();
    check_numbered(&*journal, &stream, 1, 3).await;
}

/// A trim forgets no entry that the newest snapshot does not cover, however far it asks.
pub async fn a_trim_stops_at_the_snapshot(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 6).await;
    journal.save_snapshot(&stream, state(4, "four")).await.unwrap();
    for up_to in [6, 100, u64::MAX] {
        journal.trim(&stream, Seq::new(up_to)).await.unwrap();
        check_numbered(&*journal, &stream, 5, 6).await;
    }
    assert_eq!(journal.load_snapshot(&stream).await.unwrap(), Some(state(4, "four")));
}

/// A trim forgets no more than it was asked to, and a later one with a lower number brings nothing back.
pub async fn a_trim_may_stop_before_the_snapshot(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 6).await;
    journal.save_snapshot(&stream, state(5, "five")).await.unwrap();
    for up_to in [2, 2, 1, 0] {
        journal.trim(&stream, Seq::new(up_to)).await.unwrap();
        check_numbered(&*journal, &stream, 3, 6).await;
        check_trimmed(&*journal, &stream, 1, 2).await;
    }
}

/// A stream whose entries are all trimmed still ends where it did, is listed, and goes on with the next number.
pub async fn a_trimmed_stream_keeps_its_numbers(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 3).await;
    journal.save_snapshot(&stream, state(3, "three")).await.unwrap();
    journal.trim(&stream, Seq::new(3)).await.unwrap();
    assert_eq!(read_all(&*journal, &stream, 3).await, []);
    assert_eq!(journal.head(&stream).await.unwrap(), Seq::new(3));
    let streams = journal.streams("", None, LIMITLESS).await.unwrap();
    assert_eq!(heads(&streams), [("project/shop", 3)]);
    check_conflict(&*journal, &stream, 0, 3).await;
    append_numbered(&*journal, &stream, 4, 5).await;
    check_numbered(&*journal, &stream, 4, 5).await;
}

/// A trim is complete when it is acknowledged, also one of several thousand entries, and others may append meanwhile.
pub async fn a_long_trim_forgets_all_it_was_asked_to(journal: Arc<dyn Journal>) {
    let (stream, other) = (stream("project/shop"), stream("project/mill"));
    append_numbered(&*journal, &stream, 1, 2_600).await;
    journal.save_snapshot(&stream, state(2_600, "all")).await.unwrap();
    let (trimmed, ()) =
        futures::join!(journal.trim(&stream, Seq::new(2_555)), append_numbered(&*journal, &other, 1, 20));
    trimmed.unwrap();
    check_trimmed(&*journal, &stream, 2_554, 2_555).await;
    check_numbered(&*journal, &stream, 2_556, 2_600).await;
    check_numbered(&*journal, &other, 1, 20).await;
}

async fn check_trimmed(journal: &dyn Journal, stream: &StreamId, after: u64, trimmed: u64) {
    match journal.read(stream, Seq::new(after), limit(1)).await {
        Err(ReadError::Trimmed { stream: named, after: asked, trimmed: gone }) => {
            assert_eq!((&named, asked, gone), (stream, Seq::new(after), Seq::new(trimmed)));
        }
        other => panic!("a read after {after} of a stream trimmed up to {trimmed} gave {other:?}"),
    }
}

/// A read that would have to skip trimmed entries is refused, and says from where reading is possible.
pub async fn a_read_of_trimmed_entries_is_refused(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 6).await;
    journal.save_snapshot(&stream, state(4, "four")).await.unwrap();
    journal.trim(&stream, Seq::new(4)).await.unwrap();
    for after in 0..4 {
        check_trimmed(&*journal, &stream, after, 4).await;
    }
    check_numbered(&*journal, &stream, 5, 6).await;
}

/// The payloads of the named entries are replaced, also again; numbers, other entries and other streams stay.
pub async fn a_redaction_replaces_the_named_entries_only(journal: Arc<dyn Journal>) {
    let (stream, other) = (stream("project/shop"), stream("project/mill"));
    append_numbered(&*journal, &stream, 1, 5).await;
    append_numbered(&*journal, &other, 1, 5).await;
    for _ in 0..2 {
        journal.redact(&stream, &[Seq::new(4), Seq::new(2), Seq::new(4)]).await.unwrap();
        let redacted: Vec<_> = read_all(&*journal, &stream, 0)
            .await
            .into_iter()
            .map(|entry| {
                assert!(entry.payload.is_redacted() || entry.payload == numbered(entry.seq.get()));
                (entry.seq.get(), entry.payload.is_redacted())
            })
            .collect();
        assert_eq!(redacted, [(1, false), (2, true), (3, false), (4, true), (5, false)]);
    }
    check_numbered(&*journal, &other, 1, 5).await;
    append_numbered(&*journal, &stream, 6, 6).await;
    let mut tail = journal.tail(&stream, Seq::new(1));
    assert!(tail.next().await.unwrap().unwrap().payload.is_redacted());
    check_tail(&mut tail, 3, 3).await;
}

/// Redacting entries that are trimmed, not yet written, or none at all, is harmless.
pub async fn a_redaction_ignores_what_is_not_there(journal: Arc<dyn Journal>) {
    let stream = stream("project/shop");
    append_numbered(&*journal, &stream, 1, 4).await;
    journal.save_snapshot(&stream, state(2, "two")).await.unwrap();
    journal.trim(&stream, Seq::new(2)).await.unwrap();
    for seqs in [&[][..], &[0], &[1, 2], &[5, 100, u64::MAX]] {
        let seqs: Vec<_> = seqs.iter().map(|number| Seq::new(*number)).collect();
        journal.redact(&stream, &seqs).await.unwrap();
        check_numbered(&*journal, &stream, 3, 4).await;
    }
    append_numbered(&*journal, &stream, 5, 5).await;
    check_numbered(&*journal, &stream, 3, 5).await;
}

/// Names in no particular order, to be listed in the order of their bytes.
const NAMES: [&str; 18] = [
    "project/shop",
    "project/Shop",
    "project",
    "project/",
    "project0",
    "projects",
    "project/shop/annex",
    "project/grün",
    "project/日本",
    "project/🦀",
    "project/\u{ffff}",
    "project/%",
    "project/_",
    "project/*",
    "project/[a-z]?",
    "project/\u{1}\t\n",
    "\u{10ffff}",
    " ",
];

async fn append_names(journal: &dyn Journal) -> BTreeSet<&'static str> {
    for name in NAMES {
        append_numbered(journal, &stream(name), 1, name.len() as u64).await;
    }
    BTreeSet::from(NAMES)
}

/// A listing has every stream with entries, in byte order, with where it ends.
pub async fn streams_are_listed_in_byte_order_with_their_heads(journal: Arc<dyn Journal>) {
    let names = append_names(&*journal).await;
    let streams = journal.streams("", None, LIMITLESS).await.unwrap();
    assert_eq!(heads(&streams), names.iter().map(|name| (*name, name.len() as u64)).collect::<Vec<_>>());
}

/// A prefix is taken as text: no character in it stands for others, and it need not end at a slash.
pub async fn streams_are_listed_by_prefix(journal: Arc<dyn Journal>) {
    let names = append_names(&*journal).await;
    let prefixes = [
        "p",
        "project",
        "project/",
        "project/s",
        "project/shop",
        "project/shop/",
        "project/%",
        "project/_",
        "project/*",
        "project/[",
        "project/🦀",
        "project/日",
        "project/\u{ffff}",
        "\u{10ffff}",
        " ",
        "z",
        "%",
        "*",
        "_",
        "PROJECT",
        "project/shop/annex and more",
        "\u{0}",
    ];
    for prefix in prefixes {
        let streams = journal.streams(prefix, None, LIMITLESS).await.unwrap();
        let listed: Vec<_> = streams.iter().map(|head| head.stream.as_str()).collect();
        let expected: Vec<_> = names.iter().copied().filter(|name| name.starts_with(prefix)).collect();
        assert_eq!(listed, expected, "prefix {prefix:?}");
    }
}

/// Going on after the last name of a page lists every stream once, whatever the size of a page.
pub async fn streams_are_listed_in_pages(journal: Arc<dyn Journal>) {
    let names = append_names(&*journal).await;
    for (prefix, page) in
        [("", 1), ("", 5), ("", 18), ("", 19), ("project/", 1), ("project/", 3), ("project", 4)]
    {
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let streams = journal.streams(prefix, after.as_ref(), limit(page)).await.unwrap();
            let full = streams.len() == page;
            assert!(streams.len() <= page);
            after = streams.last().map(|head| head.stream.clone()).or(after);
            listed.extend(streams.into_iter().map(|head| head.stream));
            if !full {
                break;
            }
        }
        let expected: Vec<_> =
            names.iter().filter(|name| name.starts_with(prefix)).map(|name| stream(name)).collect();
        assert_eq!(listed, expected, "prefix {prefix:?}, pages of {page}");
    }
    // A start that is no stream, before, between and after the names with the prefix.
    for after in [" ", "project/T", "zebra"] {
        let streams = journal.streams("project/", Some(&stream(after)), LIMITLESS).await.unwrap();
        let listed: Vec<_> = streams.iter().map(|head| head.stream.as_str()).collect();
        let expected: Vec<_> =
            names.iter().copied().filter(|name| name.starts_with("project/") && *name > after).collect();
        assert_eq!(listed, expected, "after {after:?}");
    }
}

/// Names that look alike to a pattern, a file system or a person are different streams.
pub async fn odd_names_are_kept_apart(journal: Arc<dyn Journal>) {
    let names = [
        "a",
        "A",
        "a ",
        " a",
        "a/",
        "/a",
        "a//b",
        "a/b",
        "a/../b",
        "a\u{308}",
        "ä",
        "a%",
        "a_",
        "a*",
        "a?",
        "a:b",
        "a{b}",
        "{a}",
        "a'b",
        "a\"b",
        "a\\b",
        "a;b",
        "a\u{1}",
        "a\u{7f}",
        "a\n",
        "a\r\n",
        "-a",
        "🦀",
        "🦀🦀",
        "\u{202e}a",
        "null",
        "0",
    ];
    for (number, name) in (1..).zip(names) {
        append_numbered(&*journal, &stream(name), 1, number).await;
        journal.save_snapshot(&stream(name), state(number, name)).await.unwrap();
    }
    for (number, name) in (1..).zip(names) {
        check_numbered(&*journal, &stream(name), 1, number).await;
        assert_eq!(journal.load_snapshot(&stream(name)).await.unwrap(), Some(state(number, name)));
    }
}

/// Names of the greatest length work everywhere, and differ if only their last byte does.
pub async fn the_longest_names_are_kept_apart(journal: Arc<dyn Journal>) {
    let long = "n".repeat(StreamId::MAX_BYTES - 1);
    let (first, second) = (stream(&format!("{long}1")), stream(&format!("{long}2")));
    let mut tail = journal.tail(&first, Seq::START);
    append_numbered(&*journal, &first, 1, 3).await;
    append_numbered(&*journal, &second, 1, 5).await;
    check_tail(&mut tail, 1, 3).await;
    journal.save_snapshot(&first, state(2, "two")).await.unwrap();
    journal.trim(&first, Seq::new(2)).await.unwrap();
    journal.redact(&second, &[Seq::new(5)]).await.unwrap();
    check_numbered(&*journal, &first, 3, 3).await;
    assert!(read_all(&*journal, &second, 4).await[0].payload.is_redacted());
    let streams = journal.streams(&long, Some(&first), limit(2)).await.unwrap();
    assert_eq!(streams, [StreamHead { stream: second, head: Seq::new(5) }]);
}

/// Whoever runs machines over the journal learns that others may append.
#[allow(clippy::unused_async, reason = "the lists take async functions")]
pub async fn the_journal_says_that_it_is_shared(nodes: [Arc<dyn Journal>; 2]) {
    for node in &nodes {
        assert_eq!(node.sharing(), crate::Sharing::Shared);
    }
}

/// As [`of_racing_appends_exactly_one_wins`], on two nodes.
pub async fn of_racing_nodes_exactly_one_wins(nodes: [Arc<dyn Journal>; 2]) {
    race(nodes, 6, 25).await;
}

/// What one node was acknowledged, the other reads, and it can append after it.
pub async fn a_node_reads_what_another_wrote(nodes: [Arc<dyn Journal>; 2]) {
    let stream = stream("project/shop");
    for number in 1..=30 {
        let (writer, reader) = if number % 2 == 0 { (&nodes[0], &nodes[1]) } else { (&nodes[1], &nodes[0]) };
        append_numbered(&**writer, &stream, number, number).await;
        check_numbered(&**reader, &stream, 1, number).await;
    }
    nodes[0].save_snapshot(&stream, state(20, "twenty")).await.unwrap();
    assert_eq!(nodes[1].load_snapshot(&stream).await.unwrap(), Some(state(20, "twenty")));
    nodes[1].trim(&stream, Seq::new(20)).await.unwrap();
    check_trimmed(&*nodes[0], &stream, 19, 20).await;
    nodes[0].redact(&stream, &[Seq::new(21)]).await.unwrap();
    assert!(read_all(&*nodes[1], &stream, 20).await[0].payload.is_redacted());
}

/// A tail gives the entries of all nodes, in their order, while both append in turns.
pub async fn a_tail_sees_the_entries_of_other_nodes(nodes: [Arc<dyn Journal>; 2]) {
    let stream = stream("project/shop");
    let mut tail = nodes[0].tail(&stream, Seq::START);
    append_numbered(&*nodes[1], &stream, 1, 1).await;
    check_tail(&mut tail, 1, 1).await;
    for number in 2..=40 {
        append_numbered(&*nodes[usize::from(number % 3 == 0)], &stream, number, number).await;
    }
    check_tail(&mut tail, 2, 40).await;
    assert!(tail.next().now_or_never().is_none());
    append_numbered(&*nodes[1], &stream, 41, 41).await;
    check_tail(&mut tail, 41, 41).await;
}

/// A node that does not know of another's entry gets a conflict, and after reading it can append.
pub async fn a_node_that_was_overtaken_is_refused(nodes: [Arc<dyn Journal>; 2]) {
    let stream = stream("project/shop");
    append_numbered(&*nodes[0], &stream, 1, 2).await;
    append_numbered(&*nodes[1], &stream, 3, 4).await;
    check_conflict(&*nodes[0], &stream, 2, 4).await;
    check_numbered(&*nodes[0], &stream, 1, 4).await;
    append_numbered(&*nodes[0], &stream, 5, 5).await;
}

#[cfg(test)]
mod tests {
    /// A rule that the lists at the top leave out would be checked by nobody.
    #[test]
    fn every_rule_is_in_a_list() {
        let source = include_str!("conformance.rs");
        let rules = source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
        let unlisted: Vec<_> =
            rules.filter(|rule| !source.contains(&format!("            {rule},\n"))).collect();
        assert_eq!(unlisted, Vec::<&str>::new());
    }
}
