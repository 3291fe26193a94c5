//! What callers may rely on while the journal is in trouble.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test ends where it cannot go on, and its clock is paused: time passes when nothing else is left to do"
)]

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchboard_exchange::{
    CommandError, CommandId, Decide, Decision, Exchange, Machine, Options, SystemClock, Timestamp,
};
use switchboard_journal::{
    AppendError, BackendError, Entry, Journal, MemoryJournal, Payload, ReadError, Seq, Sharing, Snapshot,
    StreamHead, StreamId, Tail,
};

// ---- a machine: a shelf of books -------------------------------------------------------------------------------------

#[derive(Debug, Default, Serialize, Deserialize)]
struct Shelf {
    books: Vec<String>,
    readers: u32,
}

#[derive(Debug, Serialize, Deserialize)]
enum Event {
    Put(String),
    TakenAll,
    ReaderLeft,
}

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

impl Machine for Shelf {
    const VERSION: u32 = 1;
    type Settings = ();
    type Event = Event;
    type Rejection = Never;

    fn new() -> Self {
        Self { books: Vec::new(), readers: 1 }
    }
    fn configure(&mut self, (): &()) {}
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Put(book) => self.books.push(book.clone()),
            Event::TakenAll => self.books.clear(),
            Event::ReaderLeft => self.readers = 0,
        }
    }
    fn next_deadline(&self) -> Option<Timestamp> {
        None
    }
    fn tick(&self, _now: Timestamp) -> Vec<Event> {
        Vec::new()
    }
    fn ticked(&mut self, _now: Timestamp) {}
    fn resume(&mut self, _now: Timestamp) {}
    fn abandon(&self, _now: Timestamp) -> Vec<Event> {
        let left = (self.readers > 0 && !self.books.is_empty()).then_some(Event::ReaderLeft);
        left.into_iter().collect()
    }
    fn adopt(&mut self, _stale: Self) {}
}

struct Put(&'static str);

impl Decide<Put> for Shelf {
    type Reply = usize;
    const NAME: &'static str = "put";

    fn decide(&self, _now: Timestamp, Put(book): &Put) -> Result<Decision<Event, usize>, Never> {
        Ok(Decision::event(Event::Put((*book).to_owned()), self.books.len() + 1))
    }
}

struct TakeAll;

impl Decide<TakeAll> for Shelf {
    type Reply = Vec<String>;
    const NAME: &'static str = "take_all";

    fn decide(&self, _now: Timestamp, TakeAll: &TakeAll) -> Result<Decision<Event, Vec<String>>, Never> {
        if self.books.is_empty() {
            return Ok(Decision::unchanged(Vec::new()));
        }
        Ok(Decision::event(Event::TakenAll, self.books.clone()))
    }
}

// ---- a journal in trouble --------------------------------------------------------------------------------------------

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    Refused,
    UnknownWritten,
    UnknownLost,
}

/// Does with each append what was set out for it, and reads only while it can.
#[derive(Debug, Clone)]
struct Troubled {
    journal: MemoryJournal,
    appends: Arc<Mutex<VecDeque<Fate>>>,
    unreadable: Arc<Mutex<bool>>,
}

impl Troubled {
    fn new(journal: MemoryJournal) -> Self {
        Self { journal, appends: Arc::default(), unreadable: Arc::default() }
    }

    fn next_appends(&self, fates: &[Fate]) {
        self.appends.lock().unwrap().extend(fates);
    }

    fn set_unreadable(&self, unreadable: bool) {
        *self.unreadable.lock().unwrap() = unreadable;
    }

    fn readable(&self) -> Result<(), ReadError> {
        if *self.unreadable.lock().unwrap() {
            return Err(ReadError::Unavailable(BackendError::new("cannot be read")));
        }
        Ok(())
    }
}

impl Journal for Troubled {
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        async move {
            // A disk takes its time: calls that come meanwhile are decided together.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let fate = self.appends.lock().unwrap().pop_front().unwrap_or(Fate::Fine);
            match fate {
                Fate::Fine => self.journal.append(stream, after, payload).await,
                Fate::Refused => Err(AppendError::Unavailable(BackendError::new("disk full"))),
                Fate::UnknownWritten => {
                    self.journal.append(stream, after, payload).await?;
                    Err(AppendError::Unknown(BackendError::new("connection lost")))
                }
                Fate::UnknownLost => Err(AppendError::Unknown(BackendError::new("connection lost"))),
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
            self.readable()?;
            self.journal.read(stream, after, limit).await
        }
        .boxed()
    }

    fn tail(&self, stream: &StreamId, after: Seq) -> Tail {
        self.journal.tail(stream, after)
    }

    fn head<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Seq, ReadError>> {
        self.journal.head(stream)
    }

    fn save_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
        snapshot: Snapshot,
    ) -> BoxFuture<'a, Result<(), AppendError>> {
        self.journal.save_snapshot(stream, snapshot)
    }

    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>> {
        async move {
            self.readable()?;
            self.journal.load_snapshot(stream).await
        }
        .boxed()
    }

    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>> {
        self.journal.trim(stream, up_to)
    }

    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>> {
        self.journal.redact(stream, seqs)
    }

    fn streams<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a StreamId>,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<StreamHead>, ReadError>> {
        self.journal.streams(prefix, after, limit)
    }

    fn sharing(&self) -> Sharing {
        self.journal.sharing()
    }
}

