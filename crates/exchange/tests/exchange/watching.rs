//! Following a stream's entries.

use futures::StreamExt as _;
use switchboard_exchange::{Options, Record, SignedDuration};
use switchboard_journal::{ReadError, Seq};

use crate::stage::{Add, Event, Stage, numbers, settle};

#[tokio::test]
async fn a_watcher_sees_every_entry_once_and_in_order() {
    let stage = Stage::new();
    for _ in 0..300 {
        stage.send(Add(1)).await.unwrap();
    }
    let mut early = stage.exchange.watch(&stage.stream, Seq::START).await.unwrap();
    let mut late = stage.exchange.watch(&stage.stream, Seq::new(300)).await.unwrap();
    assert_eq!(numbers(&mut early, 200).await, (1..=200).collect::<Vec<_>>());
    let writer = {
        let stage = stage.clone();
        tokio::spawn(async move {
            for _ in 0..300 {
                stage.send(Add(1)).await.unwrap();
            }
        })
    };
    assert_eq!(numbers(&mut late, 300).await, (301..=600).collect::<Vec<_>>());
    assert_eq!(numbers(&mut early, 400).await, (201..=600).collect::<Vec<_>>());
    writer.await.unwrap();
}

#[tokio::test]
async fn a_watcher_that_resumes_goes_on_where_it_was_also_if_the_stream_left_memory() {
    let stage = Stage::with(Options { idle_after: SignedDuration::from_secs(60), ..Options::default() });
    stage.send(Add(1)).await.unwrap();
    stage.send(Add(1)).await.unwrap();
    let mut watcher = stage.exchange.watch(&stage.stream, Seq::START).await.unwrap();
    assert_eq!(numbers(&mut watcher, 1).await, [1]);
    stage.clock.advance(60);
    settle().await;
    assert_eq!(stage.exchange.live_streams(), 0);
    let mut resumed = stage.exchange.watch(&stage.stream, Seq::new(1)).await.unwrap();
    stage.send(Add(1)).await.unwrap();
    // The third entry is what the stream left when it came back.
    assert_eq!(numbers(&mut watcher, 3).await, [2, 3, 4]);
    assert_eq!(numbers(&mut resumed, 3).await, [2, 3, 4]);
}

#[tokio::test]
async fn what_a_watcher_sees_is_what_happened() {
    let stage = Stage::new();
    stage.send_as("a", Add(7)).await.unwrap();
    let mut watcher = stage.exchange.watch(&stage.stream, Seq::START).await.unwrap();
    let entry = watcher.next().await.unwrap().unwrap();
    let record: Record<Event> = serde_json::from_str(entry.payload.as_str()).unwrap();
    assert_eq!(record.v, 1);
    assert!(matches!(record.events.as_slice(), [Event::Added(7)]));
}

#[tokio::test]
async fn who_resumes_before_what_is_kept_is_told() {
    let stage = Stage::with(Options { snapshot_every: 5, keep_entries: 0, ..Options::default() });
    for _ in 0..5 {
        stage.send(Add(1)).await.unwrap();
    }
    settle().await;
    let mut watcher = stage.exchange.watch(&stage.stream, Seq::new(2)).await.unwrap();
    assert!(matches!(watcher.next().await, Some(Err(ReadError::Trimmed { .. }))));
    assert!(watcher.next().await.is_none());
}
