//! The rules of publishing. Pure: events are numbered here and kept in the journal alone.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_exchange::{Decide, Decision, Machine, SignedDuration};

use crate::{Key, NewEvent, Position};

/// How far the bus is, and which keys were used lately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    newest: Position,
    /// The size of all events ever published, as [`Published::bytes`].
    bytes: u64,
    /// When the newest was published. Time does not go back on the bus, whatever the clock does.
    at_ms: i64,
    keys: Keys,
}

/// Publishes events, all of them or none, in this order.
///
/// An event whose key was used within [`Ledger::KEY_WINDOW`] and is among the latest [`Ledger::MAX_KEYS`] is not published
/// again: it gets the position it has. The same holds for keys that repeat within one command.
#[derive(Debug, Clone)]
pub struct Publish {
    /// At most [`Publish::MAX_EVENTS`], of at most [`Publish::MAX_BYTES`] together.
    pub events: Vec<NewEvent>,
}

impl Publish {
    /// The most events in one command.
    pub const MAX_EVENTS: usize = 4_096;

    /// The most bytes of topics, data, keys and sources in one command (4 MiB).
    pub const MAX_BYTES: u64 = 4 << 20;
}

/// What a publisher is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The position of each event, in the order in which they were given.
    pub positions: Vec<Position>,
    /// How many of them were published now, and not before.
    pub published: usize,
}

/// What happened: events were published. One per command.
///
/// ```json
/// {"type":"published","first":7,"bytes":940,"at_ms":1793696400000,"events":[{"topic":"build.done","data":{"ok":true}}]}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The only kind there is. A field, since a tagged enum would have every event's data decoded and written anew.
    r#type: Kind,
    /// The position of the first event; the others follow.
    pub first: Position,
    /// The size of all events ever published up to and including these: the bytes of topics, data, keys and sources.
    pub bytes: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The events, at least one.
    pub events: Vec<NewEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Published,
}

impl Published {
    /// The position of the last event.
    pub const fn last(&self) -> Position {
        self.first.plus((self.events.len() as u64).saturating_sub(1))
    }
}

/// Why nothing was published, or nothing can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many at once.
    #[error("{count} events at once are more than {}: publish them in several calls", Publish::MAX_EVENTS)]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// Too much at once.
    #[error(
        "{bytes} bytes of events at once are more than {}: publish them in several calls",
        Publish::MAX_BYTES
    )]
    TooLarge {
        /// How much it is.
        bytes: u64,
    },
    /// A reader is ahead of the bus. Its position comes from another bus, or from before its data were removed.
    #[error("position {after} is not given out yet, the newest is {newest}: read from the beginning with 0")]
    Ahead {
        /// Where it wants to go on.
        after: Position,
        /// Where the bus is.
        newest: Position,
    },
}

impl Ledger {
    /// How long a key is remembered, at least if no more than [`MAX_KEYS`](Self::MAX_KEYS) are used meanwhile.
    pub const KEY_WINDOW: SignedDuration = SignedDuration::from_mins(10);

    /// How many keys are remembered.
    pub const MAX_KEYS: usize = 65_536;

    /// The position of the newest event; [`Position::START`] if there never was one.
    pub const fn newest(&self) -> Position {
        self.newest
    }

    /// The size of all events ever published: the bytes of topics, data, keys and sources.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Machine for Ledger {
    const VERSION: u32 = 1;

    type Settings = ();
    type Event = Published;
    type Rejection = Refused;

    fn new() -> Self {
        Self::default()
    }

    fn configure(&mut self, (): &()) {}

    fn apply(&mut self, published: &Published) {
        self.newest = published.last();
        self.bytes = published.bytes;
        self.at_ms = published.at_ms;
        for (position, event) in (published.first.get()..).zip(&published.events) {
            if let Some(key) = &event.key {
                let position = Position::new(position);
                self.keys.remember(Used { key: key.clone(), position, at_ms: published.at_ms });
            }
        }
        self.keys.forget(published.at_ms);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        // A key that is too old counts for nothing, whether or not it is still there.
        None
    }

    fn tick(&self, _now: Timestamp) -> Vec<Published> {
        Vec::new()
    }

    fn ticked(&mut self, _now: Timestamp) {}

    fn resume(&mut self, _now: Timestamp) {}

    fn abandon(&self, _now: Timestamp) -> Vec<Published> {
        Vec::new()
    }

    fn adopt(&mut self, _stale: Self) {}
}

impl Decide<Publish> for Ledger {
    type Reply = Receipt;

    const NAME: &'static str = "publish";

    fn decide(&self, now: Timestamp, command: &Publish) -> Result<Decision<Published, Receipt>, Refused> {
        let count = command.events.len();
        if count > Publish::MAX_EVENTS {
            return Err(Refused::TooMany { count });
        }
        let at_ms = now.as_millisecond().max(self.at_ms);
        let first = self.newest.plus(1);
        let mut positions = Vec::with_capacity(count);
        let mut events = Vec::with_capacity(count);
        let mut repeated: HashMap<&Key, Position> = HashMap::new();
        let mut bytes = 0;
        for event in &command.events {
            let next = first.plus(events.len() as u64);
            let known = event.key.as_ref().and_then(|key| {
                self.keys.get(key, at_ms).or_else(|| match repeated.entry(key) {
                    Entry::Occupied(first) => Some(*first.get()),
                    Entry::Vacant(unused) => {
                        unused.insert(next);
                        None
                    }
                })
            });
            if let Some(known) = known {
                positions.push(known);
                continue;
            }
            bytes += event.bytes();
            positions.push(next);
            events.push(event.clone());
        }
        if bytes > Publish::MAX_BYTES {
            return Err(Refused::TooLarge { bytes });
        }
        let receipt = Receipt { positions, published: events.len() };
        if events.is_empty() {
            return Ok(Decision::unchanged(receipt));
        }
        let bytes = self.bytes + bytes;
        Ok(Decision::event(Published { r#type: Kind::Published, first, bytes, at_ms, events }, receipt))
    }
}

/// The keys that were used lately, oldest first.
#[derive(Debug, Clone, Default)]
struct Keys {
    used: VecDeque<Used>,
    newest: HashMap<Key, (Position, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Used {
    key: Key,
    position: Position,
    at_ms: i64,
}

impl Keys {
    fn get(&self, key: &Key, now_ms: i64) -> Option<Position> {
        let (position, at_ms) = self.newest.get(key)?;
        (now_ms < end_of(*at_ms)).then_some(*position)
    }

    fn remember(&mut self, used: Used) {
        self.newest.insert(used.key.clone(), (used.position, used.at_ms));
        self.used.push_back(used);
    }

    fn forget(&mut self, now_ms: i64) {
        while let Some(oldest) = self.used.front()
            && (end_of(oldest.at_ms) <= now_ms || self.used.len() > Ledger::MAX_KEYS)
        {
            // A key that was used again since then stays known by its later use.
            if self.newest.get(&oldest.key).is_some_and(|(position, _)| *position == oldest.position) {
                self.newest.remove(&oldest.key);
            }
            self.used.pop_front();
        }
    }
}

fn end_of(at_ms: i64) -> i64 {
    at_ms.saturating_add(i64::try_from(Ledger::KEY_WINDOW.as_millis()).unwrap_or(i64::MAX))
}

// What is kept is the list; the table is made from it.
impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.used == other.used
    }
}

impl Eq for Keys {}

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.used.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut keys = Self::default();
        for used in Vec::<Used>::deserialize(deserializer)? {
            keys.remember(used);
        }
        Ok(keys)
    }
}
