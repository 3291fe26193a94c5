//! The contract between whoever appends and whatever stores.

use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::{Entry, Payload, Seq, Snapshot, StreamHead, StreamId};

/// An append-only store of streams.
///
/// # What a caller may rely on
///
/// * **Durable.** When [`append`](Journal::append) resolves to `Ok`, the entry survives a crash of the process and, as
///   far as the backend's medium keeps what it was told to sync, of the machine. The same holds for `save_snapshot`,
///   `trim` and `redact`.
/// * **All or nothing.** A reader sees an entry whole or not at all, also after a crash in the middle of an append.
/// * **Compare and append.** An entry gets the number `after + 1`, and only if the stream ended at `after`. Of any
///   number of callers, on any number of nodes, that append after the same position, exactly one succeeds.
/// * **No gaps, one order.** The numbers of a stream's entries are 1, 2, 3 …; every reader on every node sees the same
///   entries under the same numbers, for ever (but for `trim` and `redact`).
/// * **Read your writes.** A `read` that begins after an `append` resolved, on any node, returns that entry.
/// * **Streams are independent.** Nothing is promised about the order of appends to different streams.
///
/// # What a caller owes
///
/// * At most one append in flight per stream and node. A backend may pipeline appends and relies on it for their order.
/// * Snapshots only of entries that are acknowledged or were read: a backend does not compare a snapshot's number with the
///   stream's end.
/// * A new snapshot before `redact`, if the newest one holds the text as well: a redaction also wipes what earlier
///   snapshots and trims left behind, but not what is still in use.
/// * After [`AppendError::Unknown`], to find out by reading whether the entry is there before it decides again.
///
/// Each backend shows that it keeps this by passing [`conformance`](crate::conformance).
pub trait Journal: Send + Sync + std::fmt::Debug + 'static {
    /// Appends `payload` to `stream` as the entry `after + 1`, provided the stream ends at `after`.
    ///
    /// A stream begins to exist with its first entry. Dropping the returned future does not undo the append: whether it
    /// happened is then unknown.
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// Reads the entries that follow `after`, oldest first, at most `limit` of them.
    ///
    /// Fewer than `limit` means that the stream ended there when it was read. An unknown stream has no entries, and none
    /// follow the last one, however far beyond it `after` lies.
    ///
    /// # Errors
    /// [`ReadError::Trimmed`] if entries that follow `after` are gone; reading on from the snapshot is possible. It says
    /// so whether or not entries are left, and names the last one that is gone.
    fn read<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ReadError>>;

    /// Follows the stream from `after` on: every entry once, in order, those of other nodes too, for as long as the
    /// returned stream is polled. It ends only after an error. It holds no entries back while it is not polled.
    ///
    /// Nothing is read before the first poll. Asking for entries that are gone gives [`ReadError::Trimmed`]; a journal that
    /// was closed gives [`ReadError::Unavailable`].
    fn tail(&self, stream: &StreamId, after: Seq) -> Tail;

    /// The number of the stream's last entry, also if that is trimmed; [`Seq::START`] if it never had one.
    fn head<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Seq, ReadError>>;

    /// Keeps `snapshot` as the stream's newest, in place of one with the same or a lower number. An older one than the
    /// stream already has is ignored. It does not make a stream exist.
    fn save_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
        snapshot: Snapshot,
    ) -> BoxFuture<'a, Result<(), AppendError>>;

    /// The stream's newest snapshot.
    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>>;

    /// Forgets the entries up to and including `up_to`, but none that the newest snapshot does not cover. The numbers of
    /// the others stay. Trimming what is trimmed is harmless.
    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>>;

    /// Replaces the payload of the given entries by [`Payload::REDACTED`]; what was there is gone from the store.
    /// Entries that are trimmed or not yet written are ignored. A copy that a snapshot holds is its owner's to replace.
    ///
    /// It may take as long as rewriting the whole store. Redacting again is harmless, and what to do after an error.
    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>>;

    /// The streams whose name begins with `prefix` and sorts after `after`, in byte order of their names, at most `limit`.
    ///
    /// Fewer than `limit` means that there are no more. Streams whose entries are all trimmed are among them; `prefix` has
    /// no wildcards, may be empty, and `after` need not be a stream.
    fn streams<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a StreamId>,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<StreamHead>, ReadError>>;

    /// Whether other nodes may append to the same streams.
    fn sharing(&self) -> Sharing;
}

/// The entries of a stream as they come; see [`Journal::tail`].
pub type Tail = BoxStream<'static, Result<Entry, ReadError>>;

/// Who else may append to a journal's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody: this process holds the only handle. In-memory state is never behind the journal.
    Exclusive,
    /// Any number of nodes: in-memory state may be behind and must catch up before it answers.
    Shared,
}

/// Why an append was not acknowledged. The variants are named for what the caller does next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// Another append came first; nothing was written. Read from where you are, decide again.
    #[error("stream '{stream}' ends at entry {actual}, expected {expected}")]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// Where the caller thought it ended.
        expected: Seq,
        /// Where it ends.
        actual: Seq,
    },
    /// Nothing was written and nothing will be. Reads may go on. Try again once the cause is mended.
    #[error("the journal takes no writes: {0}")]
    Unavailable(#[source] BackendError),
    /// It is not known whether the entry was written. Read to find out; do not append again before.
    #[error("it is not known whether the journal took the write: {0}")]
    Unknown(#[source] BackendError),
}

/// Why a read gave nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The entries asked for are gone.
    #[error("stream '{stream}' begins after entry {trimmed}, asked to read after {after}")]
    Trimmed {
        /// The stream.
        stream: StreamId,
        /// What was asked for.
        after: Seq,
        /// The last entry that is gone.
        trimmed: Seq,
    },
    /// The store did not answer, or not with what it was given. Try again, or repair it as the text says.
    #[error("the journal cannot be read: {0}")]
    Unavailable(#[source] BackendError),
}

/// What a backend has to say about a fault: a sentence for the person who repairs it, with the cause behind it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    message: Arc<str>,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl BackendError {
    /// A fault without a cause to show.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// A fault and what caused it.
    pub fn caused(
        message: impl Into<Arc<str>>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { message: message.into(), source: Some(Arc::new(source)) }
    }
}
