//! The machine, the clock and the journal of these tests.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};
use switchboard_exchange::{
    Clock, CommandError, CommandId, Decide, Decision, Exchange, Machine, Options, SignedDuration, Timestamp,
};
use switchboard_journal::{
    AppendError, BackendError, Entry, Journal, MemoryJournal, Payload, ReadError, Seq, Sharing, Snapshot,
    StreamHead, StreamId, Tail,
};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

// ---- the machine ---------------------------------------------------------------------------------------------------

/// Counts, and rings when it is time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) total: i64,
    pub(crate) rung: u32,
    pub(crate) abandoned: u32,
    alarm: Option<Timestamp>,
    /// Soft: how many calls it noted.
    #[serde(skip)]
    pub(crate) noted: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    Added(i64),
    Padded(String),
    AlarmSet(Timestamp),
    Rang,
    Abandoned,
    Poisoned,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no")]
pub(crate) struct Refused;

impl Machine for Counter {
    const VERSION: u32 = 1;
    type Settings = ();
    type Event = Event;
    type Rejection = Refused;

    fn new() -> Self {
        Self::default()
    }

    fn configure(&mut self, (): &()) {}

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Added(number) => self.total += number,
            Event::Padded(_) => {}
            Event::AlarmSet(at) => self.alarm = Some(*at),
            Event::Rang => {
                self.rung += 1;
                self.alarm = None;
            }
            Event::Abandoned => self.abandoned += 1,
            Event::Poisoned => panic!("an event that cannot be applied"),
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.alarm
    }

    fn tick(&self, now: Timestamp) -> Vec<Event> {
        self.alarm.filter(|at| *at <= now).map(|_| Event::Rang).into_iter().collect()
    }

    fn ticked(&mut self, _now: Timestamp) {}

    fn resume(&mut self, _now: Timestamp) {}

    fn abandon(&self, _now: Timestamp) -> Vec<Event> {
        if self.total > 0 { vec![Event::Abandoned] } else { Vec::new() }
    }

    fn adopt(&mut self, stale: Self) {
        self.noted = stale.noted;
    }
}

/// Adds a number; the reply is the new total. Zero changes nothing, a negative number is refused.
pub(crate) struct Add(pub(crate) i64);

impl Decide<Add> for Counter {
    type Reply = i64;
    const NAME: &'static str = "add";

    fn decide(&self, _now: Timestamp, Add(number): &Add) -> Result<Decision<Event, i64>, Refused> {
        match number {
            ..0 => Err(Refused),
            0 => Ok(Decision::unchanged(self.total)),
            number => Ok(Decision::event(Event::Added(*number), self.total + number)),
        }
    }

    fn observe(&mut self, _now: Timestamp, _command: &Add, _accepted: bool) -> Option<Event> {
        self.noted += 1;
        None
    }
}

/// The total.
pub(crate) struct Read;

impl Decide<Read> for Counter {
    type Reply = i64;
    const NAME: &'static str = "read";

    fn decide(&self, _now: Timestamp, _command: &Read) -> Result<Decision<Event, i64>, Refused> {
        Ok(Decision::unchanged(self.total))
    }
}

/// Takes so many bytes of the journal.
pub(crate) struct Pad(pub(crate) usize);

impl Decide<Pad> for Counter {
    type Reply = ();
    const NAME: &'static str = "pad";

    fn decide(&self, _now: Timestamp, Pad(bytes): &Pad) -> Result<Decision<Event, ()>, Refused> {
        Ok(Decision::event(Event::Padded("x".repeat(*bytes)), ()))
    }
}

/// Adds one, with a reply of so many bytes.
pub(crate) struct Boast(pub(crate) usize);

impl Decide<Boast> for Counter {
    type Reply = String;
    const NAME: &'static str = "boast";

    fn decide(&self, _now: Timestamp, Boast(bytes): &Boast) -> Result<Decision<Event, String>, Refused> {
        Ok(Decision::event(Event::Added(1), "x".repeat(*bytes)))
    }
}

/// Sets the alarm; the reply says how often it rang before.
pub(crate) struct SetAlarm(pub(crate) Timestamp);

impl Decide<SetAlarm> for Counter {
    type Reply = u32;
    const NAME: &'static str = "set_alarm";

    fn decide(&self, _now: Timestamp, SetAlarm(at): &SetAlarm) -> Result<Decision<Event, u32>, Refused> {
        Ok(Decision::event(Event::AlarmSet(*at), self.rung))
    }
}

/// Panics, when it is decided or when its event is applied.
pub(crate) enum Break {
    Deciding,
    Applying,
}

impl Decide<Break> for Counter {
    type Reply = ();
    const NAME: &'static str = "break";

    fn decide(&self, _now: Timestamp, command: &Break) -> Result<Decision<Event, ()>, Refused> {
        match command {
            Break::Deciding => panic!("a rule with a mistake"),
            Break::Applying => Ok(Decision::event(Event::Poisoned, ())),
        }
    }
}

