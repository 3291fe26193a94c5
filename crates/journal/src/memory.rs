//! A journal in memory: the model of the trait, and the simulator's disk.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::hub::Hub;
use crate::{
    AppendError, Entry, Journal, Payload, ReadError, Seq, Sharing, Snapshot, StreamHead, StreamId, Tail,
};

/// Keeps streams in memory. Cloned handles share them, as nodes share a store; nothing survives the last handle.
#[derive(Debug, Clone)]
pub struct MemoryJournal {
    streams: Arc<Mutex<BTreeMap<StreamId, Stored>>>,
    hub: Arc<Hub>,
    sharing: Sharing,
}

#[derive(Debug, Default)]
struct Stored {
    /// The last entry that was trimmed.
    trimmed: Seq,
    payloads: VecDeque<Payload>,
    snapshot: Option<Snapshot>,
}

impl Stored {
    fn head(&self) -> Seq {
        Seq::new(self.trimmed.get() + self.payloads.len() as u64)
    }

    fn payload_mut(&mut self, seq: Seq) -> Option<&mut Payload> {
        let index = seq.get().checked_sub(self.trimmed.get() + 1)?;
        self.payloads.get_mut(usize::try_from(index).ok()?)
    }
}

impl MemoryJournal {
    /// An empty journal with a single user.
    pub fn new() -> Self {
        Self { streams: Arc::default(), hub: Arc::default(), sharing: Sharing::Exclusive }
    }

    /// An empty journal whose clones are the nodes of a cluster.
    pub fn shared() -> Self {
        Self { sharing: Sharing::Shared, ..Self::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamId, Stored>> {
        // Every critical section leaves the map whole, so a panic elsewhere does not make it unusable.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(&self, stream: &StreamId, after: Seq, payload: Payload) -> Result<Seq, AppendError> {
        let mut streams = self.lock();
        let actual = streams.get(stream).map_or(Seq::START, Stored::head);
        if actual != after {
            return Err(AppendError::Conflict { stream: stream.clone(), expected: after, actual });
        }
        streams.entry(stream.clone()).or_default().payloads.push_back(payload);
        drop(streams);
        self.hub.announce(stream, after.next());
        Ok(after.next())
    }

    fn read_now(&self, stream: &StreamId, after: Seq, limit: NonZeroUsize) -> Result<Vec<Entry>, ReadError> {
        let streams = self.lock();
        let Some(stored) = streams.get(stream) else { return Ok(Vec::new()) };
        if after < stored.trimmed {
            return Err(ReadError::Trimmed { stream: stream.clone(), after, trimmed: stored.trimmed });
        }
        let skip = usize::try_from(after.since(stored.trimmed)).unwrap_or(usize::MAX);
        Ok(stored
            .payloads
            .iter()
            .skip(skip)
            .take(limit.get())
            .zip(after.get().saturating_add(1)..)
            .map(|(payload, seq)| Entry { seq: Seq::new(seq), payload: payload.clone() })
            .collect())
    }

    fn save_snapshot_now(&self, stream: &StreamId, snapshot: Snapshot) {
        let mut streams = self.lock();
        let stored = streams.entry(stream.clone()).or_default();
        if stored.snapshot.as_ref().is_none_or(|kept| kept.seq <= snapshot.seq) {
            stored.snapshot = Some(snapshot);
        }
    }

    fn trim_now(&self, stream: &StreamId, up_to: Seq) {
        let mut streams = self.lock();
        let Some(stored) = streams.get_mut(stream) else { return };
        let covered = stored.snapshot.as_ref().map_or(Seq::START, |snapshot| snapshot.seq);
        let up_to = up_to.min(covered).min(stored.head());
        let gone = usize::try_from(up_to.since(stored.trimmed)).unwrap_or(usize::MAX);
        stored.payloads.drain(..gone);
        stored.trimmed = stored.trimmed.max(up_to);
    }

    fn redact_now(&self, stream: &StreamId, seqs: &[Seq]) {
        let mut streams = self.lock();
        let Some(stored) = streams.get_mut(stream) else { return };
        for seq in seqs {
            if let Some(payload) = stored.payload_mut(*seq) {
                *payload = Payload::redacted();
            }
        }
    }

    fn streams_now(&self, prefix: &str, after: Option<&StreamId>, limit: NonZeroUsize) -> Vec<StreamHead> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.lock()
            .range((from, Bound::Unbounded))
            .filter(|(stream, stored)| stream.as_str().starts_with(prefix) && stored.head() > Seq::START)
            .take(limit.get())
            .map(|(stream, stored)| StreamHead { stream: stream.clone(), head: stored.head() })
            .collect()
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        async move { self.append_now(stream, after, payload) }.boxed()
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ReadError>> {
        async move { self.read_now(stream, after, limit) }.boxed()
    }

    fn tail(&self, stream: &StreamId, after: Seq) -> Tail {
        let journal = self.clone();
        self.hub.tail(stream.clone(), after, move |stream, after, limit| {
            std::future::ready(journal.read_now(&stream, after, limit))
        })
    }

    fn head<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Seq, ReadError>> {
        async move { Ok(self.lock().get(stream).map_or(Seq::START, Stored::head)) }.boxed()
    }

    fn save_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
        snapshot: Snapshot,
    ) -> BoxFuture<'a, Result<(), AppendError>> {
        async move {
            self.save_snapshot_now(stream, snapshot);
            Ok(())
        }
        .boxed()
    }

    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>> {
        async move { Ok(self.lock().get(stream).and_then(|stored| stored.snapshot.clone())) }.boxed()
    }

    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>> {
        async move {
            self.trim_now(stream, up_to);
            Ok(())
        }
        .boxed()
    }

    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>> {
        async move {
            self.redact_now(stream, seqs);
            Ok(())
        }
        .boxed()
    }

    fn streams<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a StreamId>,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<StreamHead>, ReadError>> {
        async move { Ok(self.streams_now(prefix, after, limit)) }.boxed()
    }

    fn sharing(&self) -> Sharing {
        self.sharing
    }
}
