//! The bus's stream of the journal: finds positions in it and reads on from them.
//!
//! Each entry holds events of consecutive positions, so positions grow with the numbers of entries, and the entry of a
//! position is found by halving. Where readers usually go on, at the end of what was read before, is remembered.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use switchboard_exchange::{CommandError, Machine as _, Record};
use switchboard_journal::{Entry, Journal, ReadError, Seq, StreamId};

use crate::{BusError, Event, Filter, Ledger, Position, Published};

/// What one reading gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The matching events, oldest first.
    pub events: Vec<Event>,
    /// Where to go on: everything up to here was looked at, whether or not it matched.
    pub next: Position,
    /// Whether there was more to look at when this page was full.
    pub more: bool,
    /// Set if events after the position asked for are gone: the oldest position that is left, where this page begins.
    pub missed: Option<Position>,
}

/// How much one reading looks at, in bytes of the journal, before it gives what it has.
const SCAN_BYTES: usize = 16 << 20;

/// How much one page holds, in bytes of data; it may be more by one event.
const PAGE_BYTES: usize = 1 << 20;

/// How many entries are read at once at most.
const CHUNK: usize = 256;

/// About how many bytes are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// How many places are remembered.
const PLACES: usize = 4_096;

/// The journal's stream of events. Cheap to clone; all clones remember the same places.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    journal: Arc<dyn Journal>,
    stream: StreamId,
    /// The last position in an entry, and the number of that entry.
    places: Arc<Mutex<BTreeMap<Position, Seq>>>,
}

/// An entry, understood.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) seq: Seq,
    pub(crate) published: Vec<Published>,
}

impl Decoded {
    /// The position before its first event; none if it holds none, having been redacted.
    pub(crate) fn before(&self) -> Option<Position> {
        self.published.first().map(|batch| Position::new(batch.first.get().saturating_sub(1)))
    }

    /// The position of its last event.
    pub(crate) fn last(&self) -> Option<Position> {
        self.published.last().map(Published::last)
    }

    /// The matching events after `after`.
    pub(crate) fn events(&self, filter: &Filter, after: Position) -> impl Iterator<Item = Event> {
        self.published.iter().flat_map(move |batch| {
            let at = Timestamp::from_millisecond(batch.at_ms).unwrap_or(Timestamp::MAX);
            let numbered = (batch.first.get()..).map(Position::new).zip(&batch.events);
            numbered.filter(move |(position, event)| *position > after && filter.matches(&event.topic)).map(
                move |(position, event)| Event {
                    position,
                    topic: event.topic.clone(),
                    data: event.data.clone(),
                    source: event.source.clone(),
                    at,
                },
            )
        })
    }
}

/// A page in the making.
struct Draft<'f> {
    filter: &'f Filter,
    limit: usize,
    page: Page,
    bytes: usize,
}

impl<'f> Draft<'f> {
    fn new(filter: &'f Filter, after: Position, limit: NonZeroUsize) -> Self {
        let page = Page { events: Vec::new(), next: after, more: false, missed: None };
        Self { filter, limit: limit.get(), page, bytes: 0 }
    }

    /// Takes what matches; whether there is room for more.
    fn take(&mut self, entry: &Decoded) -> bool {
        let after = self.page.next;
        if let Some(before) = entry.before()
            && before > after
        {
            // Numbers have no gaps, so what lies between is gone.
            self.page.missed.get_or_insert(before.plus(1));
            self.page.next = before;
        }
        for event in entry.events(self.filter, after) {
            if self.page.events.len() == self.limit || self.bytes >= PAGE_BYTES {
                return false;
            }
            self.bytes += event.data.get().len();
            self.page.next = event.position;
            self.page.events.push(event);
        }
        self.page.next = self.page.next.max(entry.last().unwrap_or_default());
        true
    }
}