// ---- the clock -----------------------------------------------------------------------------------------------------

/// Stands still until it is moved.
#[derive(Debug, Clone)]
pub(crate) struct ManualClock(Arc<watch::Sender<Timestamp>>);

impl ManualClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Timestamp::UNIX_EPOCH)))
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.0.send_modify(|now| *now += SignedDuration::from_secs(seconds));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let mut time = self.0.subscribe();
        async move {
            if time.wait_for(|now| *now >= deadline).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}

// ---- the journal ---------------------------------------------------------------------------------------------------

/// What becomes of an append.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// Another node adds this number first.
    Overtaken(i64),
    Unavailable,
    /// Nobody learns whether it was written; it was.
    UnknownWritten,
    /// Nobody learns whether it was written; it was not.
    UnknownLost,
}

/// A journal in memory that does as it is told.
#[derive(Debug, Clone)]
pub(crate) struct TestJournal {
    pub(crate) memory: MemoryJournal,
    control: Arc<Control>,
}

#[derive(Debug)]
struct Control {
    fates: Mutex<VecDeque<Fate>>,
    gated: AtomicBool,
    gate: Semaphore,
    unreadable: AtomicBool,
    appends: watch::Sender<usize>,
}

impl TestJournal {
    pub(crate) fn new() -> Self {
        Self::over(MemoryJournal::new())
    }

    pub(crate) fn over(memory: MemoryJournal) -> Self {
        let control = Control {
            fates: Mutex::default(),
            gated: AtomicBool::new(false),
            gate: Semaphore::new(0),
            unreadable: AtomicBool::new(false),
            appends: watch::Sender::new(0),
        };
        Self { memory, control: Arc::new(control) }
    }

    /// The next appends meet these fates, the others succeed.
    pub(crate) fn next(&self, fates: impl IntoIterator<Item = Fate>) {
        self.control.fates.lock().unwrap().extend(fates);
    }

    /// From now on each append waits to be let through.
    pub(crate) fn close_gate(&self) {
        self.control.gated.store(true, SeqCst);
    }

    pub(crate) fn let_through(&self, appends: usize) {
        self.control.gate.add_permits(appends);
    }

    pub(crate) fn open_gate(&self) {
        self.control.gated.store(false, SeqCst);
        self.let_through(1_000);
    }

    pub(crate) fn set_unreadable(&self, unreadable: bool) {
        self.control.unreadable.store(unreadable, SeqCst);
    }

    /// How many appends were begun.
    pub(crate) fn appends(&self) -> usize {
        *self.control.appends.borrow()
    }

    /// Resolves once so many appends were begun.
    pub(crate) async fn begun(&self, appends: usize) {
        self.control.appends.subscribe().wait_for(|begun| *begun >= appends).await.unwrap();
    }

    /// The texts of the entries after `after`.
    pub(crate) async fn entries(&self, stream: &StreamId, after: u64) -> Vec<String> {
        let entries = self.memory.read(stream, Seq::new(after), NonZeroUsize::MAX).await.unwrap();
        entries.iter().map(|entry| entry.payload.as_str().to_owned()).collect()
    }

    /// Writes an entry past the exchange.
    pub(crate) async fn write(&self, stream: &StreamId, json: &str) -> Seq {
        let head = self.memory.head(stream).await.unwrap();
        self.memory.append(stream, head, Payload::new(json).unwrap()).await.unwrap()
    }

    fn check_readable(&self) -> Result<(), ReadError> {
        if self.control.unreadable.load(SeqCst) {
            return Err(ReadError::Unavailable(BackendError::new("unreadable by order")));
        }
        Ok(())
    }
}

