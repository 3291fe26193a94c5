//! What tests of the service share.

use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use switchboard_bus::{Bus, Data, Event, Filter, NewEvent, Page, Pattern, Position, Retention, Tail, Topic};
use switchboard_exchange::{Clock, SignedDuration};
use switchboard_journal::Journal;
use tokio::time::Instant;

/// The runtime's time, which passes when nothing else is left to do if it is paused.
#[derive(Debug)]
pub(crate) struct RuntimeClock(Instant);

impl RuntimeClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::try_from(self.0.elapsed()).unwrap()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let wait = deadline.duration_since(self.now()).max(SignedDuration::ZERO);
        tokio::time::sleep(wait.unsigned_abs()).boxed()
    }
}

pub(crate) fn bus_over(journal: &Arc<impl Journal>, retention: Retention) -> Bus {
    Bus::new(journal.clone(), RuntimeClock::new(), retention)
}

pub(crate) fn bus(journal: &Arc<impl Journal>) -> Bus {
    bus_over(journal, Retention::default())
}

pub(crate) fn event(topic: &str, data: u64) -> NewEvent {
    NewEvent::new(Topic::new(topic).unwrap(), Data::of(&data).unwrap())
}

pub(crate) fn filter(pattern: &str) -> Filter {
    Pattern::new(pattern).unwrap().into()
}

pub(crate) fn limit(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

pub(crate) fn at(position: u64) -> Position {
    Position::new(position)
}

/// `position topic data` of each.
pub(crate) fn shown(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{} {} {}", event.position, event.topic, event.data.get())).collect()
}

/// Everything from `after` on, in pages of `limit`.
pub(crate) async fn read_all(bus: &Bus, pattern: &str, after: u64, page: usize) -> Vec<Event> {
    let (mut events, mut after) = (Vec::new(), Position::new(after));
    loop {
        let page = bus.read(&filter(pattern), Some(after), limit(page)).await.unwrap();
        events.extend(page.events);
        assert!(page.next > after || !page.more, "a page with more to come gets on");
        after = page.next;
        if !page.more {
            return events;
        }
    }
}

/// The next `count` events of a tail.
pub(crate) async fn next_events(tail: &mut Tail, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        let page: Page = tail.next().await.unwrap().unwrap();
        assert_eq!(page.missed, None);
        events.extend(page.events);
    }
    events
}
