//! Publishing, reading and tailing, over journals in memory and on disk.

use std::sync::Arc;

use futures::StreamExt as _;
use proptest::prelude::*;
use switchboard_bus::{Data, Filter, Key, NewEvent, Pattern, Position, Refused, Topic};
use switchboard_exchange::CommandError;
use switchboard_journal::{Journal, MemoryJournal, SqliteJournal, SqliteOptions};

use crate::stage::{at, bus, event, filter, limit, next_events, read_all, shown};

fn sqlite(dir: &tempfile::TempDir) -> Arc<SqliteJournal> {
    Arc::new(SqliteJournal::open(dir.path(), &SqliteOptions::default()).unwrap())
}

/// Runs `rule` over each kind of journal.
macro_rules! over_each_journal {
    ($($name:ident)*) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(std::sync::Arc::new(super::MemoryJournal::new())).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let dir = tempfile::tempdir().unwrap();
                super::$name(super::sqlite(&dir)).await;
            })*
        }
    };
}

over_each_journal! {
    readers_get_what_matches_in_order
    a_page_ends_at_its_limit_and_the_next_goes_on_there
    a_reader_ahead_of_the_bus_is_told
    without_a_position_only_what_is_new_is_read
    a_repeated_key_gets_its_first_position
    the_latest_are_the_last_that_match
    a_tail_gives_every_event_once_whoever_publishes_meanwhile
    a_tail_that_is_not_polled_holds_nobody_up_and_misses_nothing
    a_tail_says_how_far_it_is_when_nothing_matches
    tails_end_when_the_bus_stops
    publishers_that_compete_keep_their_order_and_leave_no_gaps
}

async fn readers_get_what_matches_in_order(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    let positions = bus.publish(vec![event("a.x", 1), event("b", 2), event("a.y", 3)]).await.unwrap();
    assert_eq!(positions, [1, 2, 3].map(Position::new));
    assert_eq!(bus.publish(vec![event("a.x", 4)]).await.unwrap(), [Position::new(4)]);
    assert_eq!(shown(&read_all(&bus, "a.*", 0, 100).await), ["1 a.x 1", "3 a.y 3", "4 a.x 4"]);
    assert_eq!(shown(&read_all(&bus, "a.x", 1, 100).await), ["4 a.x 4"]);
    let either = Filter::any_of([Pattern::new("b").unwrap(), Pattern::new("a.y").unwrap()]).unwrap();
    let page = bus.read(&either, Some(at(0)), limit(10)).await.unwrap();
    assert_eq!(shown(&page.events), ["2 b 2", "3 a.y 3"]);
    assert_eq!((page.next, page.more, page.missed), (Position::new(4), false, None));
}

async fn a_page_ends_at_its_limit_and_the_next_goes_on_there(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    for first in [0, 3, 6] {
        bus.publish((first..first + 3).map(|data| event("a", data)).collect()).await.unwrap();
    }
    let page = bus.read(&filter("a"), Some(at(0)), limit(4)).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.more), (4, Position::new(4), true));
    let page = bus.read(&filter("a"), Some(page.next), limit(5)).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.more), (5, Position::new(9), false));
    let large = Data::json(format!("\"{}\"", "x".repeat(200 << 10))).unwrap();
    bus.publish(vec![NewEvent::new(Topic::new("large").unwrap(), large); 12]).await.unwrap();
    let page = bus.read(&filter("large"), Some(at(0)), limit(1_000)).await.unwrap();
    assert_eq!((page.events.len(), page.more), (6, true), "a page also ends after a mebibyte");
    assert_eq!(read_all(&bus, "large", 0, 1_000).await.len(), 12);
}

async fn a_reader_ahead_of_the_bus_is_told(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    bus.publish(vec![event("a", 1)]).await.unwrap();
    let refused = bus.read(&filter("a"), Some(at(2)), limit(1)).await.unwrap_err();
    assert!(matches!(refused, CommandError::Rejected(Refused::Ahead { .. })), "{refused}");
    assert!(bus.tail(filter("a"), Some(at(2))).await.is_err());
    assert_eq!(
        refused.to_string(),
        "position 2 is not given out yet, the newest is 1: read from the beginning with 0"
    );
}

