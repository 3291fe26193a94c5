//! The embedded journal: one SQLite file in a data directory that one process owns.
//!
//! * [`directory`] creates the data directory and locks it.
//! * [`file`] opens the database file, lays out its tables and refuses what it cannot serve.
//! * [`writer`] is the only thread that writes. It puts everything that waits into one transaction.
//! * [`readers`] are a few threads that read, each over a connection of its own.
//! * [`queue`] leads from async callers to these threads.
//! * [`fault`] words what SQLite reports for whoever repairs it.

mod directory;
mod fault;
mod file;
mod queue;
mod readers;
mod writer;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

pub use self::fault::OpenError;

use self::directory::Directory;
use self::file::Site;
use self::readers::Readers;
use self::writer::{Job, Writer};
use crate::hub::Hub;
use crate::{
    AppendError, BackendError, Entry, Journal, Payload, ReadError, Seq, Sharing, Snapshot, StreamHead,
    StreamId, Tail,
};

/// How long dropping a journal waits for its threads. What was acknowledged is durable already; a disk that hangs for
/// longer must not keep the process from ending.
const DROP_PATIENCE: Duration = Duration::from_secs(10);

/// What can be set about a [`SqliteJournal`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The largest size that the database file may grow to, in bytes. Reaching it is like a full disk: appends are
    /// `Unavailable`, reads go on, and trimming makes room again. Default: none.
    pub max_bytes: Option<u64>,
    /// How many writes wait for the writer at most. When that many wait, further ones wait for a place in their turn;
    /// none is refused. Default: 1,024.
    pub queue: NonZeroUsize,
    /// How many threads read. Default: 2.
    pub readers: NonZeroUsize,
    /// At about which size, in bytes, the write-ahead log is copied into the database file and begun anew.
    /// Larger means fewer and longer pauses. Default: 16 MiB.
    pub wal_bytes: u64,
    /// The largest file, in bytes, that is checked page by page when it is opened, at about one second per GiB. Damage in
    /// a larger one is reported by the read that meets it. Default: 64 MiB.
    pub check_bytes: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            max_bytes: None,
            queue: const { NonZeroUsize::new(1_024).unwrap() },
            readers: const { NonZeroUsize::new(2).unwrap() },
            wal_bytes: 16 << 20,
            check_bytes: 64 << 20,
        }
    }
}

/// Keeps streams in one SQLite file, `journal.db`, in a data directory that this process owns while it is open.
///
/// Payloads are text, so the journal can be queried while the server runs:
/// `sqlite3 -readonly journal.db "select stream, seq, payload ->> 'type' from journal order by stream, seq"`.
///
/// # Cost
/// One append costs one sync of the disk; appends that wait meanwhile share the next one. A redaction rewrites the whole
/// file (about ten seconds per GiB, and as much free space again), during which appends wait.
///
/// # Faults
/// A write that failed is not acknowledged, and the next one tries again: once the disk has room or is repaired, appends
/// succeed without a restart. Reads go on meanwhile.
///
/// # End
/// [`close`](Self::close), or dropping the journal, carries out what was accepted, copies the write-ahead log into the
/// database file and unlocks the directory. Tails then end with [`ReadError::Unavailable`].
#[derive(Debug)]
pub struct SqliteJournal {
    writer: Writer,
    readers: Readers,
    hub: Arc<Hub>,
}

impl SqliteJournal {
    /// Opens the journal in `dir`, which is created if it is missing, readable by its owner only.
    ///
    /// Blocks while it reads the file; needs no async runtime.
    pub fn open(dir: impl AsRef<Path>, options: &SqliteOptions) -> Result<Self, OpenError> {
        let directory = Directory::lock(dir.as_ref())?;
        let site = Site::new(directory.path(), options);
        let connection = file::open(&site, options)?;
        let hub = Arc::<Hub>::default();
        let (readers, threads) = Readers::start(&site, options.readers)?;
        let writer = Writer::start(connection, site, directory, options, Arc::clone(&hub), threads)?;
        Ok(Self { writer, readers, hub })
    }

    /// Carries out what was accepted, then closes the files and unlocks the directory.
    ///
    /// Later appends and reads are `Unavailable`. Closing twice is harmless.
    pub async fn close(&self) {
        self.stop();
        self.writer.ended().await;
    }

    fn stop(&self) {
        self.readers.stop();
        self.writer.stop();
        // Followers wake, find that nobody reads any more, and end.
        self.hub.wake_all();
    }

    async fn write<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, AppendError>>) -> Job,
    ) -> Result<T, AppendError> {
        let (reply, answer) = oneshot::channel();
        if !self.writer.send(job(reply)).await {
            return Err(AppendError::Unavailable(BackendError::new("the journal is closed")));
        }
        answer.await.unwrap_or_else(|_| {
            Err(AppendError::Unknown(BackendError::new("the journal's writer ended without an answer")))
        })
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        self.stop();
        self.writer.wait_for_end(DROP_PATIENCE);
    }
}

impl Journal for SqliteJournal {
    fn append<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        payload: Payload,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        self.write(move |reply| Job::Append { stream: stream.clone(), after, payload, reply }).boxed()
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ReadError>> {
        self.readers.entries(stream.clone(), after, limit).boxed()
    }

    fn tail(&self, stream: &StreamId, after: Seq) -> Tail {
        // Only the readers: a tail that somebody forgot to drop does not keep the journal open.
        let readers = self.readers.clone();
        self.hub
            .tail(stream.clone(), after, move |stream, after, limit| readers.entries(stream, after, limit))
    }

    fn head<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Seq, ReadError>> {
        self.readers.head(stream.clone()).boxed()
    }

    fn save_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
        snapshot: Snapshot,
    ) -> BoxFuture<'a, Result<(), AppendError>> {
        self.write(move |reply| Job::SaveSnapshot { stream: stream.clone(), snapshot, reply }).boxed()
    }

    fn load_snapshot<'a>(
        &'a self,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<Option<Snapshot>, ReadError>> {
        self.readers.snapshot(stream.clone()).boxed()
    }

    fn trim<'a>(&'a self, stream: &'a StreamId, up_to: Seq) -> BoxFuture<'a, Result<(), AppendError>> {
        self.write(move |reply| Job::Trim { stream: stream.clone(), up_to, reply }).boxed()
    }

    fn redact<'a>(&'a self, stream: &'a StreamId, seqs: &'a [Seq]) -> BoxFuture<'a, Result<(), AppendError>> {
        self.write(move |reply| Job::Redact { stream: stream.clone(), seqs: seqs.into(), reply }).boxed()
    }

    fn streams<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a StreamId>,
        limit: NonZeroUsize,
    ) -> BoxFuture<'a, Result<Vec<StreamHead>, ReadError>> {
        self.readers.streams(prefix.into(), after.cloned(), limit).boxed()
    }

    fn sharing(&self) -> Sharing {
        Sharing::Exclusive
    }
}
