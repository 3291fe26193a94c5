//! How long events are kept, and what a reader learns who comes too late.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use switchboard_bus::{Bus, Position, Retention, Stats};
use switchboard_exchange::SignedDuration;
use switchboard_journal::MemoryJournal;

use crate::stage::{at, bus_over, event, filter, limit, next_events};

fn keeping(retention: Retention) -> Bus {
    let bus = bus_over(&Arc::new(MemoryJournal::new()), retention);
    bus.start();
    bus
}

/// Long enough without events for the state to be saved, and for a look at what is kept.
async fn quiet() {
    tokio::time::sleep(Duration::from_mins(11)).await;
}

async fn publish(bus: &Bus, count: u64) {
    for data in 0..count {
        bus.publish(vec![event("a", data % 10); 10]).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn more_than_are_kept_are_forgotten_and_readers_are_told() {
    let bus = keeping(Retention { events: 100, ..Retention::default() });
    publish(&bus, 30).await;
    quiet().await;
    assert_eq!(bus.stats(), Stats { published: 300, kept: 100, kept_bytes: 200 });
    let page = bus.read(&filter("a"), Some(at(17)), limit(1_000)).await.unwrap();
    assert_eq!((page.events.len(), page.missed, page.next), (100, Some(at(201)), Position::new(300)));
    let page = bus.read(&filter("a"), Some(at(200)), limit(1_000)).await.unwrap();
    assert_eq!((page.events.len(), page.missed), (100, None));
    let page = bus.latest(&filter("a"), limit(1_000)).await.unwrap();
    assert_eq!((page.events.len(), page.more), (100, false));
    let mut tail = bus.tail(filter("a"), Some(at(17))).await.unwrap();
    assert_eq!(tail.next().await.unwrap().unwrap().missed, Some(at(201)));
    publish(&bus, 1).await;
    assert_eq!(next_events(&mut tail, 10).await[0].position, Position::new(301));
}

#[tokio::test(start_paused = true)]
async fn more_than_the_size_that_is_kept_is_forgotten() {
    let bus = keeping(Retention { bytes: 100, ..Retention::default() });
    publish(&bus, 30).await;
    quiet().await;
    assert_eq!(bus.stats(), Stats { published: 300, kept: 50, kept_bytes: 100 });
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_forgotten_and_positions_go_on() {
    let bus = keeping(Retention { age: SignedDuration::from_hours(1), ..Retention::default() });
    publish(&bus, 3).await;
    quiet().await;
    assert_eq!(bus.stats().kept, 30);
    tokio::time::sleep(Duration::from_mins(50)).await;
    assert_eq!(bus.stats(), Stats { published: 30, kept: 0, kept_bytes: 0 });
    let page = bus.read(&filter("a"), Some(at(7)), limit(10)).await.unwrap();
    assert_eq!(
        (page.events.len(), page.missed, page.next, page.more),
        (0, Some(at(31)), Position::new(30), false)
    );
    let page = bus.read(&filter("a"), Some(at(30)), limit(10)).await.unwrap();
    assert_eq!(page.missed, None);
    assert_eq!(bus.latest(&filter("a"), limit(10)).await.unwrap().events, []);
    assert_eq!(bus.publish(vec![event("a", 1)]).await.unwrap(), [Position::new(31)]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_bus_forgets_too() {
    let bus = keeping(Retention { events: 1_000, ..Retention::default() });
    publish(&bus, 2_500).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let kept = bus.stats().kept;
    assert!((1_000..=10_000).contains(&kept), "{kept}");
}