async fn without_a_position_only_what_is_new_is_read(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    bus.publish(vec![event("a", 1)]).await.unwrap();
    let page = bus.read(&filter("a"), None, limit(1)).await.unwrap();
    assert_eq!((page.events.len(), page.next), (0, Position::new(1)));
    let mut tail = bus.tail(filter("a"), None).await.unwrap();
    bus.publish(vec![event("a", 2)]).await.unwrap();
    assert_eq!(shown(&next_events(&mut tail, 1).await), ["2 a 2"]);
}

async fn a_repeated_key_gets_its_first_position(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    let keyed = || event("a", 1).keyed(Key::new("k").unwrap());
    assert_eq!(bus.publish(vec![event("a", 0), keyed()]).await.unwrap(), [1, 2].map(Position::new));
    assert_eq!(bus.publish(vec![keyed(), event("a", 2)]).await.unwrap(), [2, 3].map(Position::new));
    assert_eq!(bus.stats().published, 3);
    assert_eq!(read_all(&bus, "a", 0, 10).await.len(), 3);
}

async fn the_latest_are_the_last_that_match(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    let page = bus.latest(&filter("#"), limit(2)).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.more), (0, Position::START, false));
    for data in 0..100 {
        bus.publish(vec![event("a", data), event("b", data)]).await.unwrap();
    }
    let page = bus.latest(&filter("a"), limit(2)).await.unwrap();
    assert_eq!(shown(&page.events), ["197 a 98", "199 a 99"]);
    assert_eq!((page.next, page.more), (Position::new(200), true));
    let page = bus.latest(&filter("a"), limit(1_000)).await.unwrap();
    assert_eq!((page.events.len(), page.more), (100, false));
}

async fn a_tail_gives_every_event_once_whoever_publishes_meanwhile(journal: Arc<impl Journal>) {
    const EACH: u64 = 150;
    let bus = bus(&journal);
    let publishing: Vec<_> = (0..4)
        .map(|publisher| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for data in 0..EACH {
                    bus.publish(vec![event(&format!("p.{publisher}"), data)]).await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let tailing: Vec<_> = (0..8)
        .map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move {
                let mut tail = bus.tail(filter("#"), Some(at(0))).await.unwrap();
                next_events(&mut tail, 4 * usize::try_from(EACH).unwrap()).await
            })
        })
        .collect();
    futures::future::join_all(publishing).await;
    for tail in tailing {
        let events = tail.await.unwrap();
        let positions: Vec<_> = events.iter().map(|event| event.position.get()).collect();
        assert_eq!(positions, (1..=4 * EACH).collect::<Vec<_>>());
    }
}

async fn a_tail_that_is_not_polled_holds_nobody_up_and_misses_nothing(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    let mut slow = bus.tail(filter("a"), Some(at(0))).await.unwrap();
    bus.publish(vec![event("a", 0)]).await.unwrap();
    next_events(&mut slow, 1).await;
    // Many more than are held for it.
    for data in 1..500 {
        bus.publish(vec![event("a", data)]).await.unwrap();
    }
    let events = next_events(&mut slow, 499).await;
    assert_eq!(events.last().unwrap().position, Position::new(500));
    bus.publish(vec![event("a", 500)]).await.unwrap();
    assert_eq!(shown(&next_events(&mut slow, 1).await), ["501 a 500"]);
}

async fn a_tail_says_how_far_it_is_when_nothing_matches(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    let mut tail = bus.tail(filter("rare"), None).await.unwrap();
    bus.publish((0..2_500).map(|data| event("common", data)).collect()).await.unwrap();
    let page = tail.next().await.unwrap().unwrap();
    assert_eq!((page.events.len(), page.next), (0, Position::new(2_500)));
}

async fn tails_end_when_the_bus_stops(journal: Arc<impl Journal>) {
    let bus = bus(&journal);
    bus.start();
    let mut tail = bus.tail(filter("a"), None).await.unwrap();
    let (ended, ()) = tokio::join!(tail.next(), bus.stop());
    assert!(ended.is_none());
    assert!(matches!(bus.publish(vec![event("a", 1)]).await, Err(CommandError::Stopping)));
}