fn exchange(journal: &Troubled, options: Options) -> Exchange<Shelf> {
    Exchange::new(Arc::new(journal.clone()), Arc::new(SystemClock), (), options)
}

fn stream() -> StreamId {
    StreamId::new("shelf").unwrap()
}

fn id(text: &str) -> Option<CommandId> {
    CommandId::new(text).ok()
}

/// Waits until the write before is under way.
async fn meanwhile<T>(then: impl Future<Output = T>) -> T {
    tokio::time::sleep(Duration::from_millis(1)).await;
    then.await
}

async fn books(exchange: &Exchange<Shelf>) -> Result<Vec<String>, CommandError<Never>> {
    exchange.look(&stream(), |shelf| shelf.books.clone()).await
}

// ---- the rules -------------------------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_repeated_call_gets_its_first_reply_also_while_the_journal_takes_no_writes() {
    let journal = Troubled::new(MemoryJournal::new());
    let shelf = exchange(&journal, Options::default());
    shelf.send(&stream(), Put("Dune"), None).await.unwrap();
    assert_eq!(shelf.send(&stream(), TakeAll, id("take")).await.unwrap(), ["Dune"]);

    journal.next_appends(&[Fate::Fine, Fate::Refused]);
    let of = stream();
    let (written, refused, repeated) = tokio::join!(
        shelf.send(&of, Put("Emma"), None),
        // These two wait for the first, and are decided together.
        meanwhile(shelf.send(&of, Put("Ulysses"), None)),
        meanwhile(shelf.send(&of, TakeAll, id("take"))),
    );
    assert_eq!(written.unwrap(), 1);
    assert!(matches!(refused, Err(CommandError::Unavailable(_))), "{refused:?}");
    assert_eq!(repeated.unwrap(), ["Dune"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_is_refused_where_what_other_nodes_wrote_cannot_be_read() {
    let store = MemoryJournal::shared();
    let (ours, theirs) = (Troubled::new(store.clone()), Troubled::new(store));
    let (here, there) = (exchange(&ours, Options::default()), exchange(&theirs, Options::default()));
    here.send(&stream(), Put("Dune"), None).await.unwrap();

    ours.set_unreadable(true);
    there.send(&stream(), Put("Emma"), None).await.unwrap();
    let blind = here.look(&stream(), |shelf| shelf.books.len()).now_or_never();
    assert!(blind.is_none(), "a look waits for the journal");
    assert!(matches!(books(&here).await, Err(CommandError::Unreadable(_))));

    ours.set_unreadable(false);
    assert_eq!(books(&here).await.unwrap(), ["Dune", "Emma"]);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_the_journal_does_not_hold_never_becomes_a_snapshot() {
    let journal = Troubled::new(MemoryJournal::new());
    let options = Options { snapshot_on_leave: 1, ..Options::default() };
    let shelf = exchange(&journal, options.clone());
    shelf.send(&stream(), Put("Dune"), None).await.unwrap();

    // Two commands decided together: the second saw what the first had decided. Neither is written.
    journal.next_appends(&[Fate::Fine, Fate::UnknownLost]);
    let of = stream();
    let busy = async {
        shelf.send(&of, Put("Emma"), None).await.unwrap();
        journal.set_unreadable(true);
    };
    let ((), first, second) = tokio::join!(
        busy,
        meanwhile(shelf.send(&of, Put("Ulysses"), None)),
        meanwhile(shelf.send(&of, Put("Faust"), None)),
    );
    assert!(matches!((first, second), (Err(CommandError::Unknown(_)), Err(CommandError::Unknown(_)))));
    shelf.stop().await;

    journal.set_unreadable(false);
    assert_eq!(books(&exchange(&journal, options)).await.unwrap(), ["Dune", "Emma"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_sees_only_what_is_durable_and_learns_of_it_without_another_call() {
    let journal = Troubled::new(MemoryJournal::new());
    let shelf = exchange(&journal, Options::default());
    shelf.send(&stream(), Put("Dune"), None).await.unwrap();
    let of = stream();
    let waiting = shelf.wait_for(&of, |shelf| (shelf.books.len() > 2).then(|| shelf.books.clone()));

    // The write is taken, but nobody can say so for a while.
    journal.next_appends(&[Fate::Fine, Fate::UnknownWritten]);
    let writing = async {
        let busy = async {
            shelf.send(&of, Put("Emma"), None).await.unwrap();
            journal.set_unreadable(true);
        };
        let ((), first) = tokio::join!(busy, meanwhile(shelf.send(&of, Put("Ulysses"), None)));
        assert!(matches!(first, Err(CommandError::Unknown(_))));
        journal.set_unreadable(false);
    };
    let (seen, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(10), waiting), writing);
    assert_eq!(seen.expect("nobody else need call").unwrap(), ["Dune", "Emma", "Ulysses"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_comes_back_knows_what_it_wrote_when_it_came_back() {
    let journal = Troubled::new(MemoryJournal::new());
    exchange(&journal, Options::default()).send(&stream(), Put("Dune"), None).await.unwrap();

    // The next process ends what its predecessor's callers waited for, and does not learn that this was written.
    journal.next_appends(&[Fate::UnknownWritten]);
    let readers = exchange(&journal, Options::default()).look(&stream(), |shelf| shelf.readers).await;
    assert_eq!(readers.unwrap(), 0);
}
