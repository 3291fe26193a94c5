//! A journal in memory that stops taking writes when it is told to.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use switchboard_journal::{
    AppendError, BackendError, Entry, Journal, MemoryJournal, Payload, ReadError, Seq, Sharing, Snapshot,
    StreamHead, StreamId, Tail,
};

#[derive(Debug)]
pub(crate) struct FullJournal {
    memory: MemoryJournal,
    full: AtomicBool,
}

impl FullJournal {
    pub(crate) fn new() -> Self {
        Self { memory: MemoryJournal::new(), full: AtomicBool::new(false) }
    }

    pub(crate) fn fill(&self) {
        self.full.store(true, SeqCst);
    }

    fn unless_full<'a, T: Send + 'a>(
        &self,
        write: BoxFuture<'a, Result<T, AppendError>>,
    ) -> BoxFuture<'a, Result<T, AppendError>> {
        if self.full.load(SeqCst) {
            let full = AppendError::Unavailable(BackendError::new("the disk is full"));
            return async { Err(full) }.boxed();
        }
        write
    }
}

impl Journal for FullJournal {
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        self.unless_full(self.memory.append(stream, after, payload))
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ReadError>> {
        self.memory.read(stream, after, limit)
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
        self.unless_full(self.memory.save_snapshot(stream, snapshot))
    }

    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>> {
        self.memory.load_snapshot(stream)
    }

    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>> {
        self.unless_full(self.memory.trim(stream, up_to))
    }

    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>> {
        self.unless_full(self.memory.redact(stream, seqs))
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
