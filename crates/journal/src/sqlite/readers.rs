//! The threads that read.
//!
//! A read is a few microseconds of work if its pages are in memory and milliseconds if they are not, so it never runs on
//! a thread of the async runtime. Threads of our own rather than the runtime's blocking pool: each keeps a connection with
//! its prepared statements and page cache, and their number bounds both.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::oneshot;

use super::fault::{OpenError, read_fault};
use super::file::{self, Site};
use super::queue::{self, Entrance, Exit};
use crate::{BackendError, Entry, Payload, ReadError, Seq, Snapshot, StreamHead, StreamId};

/// How many reads wait for a thread at most; further ones wait for a place.
const QUEUE: usize = 1_024;

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// Where reads are handed in. Clones share the threads.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    queue: Arc<Entrance<Query>>,
    site: Arc<Site>,
}

impl Readers {
    /// Starts the threads. They end after [`stop`](Self::stop), once they have done what waits.
    pub(super) fn start(site: &Site, count: NonZeroUsize) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let (queue, exit) = queue::bounded(QUEUE);
        let exit = Arc::new(Mutex::new(exit));
        let mut threads = Vec::new();
        for _ in 0..count.get() {
            let connection = file::open_for_reading(site)?;
            let exit = Arc::clone(&exit);
            let thread = std::thread::Builder::new()
                .name("journal-read".into())
                .spawn(move || serve(&connection, &exit))
                .map_err(|error| OpenError::failed(&site.file, error))?;
            threads.push(thread);
        }
        let readers = Self { queue: Arc::new(queue), site: Arc::new(site.clone()) };
        Ok((readers, threads))
    }

    /// Takes no more reads.
    pub(super) fn stop(&self) {
        self.queue.stop();
    }

    /// See [`Journal::read`](crate::Journal::read).
    pub(super) fn entries(
        &self,
        stream: StreamId,
        after: Seq,
        limit: NonZeroUsize,
    ) -> impl Future<Output = Result<Vec<Entry>, ReadError>> + Send + use<> {
        self.ask(move |connection, site| read_entries(connection, site, &stream, after, limit))
    }

    /// See [`Journal::head`](crate::Journal::head).
    pub(super) fn head(
        &self,
        stream: StreamId,
    ) -> impl Future<Output = Result<Seq, ReadError>> + Send + use<> {
        self.ask(move |connection, _| Ok(read_head(connection, &stream)?))
    }

    /// See [`Journal::load_snapshot`](crate::Journal::load_snapshot).
    pub(super) fn snapshot(
        &self,
        stream: StreamId,
    ) -> impl Future<Output = Result<Option<Snapshot>, ReadError>> + Send + use<> {
        self.ask(move |connection, _| Ok(read_snapshot(connection, &stream)?))
    }

    /// See [`Journal::streams`](crate::Journal::streams).
    pub(super) fn streams(
        &self,
        prefix: String,
        after: Option<StreamId>,
        limit: NonZeroUsize,
    ) -> impl Future<Output = Result<Vec<StreamHead>, ReadError>> + Send + use<> {
        self.ask(move |connection, _| Ok(read_streams(connection, &prefix, after.as_ref(), limit)?))
    }

    fn ask<T, Q>(&self, query: Q) -> impl Future<Output = Result<T, ReadError>> + Send + use<T, Q>
    where
        T: Send + 'static,
        Q: FnOnce(&Connection, &Site) -> Result<T, Failure> + Send + 'static,
    {
        let readers = self.clone();
        async move {
            let closed = || ReadError::Unavailable(BackendError::new("the journal is closed"));
            let (reply, answer) = oneshot::channel();
            let site = readers.site;
            let query: Query = Box::new(move |connection| {
                if !reply.is_closed() {
                    let result = query(connection, &site).map_err(|failure| failure.into_error(&site));
                    // Whoever asked may have left.
                    let _ = reply.send(result);
                }
            });
            if !readers.queue.send(query).await {
                return Err(closed());
            }
            answer.await.map_err(|_| closed())?
        }
    }
}