async fn publishers_that_compete_keep_their_order_and_leave_no_gaps(journal: Arc<impl Journal>) {
    const EACH: u64 = 50;
    let bus = bus(&journal);
    let publishing = (0..16).map(|publisher| {
        let bus = bus.clone();
        tokio::spawn(async move {
            let mut positions = Vec::new();
            for data in 0..EACH {
                let batch = (0..3).map(|part| event(&format!("p.{publisher}"), 3 * data + part)).collect();
                positions.extend(bus.publish(batch).await.unwrap());
            }
            positions
        })
    });
    let mut all = Vec::new();
    for positions in futures::future::join_all(publishing).await {
        let positions = positions.unwrap();
        assert!(positions.is_sorted());
        all.extend(positions.iter().map(|position| position.get()));
    }
    all.sort_unstable();
    assert_eq!(all, (1..=16 * 3 * EACH).collect::<Vec<_>>());
    for publisher in 0..16 {
        let events = read_all(&bus, &format!("p.{publisher}"), 0, 7).await;
        let data: Vec<String> = events.iter().map(|event| event.data.get().to_owned()).collect();
        assert_eq!(data, (0..3 * EACH).map(|data| data.to_string()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_restart_keeps_events_positions_and_keys() {
    let dir = tempfile::tempdir().unwrap();
    let keyed = || event("a", 7).keyed(Key::new("k").unwrap());
    let journal = sqlite(&dir);
    let before = bus(&journal);
    for data in 0..1_500 {
        before.publish(vec![event("a", data)]).await.unwrap();
    }
    before.publish(vec![keyed()]).await.unwrap();
    before.stop().await;
    journal.close().await;
    drop((before, journal));

    let after = bus(&sqlite(&dir));
    assert_eq!(after.newest().await.unwrap(), Position::new(1_501));
    assert_eq!(after.publish(vec![keyed(), event("a", 8)]).await.unwrap(), [1_501, 1_502].map(Position::new));
    let resumed = read_all(&after, "a", 1_499, 1_000).await;
    assert_eq!(shown(&resumed), ["1500 a 1499", "1501 a 7", "1502 a 8"]);
    assert_eq!(read_all(&after, "a", 0, 1_000).await.len(), 1_502);
}

#[tokio::test]
async fn nodes_that_share_a_journal_share_the_bus() {
    let journal = MemoryJournal::shared();
    let (one, other) = (bus(&Arc::new(journal.clone())), bus(&Arc::new(journal)));
    let mut tail = other.tail(filter("a"), None).await.unwrap();
    assert_eq!(one.publish(vec![event("a", 1)]).await.unwrap(), [Position::new(1)]);
    assert_eq!(other.publish(vec![event("a", 2)]).await.unwrap(), [Position::new(2)]);
    assert_eq!(shown(&next_events(&mut tail, 2).await), ["1 a 1", "2 a 2"]);
    assert_eq!(shown(&read_all(&one, "a", 0, 10).await), ["1 a 1", "2 a 2"]);
}

#[test]
fn data_are_json_of_a_bounded_size() {
    assert_eq!(Data::json("{\"a\":\r\n[1]}").unwrap().get(), "{\"a\":  [1]}");
    assert!(Data::json("\"a\nb\" x").is_err());
    assert!(Data::json("{a}").unwrap_err().to_string().starts_with("the data of an event must be JSON: "));
    assert!(Data::json(format!("\"{}\"", "x".repeat(Data::MAX_BYTES - 1))).is_err());
    assert_eq!(Key::new("").unwrap_err().to_string(), "a key has 1 to 256 bytes, this one has 0");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_of_any_size_from_any_position_give_what_was_published(
        batches in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["a", "b.c", "b.d"]), 1..6), 1..40),
        after in 0_usize..60,
        page in 1_usize..9,
        pattern in prop::sample::select(vec!["a", "b.*", "#", "c"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let bus = bus(&Arc::new(MemoryJournal::new()));
            let mut published = Vec::new();
            for batch in batches {
                let first = published.len() as u64;
                let events: Vec<_> = (first..).zip(&batch).map(|(data, topic)| event(topic, data)).collect();
                bus.publish(events).await.unwrap();
                published.extend(batch);
            }
            let after = after.min(published.len());
            let wanted = Pattern::new(pattern).unwrap();
            let expected: Vec<_> = published
                .iter()
                .enumerate()
                .skip(after)
                .filter(|(_, topic)| wanted.matches(&Topic::new(**topic).unwrap()))
                .map(|(index, topic)| format!("{} {topic} {index}", index + 1))
                .collect();
            assert_eq!(shown(&read_all(&bus, pattern, after as u64, page).await), expected);
            if !expected.is_empty() {
                let mut tail = bus.tail(filter(pattern), Some(at(after as u64))).await.unwrap();
                assert_eq!(shown(&next_events(&mut tail, expected.len()).await), expected);
            }
        });
    }
}
