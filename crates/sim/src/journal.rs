//! The disk of a run: a journal that every node sees through a wire of its own, and what goes wrong with either.
//!
//! A node that crashes is cut off: nothing it still tries returns, and nothing reaches the store. What it had in flight
//! was either written before or never is; only a write that the network lost sight of may arrive late.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use switchboard_journal::{
    AppendError, BackendError, Entry, Journal, MemoryJournal, Payload, ReadError, Seq, Sharing, Snapshot,
    StreamHead, StreamId, Tail,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ledger::{Broken, Ledger};
use crate::trace::Trace;

/// How likely each fault is, from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    /// A write is refused.
    pub refuse: f64,
    /// A write is taken, but the node does not learn so.
    pub unknown_written: f64,
    /// A write is not taken, but the node does not learn so.
    pub unknown_lost: f64,
    /// A write whose fate the node does not learn is taken a while later. Only where several nodes write.
    pub unknown_late: f64,
    /// The node crashes before the write is taken.
    pub crash_before: f64,
    /// The node crashes after the write was taken.
    pub crash_after: f64,
    /// A write or a read takes a while.
    pub delay: f64,
    /// A read fails.
    pub read_error: f64,
    /// Following a stream ends with an error.
    pub tail_error: f64,
}

/// Where in the life of a run its one crash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashAt {
    /// At the write with this number, counted from 1; snapshots and trims are writes too.
    pub write: u64,
    /// Whether the write is taken.
    pub after: bool,
}

/// What goes wrong.
#[derive(Debug)]
pub enum Faults {
    /// Nothing.
    None,
    /// Whatever the dice say.
    Random {
        /// The dice.
        rng: Box<StdRng>,
        /// How likely each fault is.
        rates: Rates,
        /// Whether everything is much more likely for the moment.
        storm: bool,
        /// Whether nothing can be read for the moment.
        blind: bool,
    },
    /// One crash.
    Crash(CrashAt),
}

/// What becomes of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Taken,
    Refused,
    UnknownWritten,
    UnknownLost,
    UnknownLate(Duration),
    CrashBefore,
    CrashAfter,
}

impl Faults {
    /// Random faults from `seed`.
    pub fn random(seed: u64, rates: Rates) -> Self {
        Self::Random { rng: Box::new(StdRng::seed_from_u64(seed)), rates, storm: false, blind: false }
    }

    fn roll(&mut self, rate: impl FnOnce(&Rates) -> f64) -> bool {
        let Self::Random { rng, rates, storm, .. } = self else { return false };
        let rate = rate(rates) * if *storm { 8.0 } else { 1.0 };
        rate > 0.0 && rng.random_bool(rate.min(0.7))
    }

    fn delay(&mut self) -> Duration {
        if !self.roll(|rates| rates.delay) {
            return Duration::ZERO;
        }
        let Self::Random { rng, .. } = self else { return Duration::ZERO };
        // Mostly as long as a disk or a network takes, now and then as long as one that is in trouble.
        let longest = if rng.random_bool(0.05) { 5_000 } else { 40 };
        Duration::from_millis(rng.random_range(1..=longest))
    }

    fn fate(&mut self, write: u64, sharing: Sharing) -> Fate {
        if let Self::Crash(at) = self {
            return match (at.write == write, at.after) {
                (true, false) => Fate::CrashBefore,
                (true, true) => Fate::CrashAfter,
                (false, _) => Fate::Taken,
            };
        }
        if self.roll(|rates| rates.refuse) {
            Fate::Refused
        } else if self.roll(|rates| rates.unknown_written) {
            Fate::UnknownWritten
        } else if self.roll(|rates| rates.unknown_lost) {
            Fate::UnknownLost
        } else if sharing == Sharing::Shared && self.roll(|rates| rates.unknown_late) {
            let Self::Random { rng, .. } = self else { return Fate::Taken };
            Fate::UnknownLate(Duration::from_millis(rng.random_range(1..=2_000)))
        } else if self.roll(|rates| rates.crash_before) {
            Fate::CrashBefore
        } else if self.roll(|rates| rates.crash_after) {
            Fate::CrashAfter
        } else {
            Fate::Taken
        }
    }
}

/// What survives every crash, with a record of all that was ever appended.
#[derive(Debug)]
pub struct Store {
    journal: MemoryJournal,
    trace: Arc<Trace>,
    state: Mutex<State>,
    /// Wakes who follows a stream, first come first: the journal's own tails are woken in an order that no seed decides.
    news: Notify,
    /// Reads what is written in place of the ledgers.
    reader: Option<Reader>,
}