/// Why a query has no result.
enum Failure {
    Refused(ReadError),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failure {
    fn into_error(self, site: &Site) -> ReadError {
        match self {
            Self::Refused(error) => error,
            Self::Sqlite(error) => ReadError::Unavailable(read_fault(site, error)),
        }
    }
}

fn serve(connection: &Connection, queue: &Mutex<Exit<Query>>) {
    loop {
        // One thread waits for the queue, the others for the lock.
        let query = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(query) = query else { return };
        query(connection);
    }
}

fn read_entries(
    connection: &Connection,
    site: &Site,
    stream: &StreamId,
    after: Seq,
    limit: NonZeroUsize,
) -> Result<Vec<Entry>, Failure> {
    // One view of the file for both statements: a trim between them would look like a gap.
    connection.prepare_cached("begin")?.execute([])?;
    let entries = read_entries_in_transaction(connection, site, stream, after, limit);
    connection.prepare_cached("commit")?.execute([])?;
    entries
}

fn read_entries_in_transaction(
    connection: &Connection,
    site: &Site,
    stream: &StreamId,
    after: Seq,
    limit: NonZeroUsize,
) -> Result<Vec<Entry>, Failure> {
    let found = connection
        .prepare_cached("select id, trimmed from streams where name = ?1")?
        .query_row([stream.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
        .optional()?;
    let Some((id, trimmed)) = found else { return Ok(Vec::new()) };
    let trimmed = seq(trimmed);
    if after < trimmed {
        return Err(Failure::Refused(ReadError::Trimmed { stream: stream.clone(), after, trimmed }));
    }
    let mut statement = connection.prepare_cached(
        "select seq, payload from entries where stream = ?1 and seq > ?2 order by seq limit ?3",
    )?;
    let limit = i64::try_from(limit.get()).unwrap_or(i64::MAX);
    let mut rows = statement.query((id, number(after), limit))?;
    let mut entries = Vec::new();
    let mut last = after;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        let entry = Entry { seq: seq(row.get(0)?), payload: payload(site, text)? };
        if entry.seq != last.next() {
            return Err(Failure::Refused(lost_entry(site, stream, last.next())));
        }
        last = entry.seq;
        entries.push(entry);
    }
    Ok(entries)
}

/// Says that the file lacks an entry which it must have had, rather than to show a history with a hole in it.
fn lost_entry(site: &Site, stream: &StreamId, missing: Seq) -> ReadError {
    ReadError::Unavailable(BackendError::new(format!(
        "'{}' has lost entry {missing} of stream '{stream}': restore a backup",
        site.file.display()
    )))
}

fn payload(site: &Site, text: &str) -> Result<Payload, Failure> {
    Payload::new(text).map_err(|error| {
        let message = format!("'{}' holds what this release cannot have written", site.file.display());
        Failure::Refused(ReadError::Unavailable(BackendError::caused(message, error)))
    })
}

/// Where the stream ends; the statement is the writer's as well.
pub(super) const FIND_STREAM: &str = "
    select id, max(trimmed, coalesce((select max(seq) from entries where stream = streams.id), 0))
    from streams where name = ?1";

fn read_head(connection: &Connection, stream: &StreamId) -> rusqlite::Result<Seq> {
    let head =
        connection.prepare_cached(FIND_STREAM)?.query_row([stream.as_str()], |row| row.get(1)).optional()?;
    Ok(head.map_or(Seq::START, seq))
}

fn read_snapshot(connection: &Connection, stream: &StreamId) -> rusqlite::Result<Option<Snapshot>> {
    connection
        .prepare_cached(
            "select seq, state from snapshots where stream = (select id from streams where name = ?1)",
        )?
        .query_row([stream.as_str()], |row| {
            Ok(Snapshot { seq: seq(row.get(0)?), state: row.get_ref(1)?.as_str()?.into() })
        })
        .optional()
}

fn read_streams(
    connection: &Connection,
    prefix: &str,
    after: Option<&StreamId>,
    limit: NonZeroUsize,
) -> rusqlite::Result<Vec<StreamHead>> {
    let mut statement = connection.prepare_cached(
        "select name, max(trimmed, coalesce((select max(seq) from entries where stream = streams.id), 0))
         from streams where name >= ?1 and name > ?2 order by name",
    )?;
    // No name is empty, so all of them sort after the empty text.
    let mut rows = statement.query((prefix, after.map_or("", StreamId::as_str)))?;
    let mut streams = Vec::new();
    while streams.len() < limit.get()
        && let Some(row) = rows.next()?
    {
        let name = row.get_ref(0)?.as_str()?;
        // SQLite compares text by its bytes, so the names with this prefix stand side by side.
        if !name.starts_with(prefix) {
            break;
        }
        let head = seq(row.get(1)?);
        // A row without entries is a snapshot's alone.
        if head > Seq::START
            && let Ok(stream) = StreamId::new(name)
        {
            streams.push(StreamHead { stream, head });
        }
    }
    Ok(streams)
}

/// A position as SQLite holds it. No stream gets as far as the largest.
pub(super) fn number(seq: Seq) -> i64 {
    i64::try_from(seq.get()).unwrap_or(i64::MAX)
}

/// A position as the file has it.
pub(super) fn seq(number: i64) -> Seq {
    Seq::new(u64::try_from(number).unwrap_or(0))
}