pub(crate) fn entry(events: &str) -> String {
    format!(r#"{{"v":1,"at":"1970-01-01T00:00:00Z","events":[{events}]}}"#)
}

impl Journal for TestJournal {
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        async move {
            self.control.appends.send_modify(|appends| *appends += 1);
            if self.control.gated.load(SeqCst) {
                self.control.gate.acquire().await.unwrap().forget();
            }
            let fate = self.control.fates.lock().unwrap().pop_front();
            match fate {
                None => self.memory.append(stream, after, payload).await,
                Some(Fate::Overtaken(number)) => {
                    self.write(stream, &entry(&format!(r#"{{"added":{number}}}"#))).await;
                    self.memory.append(stream, after, payload).await
                }
                Some(Fate::Unavailable) => Err(AppendError::Unavailable(BackendError::new("full by order"))),
                Some(Fate::UnknownWritten) => {
                    self.memory.append(stream, after, payload).await.unwrap();
                    Err(AppendError::Unknown(BackendError::new("lost its answer by order")))
                }
                Some(Fate::UnknownLost) => Err(AppendError::Unknown(BackendError::new("lost by order"))),
            }
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ReadError>> {
        async move {
            self.check_readable()?;
            self.memory.read(stream, after, limit).await
        }
        .boxed()
    }

    fn tail(&self, stream: &StreamId, after: Seq) -> Tail {
        self.memory.tail(stream, after)
    }

    fn head<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Seq, ReadError>> {
        self.memory.head(stream)
    }

    fn save_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
        snapshot: Snapshot,
    ) -> BoxFuture<'a, Result<(), AppendError>> {
        self.memory.save_snapshot(stream, snapshot)
    }

    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>> {
        async move {
            self.check_readable()?;
            self.memory.load_snapshot(stream).await
        }
        .boxed()
    }

    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>> {
        self.memory.trim(stream, up_to)
    }

    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>> {
        self.memory.redact(stream, seqs)
    }

    fn streams<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a StreamId>,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<StreamHead>, ReadError>> {
        self.memory.streams(prefix, after, limit)
    }

    fn sharing(&self) -> Sharing {
        self.memory.sharing()
    }
}

// ---- the stage -----------------------------------------------------------------------------------------------------

pub(crate) type Outcome<T> = Result<T, CommandError<Refused>>;

/// An exchange over a journal, and one stream of it.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) exchange: Exchange<Counter>,
    pub(crate) journal: TestJournal,
    pub(crate) clock: ManualClock,
    pub(crate) stream: StreamId,
    options: Options,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        Self::over(TestJournal::new(), ManualClock::new(), options)
    }

    pub(crate) fn over(journal: TestJournal, clock: ManualClock, options: Options) -> Self {
        let exchange = Exchange::new(Arc::new(journal.clone()), Arc::new(clock.clone()), (), options.clone());
        Self { exchange, journal, clock, stream: StreamId::new("counter/one").unwrap(), options }
    }

    /// The next process, over what the journal holds. The one before is stopped.
    pub(crate) async fn restart(&self) -> Self {
        self.exchange.stop().await;
        Self::over(self.journal.clone(), self.clock.clone(), self.options.clone())
    }

    /// Another node over the same journal, with faults of its own.
    pub(crate) fn other_node(&self) -> Self {
        Self::over(TestJournal::over(self.journal.memory.clone()), self.clock.clone(), self.options.clone())
    }

    pub(crate) async fn send<C>(&self, command: C) -> Outcome<<Counter as Decide<C>>::Reply>
    where
        Counter: Decide<C>,
        C: Send + 'static,
    {
        self.exchange.send(&self.stream, command, None).await
    }

    pub(crate) async fn send_as<C>(&self, id: &str, command: C) -> Outcome<<Counter as Decide<C>>::Reply>
    where
        Counter: Decide<C>,
        C: Send + 'static,
    {
        self.exchange.send(&self.stream, command, Some(CommandId::new(id).unwrap())).await
    }

    /// Sends without waiting; the command is in the stream's queue when this returns.
    pub(crate) async fn begin<C>(&self, command: C) -> Begun<<Counter as Decide<C>>::Reply>
    where
        Counter: Decide<C>,
        C: Send + 'static,
    {
        self.begin_with(command, None).await
    }

    pub(crate) async fn begin_as<C>(&self, id: &str, command: C) -> Begun<<Counter as Decide<C>>::Reply>
    where
        Counter: Decide<C>,
        C: Send + 'static,
    {
        self.begin_with(command, Some(CommandId::new(id).unwrap())).await
    }

    async fn begin_with<C>(&self, command: C, id: Option<CommandId>) -> Begun<<Counter as Decide<C>>::Reply>
    where
        Counter: Decide<C>,
        C: Send + 'static,
    {
        let (exchange, stream) = (self.exchange.clone(), self.stream.clone());
        let begun = tokio::spawn(async move { exchange.send(&stream, command, id).await });
        settle().await;
        Begun(begun)
    }

    /// Occupies the stream's task with an append that waits at the gate: what is begun next makes up one batch.
    pub(crate) async fn hold(&self) -> Begun<i64> {
        self.send(Read).await.unwrap();
        let appends = self.journal.appends();
        self.journal.close_gate();
        let held = self.begin(Add(1)).await;
        self.journal.begun(appends + 1).await;
        held
    }

    pub(crate) async fn total(&self) -> i64 {
        self.send(Read).await.unwrap()
    }
}

/// A call on its way.
pub(crate) struct Begun<T>(JoinHandle<Outcome<T>>);

impl<T> Begun<T> {
    pub(crate) async fn is_answered(&self) -> bool {
        settle().await;
        self.0.is_finished()
    }

    pub(crate) async fn outcome(self) -> Outcome<T> {
        self.0.await.unwrap()
    }

    /// The caller leaves.
    pub(crate) async fn drop_caller(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}

/// Lets every task run until it waits for something: these tests have one thread.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// The numbers of the next entries of a tail.
pub(crate) async fn numbers(tail: &mut Tail, count: usize) -> Vec<u64> {
    tail.take(count).map(|entry| entry.unwrap().seq.get()).collect().await
}