/// Reads each entry as it is written, and says which rules it breaks.
#[derive(Clone)]
pub struct Reader(Arc<Read>);

type Read = dyn Fn(&StreamId, &str) -> Vec<Broken> + Send + Sync;

impl Reader {
    /// Whoever reads like `read`.
    pub fn new(read: impl Fn(&StreamId, &str) -> Vec<Broken> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

#[derive(Debug)]
struct State {
    faults: Faults,
    writes: u64,
    history: BTreeMap<StreamId, Vec<Payload>>,
    ledgers: BTreeMap<StreamId, Ledger>,
    broken: Vec<Broken>,
}

impl Store {
    /// An empty store.
    pub fn new(sharing: Sharing, faults: Faults, trace: Arc<Trace>) -> Self {
        let journal = match sharing {
            Sharing::Exclusive => MemoryJournal::new(),
            Sharing::Shared => MemoryJournal::shared(),
        };
        let state = State {
            faults,
            writes: 0,
            history: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            broken: Vec::new(),
        };
        Self { journal, trace, state: Mutex::new(state), news: Notify::new(), reader: None }
    }

    /// An empty store whose entries `reader` reads: they are not those of the ledgers.
    pub fn read_by(reader: Reader, sharing: Sharing, faults: Faults, trace: Arc<Trace>) -> Self {
        Self { reader: Some(reader), ..Self::new(sharing, faults, trace) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last entry of `stream`.
    pub fn head(&self, stream: &StreamId) -> u64 {
        self.state().history.get(stream).map_or(0, |entries| entries.len() as u64)
    }

    /// The streams that have entries.
    pub fn streams(&self) -> Vec<StreamId> {
        self.state().history.keys().cloned().collect()
    }

    /// An entry, also one that was trimmed.
    pub fn entry(&self, stream: &StreamId, seq: u64) -> Option<Payload> {
        let index = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.state().history.get(stream)?.get(index).cloned()
    }

    /// Looks into the books of `stream`.
    pub fn ledger<T>(&self, stream: &StreamId, look: impl FnOnce(&Ledger) -> T) -> T {
        look(self.state().ledgers.entry(stream.clone()).or_default())
    }

    /// Notes that a rule was broken.
    pub fn note_broken(&self, rule: Broken) {
        self.trace.note(format_args!("BROKEN: {rule}"));
        self.state().broken.push(rule);
    }

    /// The rules that were broken so far.
    pub fn broken(&self) -> Vec<Broken> {
        self.state().broken.clone()
    }

    /// How many writes there were.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// From now on, or for the moment, faults are much more likely.
    pub fn set_storm(&self, storms: bool) {
        if let Faults::Random { storm, .. } = &mut self.state().faults {
            *storm = storms;
        }
    }

    /// From now on, or for the moment, nothing can be read.
    pub fn set_blind(&self, blinds: bool) {
        if let Faults::Random { blind, .. } = &mut self.state().faults {
            *blind = blinds;
        }
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.state().faults = Faults::None;
    }

    /// Whether the faults have stopped.
    pub fn is_healed(&self) -> bool {
        matches!(self.state().faults, Faults::None)
    }

    fn write(&self, stream: &StreamId, after: Seq, payload: Payload) -> Result<Seq, AppendError> {
        let appended = self.journal.append(stream, after, payload.clone()).now_or_never();
        let appended = appended.expect("a journal in memory answers at once");
        if let Ok(seq) = appended {
            self.trace.note(format_args!("{stream} #{seq} {}", payload.as_str()));
            let mut state = self.state();
            let broken = match &self.reader {
                Some(Reader(read)) => read(stream, payload.as_str()),
                None => state.ledgers.entry(stream.clone()).or_default().enter(seq.get(), payload.as_str()),
            };
            state.history.entry(stream.clone()).or_default().push(payload);
            drop(state);
            for rule in broken {
                self.note_broken(rule);
            }
            self.news.notify_waiters();
        }
        appended
    }
}

/// One node's wire to the store.
#[derive(Debug, Clone)]
pub struct SimJournal {
    store: Arc<Store>,
    node: Arc<str>,
    /// Cancelled when the node crashes.
    dead: CancellationToken,
}

impl SimJournal {
    /// The wire of `node`, which is cut when `dead` is cancelled.
    pub fn new(store: Arc<Store>, node: impl Into<Arc<str>>, dead: CancellationToken) -> Self {
        Self { store, node: node.into(), dead }
    }

    /// Returns only on a node that lives.
    async fn alive(&self) {
        if self.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    async fn crash<T>(&self, when: &str) -> T {
        self.store.trace.note(format_args!("{} crashes {when} a write", self.node));
        self.dead.cancel();
        std::future::pending().await
    }

    async fn pass(&self) {
        self.alive().await;
        let delay = self.store.state().faults.delay();
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
            self.alive().await;
        }
    }

    /// Lets `write` happen or not.
    async fn attempt<T>(
        &self,
        what: &str,
        write: impl FnOnce() -> Result<T, AppendError> + Send + 'static,
    ) -> Result<T, AppendError> {
        self.pass().await;
        let fate = {
            let mut state = self.store.state();
            state.writes += 1;
            let number = state.writes;
            state.faults.fate(number, self.store.journal.sharing())
        };
        if fate != Fate::Taken {
            self.store.trace.note(format_args!("{} {what}: {fate:?}", self.node));
        }
        match fate {
            Fate::Taken => {
                let written = write();
                self.pass().await;
                written
            }
            Fate::Refused => Err(AppendError::Unavailable(BackendError::new("simulated: disk full"))),
            Fate::UnknownWritten => {
                let _ = write();
                Err(unknown())
            }
            Fate::UnknownLost => Err(unknown()),
            Fate::UnknownLate(delay) => {
                let write = move || {
                    let _ = write();
                };
                late(delay, write);
                Err(unknown())
            }
            Fate::CrashBefore => self.crash("before").await,
            Fate::CrashAfter => {
                let _ = write();
                self.crash("after").await
            }
        }
    }

    /// The entry after `after`, once there is one.
    async fn following(&self, stream: &StreamId, after: Seq) -> Result<Entry, ReadError> {
        loop {
            let news = self.store.news.notified();
            let mut entries = self.store.journal.read(stream, after, NonZeroUsize::MIN).await?;
            if entries.is_empty() {
                news.await;
                continue;
            }
            self.pass().await;
            if self.store.state().faults.roll(|rates| rates.tail_error) {
                return Err(ReadError::Unavailable(BackendError::new("simulated: connection lost")));
            }
            return Ok(entries.remove(0));
        }
    }

    async fn readable(&self) -> Result<(), ReadError> {
        self.pass().await;
        let fails = {
            let faults = &mut self.store.state().faults;
            matches!(faults, Faults::Random { blind: true, .. }) || faults.roll(|rates| rates.read_error)
        };
        if fails {
            self.store.trace.note(format_args!("{} cannot read", self.node));
            return Err(ReadError::Unavailable(BackendError::new("simulated: read error")));
        }
        Ok(())
    }
}

fn late(delay: Duration, write: impl FnOnce() + Send + 'static) {
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        write();
    });
}

fn unknown() -> AppendError {
    AppendError::Unknown(BackendError::new("simulated: connection lost"))
}

impl Journal for SimJournal {
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let (store, to) = (self.store.clone(), stream.clone());
        async move { self.attempt("append", move || store.write(&to, after, payload)).await }.boxed()
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ReadError>> {
        async move {
            self.readable().await?;
            self.store.journal.read(stream, after, limit).await
        }
        .boxed()
    }

    fn tail(&self, stream: &StreamId, after: Seq) -> Tail {
        let follower = (self.clone(), stream.clone(), after);
        futures::stream::unfold(Some(follower), |follower| async move {
            let (wire, stream, after) = follower?;
            let next = wire.following(&stream, after).await;
            let follower = next.is_ok().then(|| (wire, stream, after.next()));
            Some((next, follower))
        })
        .boxed()
    }

    fn head<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Seq, ReadError>> {
        async move {
            self.readable().await?;
            self.store.journal.head(stream).await
        }
        .boxed()
    }

    fn save_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
        snapshot: Snapshot,
    ) -> BoxFuture<'a, Result<(), AppendError>> {
        let (journal, of) = (self.store.journal.clone(), stream.clone());
        let save = move || journal.save_snapshot(&of, snapshot).now_or_never().expect("it is in memory");
        async move { self.attempt("snapshot", save).await }.boxed()
    }

    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>> {
        async move {
            self.readable().await?;
            self.store.journal.load_snapshot(stream).await
        }
        .boxed()
    }

    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>> {
        let (journal, of) = (self.store.journal.clone(), stream.clone());
        let trim = move || journal.trim(&of, up_to).now_or_never().expect("it is in memory");
        async move { self.attempt("trim", trim).await }.boxed()
    }

    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>> {
        self.store.journal.redact(stream, seqs)
    }

    fn streams<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a StreamId>,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<StreamHead>, ReadError>> {
        async move {
            self.readable().await?;
            self.store.journal.streams(prefix, after, limit).await
        }
        .boxed()
    }

    fn sharing(&self) -> Sharing {
        self.store.journal.sharing()
    }
}