impl Log {
    pub(crate) fn new(journal: Arc<dyn Journal>, stream: StreamId) -> Self {
        Self { journal, stream, places: Arc::default() }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    pub(crate) fn stream(&self) -> &StreamId {
        &self.stream
    }

    /// Understands an entry.
    pub(crate) fn decode(&self, entry: &Entry) -> Result<Decoded, BusError> {
        let damaged = |why: String| CommandError::Damaged {
            stream: self.stream.clone(),
            entry: entry.seq.get(),
            why: why.into(),
        };
        let record: Record<Published> =
            serde_json::from_str(entry.payload.as_str()).map_err(|error| damaged(error.to_string()))?;
        if record.v > Ledger::VERSION {
            return Err(damaged(format!(
                "it is of format version {}, this program reads up to {}: run a newer switchboard",
                record.v,
                Ledger::VERSION
            )));
        }
        Ok(Decoded { seq: entry.seq, published: record.events })
    }

    /// A page of at most `limit` matching events after `after`, and the last entry that was looked at in full.
    ///
    /// `newest` is a position that the journal has, or had; nothing up to it is passed over in silence.
    pub(crate) async fn read(
        &self,
        filter: &Filter,
        after: Position,
        limit: NonZeroUsize,
        newest: Position,
    ) -> Result<(Page, Seq), BusError> {
        let mut draft = Draft::new(filter, after, limit);
        let mut seq = self.find(after).await?;
        let mut pace = Pace::default();
        loop {
            let entries = match self.journal.read(&self.stream, seq, pace.entries()).await {
                Ok(entries) => entries,
                // What is left shows by its positions that there was more.
                Err(ReadError::Trimmed { trimmed, .. }) => {
                    seq = trimmed;
                    continue;
                }
                Err(error) => return Err(CommandError::Unreadable(error)),
            };
            let ended = entries.len() < pace.entries().get();
            let mut bytes = 0;
            for entry in &entries {
                bytes += entry.payload.as_str().len();
                let decoded = self.decode(entry)?;
                let has_room = draft.take(&decoded);
                self.remember(&decoded);
                if !has_room {
                    draft.page.more = true;
                    return Ok((draft.page, seq));
                }
                seq = entry.seq;
            }
            if ended {
                if draft.page.next < newest {
                    draft.page.missed.get_or_insert(newest.plus(1));
                    draft.page.next = newest;
                }
                return Ok((draft.page, seq));
            }
            if pace.add(bytes) >= SCAN_BYTES {
                draft.page.more = true;
                return Ok((draft.page, seq));
            }
        }
    }

    /// The last `limit` matching events, oldest first, of as many as one reading looks at; whether older ones may match.
    pub(crate) async fn latest(
        &self,
        filter: &Filter,
        limit: NonZeroUsize,
        newest: Position,
    ) -> Result<Page, BusError> {
        let mut page = Page { events: Vec::new(), next: newest, more: false, missed: None };
        let mut end = self.journal.head(&self.stream).await.map_err(CommandError::Unreadable)?;
        let (mut pace, mut bytes) = (Pace::default(), 0);
        while end > Seq::START {
            let wanted = pace.entries().get() as u64;
            let mut begin = Seq::new(end.get().saturating_sub(wanted));
            let entries = loop {
                let count = usize::try_from(end.since(begin)).ok().and_then(NonZeroUsize::new);
                let Some(count) = count else { return Ok(page) };
                match self.journal.read(&self.stream, begin, count).await {
                    Ok(entries) => break entries,
                    Err(ReadError::Trimmed { trimmed, .. }) => begin = trimmed,
                    Err(error) => return Err(CommandError::Unreadable(error)),
                }
            };
            let mut read = 0;
            for entry in entries.iter().rev() {
                read += entry.payload.as_str().len();
                let decoded = self.decode(entry)?;
                if page.next < decoded.last().unwrap_or_default() {
                    page.next = decoded.last().unwrap_or_default();
                }
                let mut matching: Vec<_> = decoded.events(filter, Position::START).collect();
                while let Some(event) = matching.pop() {
                    if page.events.len() == limit.get() || bytes >= PAGE_BYTES {
                        page.more = true;
                        page.events.reverse();
                        return Ok(page);
                    }
                    bytes += event.data.get().len();
                    page.events.push(event);
                }
            }
            end = begin;
            if pace.add(read) >= SCAN_BYTES {
                page.more = end > Seq::START;
                break;
            }
        }
        page.events.reverse();
        Ok(page)
    }

    /// The greatest entry after which every event after `after` that is left is found.
    async fn find(&self, after: Position) -> Result<Seq, BusError> {
        let (mut low, mut high) = {
            let places = self.places();
            let low = places.range(..=after).next_back();
            if let Some((position, seq)) = low
                && *position == after
            {
                return Ok(*seq);
            }
            let high = places.range(after..).next().map(|(_, seq)| Seq::new(seq.get().saturating_sub(1)));
            (low.map(|(_, seq)| *seq), high)
        };
        if after == Position::START {
            return Ok(Seq::START);
        }
        if low.is_none() {
            low = Some(self.trimmed().await?);
        }
        if high.is_none() {
            high = Some(self.journal.head(&self.stream).await.map_err(CommandError::Unreadable)?);
        }
        let (low, high) = (low.unwrap_or_default(), high.unwrap_or_default());
        self.halve(low, high, |entry| entry.last().is_some_and(|last| last <= after)).await
    }

    /// The last entry that is gone.
    pub(crate) async fn trimmed(&self) -> Result<Seq, BusError> {
        match self.journal.read(&self.stream, Seq::START, NonZeroUsize::MIN).await {
            Ok(_) => Ok(Seq::START),
            Err(ReadError::Trimmed { trimmed, .. }) => Ok(trimmed),
            Err(error) => Err(CommandError::Unreadable(error)),
        }
    }

    /// The last entry in `low..=high` of which `holds` is true, given that it is true of `low` and of all entries before
    /// one of which it is true. Entries without events count as the next one that has some.
    pub(crate) async fn halve(
        &self,
        low: Seq,
        high: Seq,
        holds: impl Fn(&Decoded) -> bool,
    ) -> Result<Seq, BusError> {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = Seq::new(low.get() + (high.get() - low.get()).div_ceil(2));
            match self.first_with_events(middle, high).await? {
                Probe::Found(entry) => {
                    self.remember(&entry);
                    if holds(&entry) {
                        low = entry.seq;
                    } else {
                        high = Seq::new(middle.get() - 1);
                    }
                }
                Probe::Nothing => high = Seq::new(middle.get() - 1),
                Probe::Trimmed(trimmed) => {
                    low = low.max(trimmed);
                    high = high.max(low);
                }
            }
        }
        Ok(low)
    }

    /// The first entry in `from..=to` that holds events.
    pub(crate) async fn first_with_events(&self, from: Seq, to: Seq) -> Result<Probe, BusError> {
        let mut seq = from;
        while seq <= to {
            let before = Seq::new(seq.get() - 1);
            let entries = match self.journal.read(&self.stream, before, NonZeroUsize::MIN).await {
                Ok(entries) => entries,
                Err(ReadError::Trimmed { trimmed, .. }) => return Ok(Probe::Trimmed(trimmed)),
                Err(error) => return Err(CommandError::Unreadable(error)),
            };
            let Some(entry) = entries.first() else { return Ok(Probe::Nothing) };
            let decoded = self.decode(entry)?;
            if !decoded.published.is_empty() {
                return Ok(Probe::Found(decoded));
            }
            seq = seq.next();
        }
        Ok(Probe::Nothing)
    }

    fn remember(&self, entry: &Decoded) {
        let Some(last) = entry.last() else { return };
        let mut places = self.places();
        places.insert(last, entry.seq);
        if places.len() > PLACES {
            places.pop_first();
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Position, Seq>> {
        // Nothing panics while it is held.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) enum Probe {
    Found(Decoded),
    /// Only entries without events.
    Nothing,
    Trimmed(Seq),
}

impl Probe {
    pub(crate) fn found(self) -> Option<Decoded> {
        match self {
            Self::Found(entry) => Some(entry),
            Self::Nothing | Self::Trimmed(_) => None,
        }
    }
}

/// How many entries to read at once, so that they are neither too many nor too large.
struct Pace {
    entries: usize,
    bytes: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { entries: 16, bytes: 0 }
    }
}

impl Pace {
    fn entries(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.entries).unwrap_or(NonZeroUsize::MIN)
    }

    /// Takes note of what was read; how much it was in all.
    fn add(&mut self, bytes: usize) -> usize {
        self.bytes += bytes;
        self.entries =
            if bytes < CHUNK_BYTES { (self.entries * 2).min(CHUNK) } else { (self.entries / 2).max(1) };
        self.bytes
    }
}
