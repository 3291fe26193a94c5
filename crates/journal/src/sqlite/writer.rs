//! The thread that writes.
//!
//! It takes everything that waits, carries it out in one transaction, commits, and only then answers: one sync of the disk
//! for all of them (group commit). Nothing is delayed to make a group larger; groups grow by what arrives during a sync.
//!
//! Where streams end is kept in memory, so that an append is one `INSERT`. Whenever a transaction fails that memory is
//! dropped and read again from the file.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Statement};
use tokio::sync::{oneshot, watch};

use super::SqliteOptions;
use super::directory::Directory;
use super::fault::{OpenError, may_concern_one, may_have_committed, write_fault};
use super::file::Site;
use super::queue::{self, Entrance, Exit};
use super::readers::{FIND_STREAM, number, seq};
use crate::hub::Hub;
use crate::{AppendError, BackendError, Payload, Seq, Snapshot, StreamId};

/// How many jobs go into one transaction at most.
const GROUP_JOBS: usize = 512;

/// At which size, in bytes, a transaction takes no further jobs.
const GROUP_BYTES: usize = 8 << 20;

/// How many entries a trim forgets per transaction, so that a long one does not hold up appends.
const TRIM_STEP: u64 = 1_000;

/// How many streams the writer remembers the end of. Beyond that it forgets all and reads them again as they come up.
const KNOWN_STREAMS: usize = 100_000;

/// What a job adds to the write-ahead log beside its payload: about one page.
const JOB_BYTES: u64 = 4_096;

type Reply<T> = oneshot::Sender<Result<T, AppendError>>;

/// Something to write, and who waits for it. See [`Journal`](crate::Journal) for what each means.
pub(super) enum Job {
    Append { stream: StreamId, after: Seq, payload: Payload, reply: Reply<Seq> },
    SaveSnapshot { stream: StreamId, snapshot: Snapshot, reply: Reply<()> },
    Trim { stream: StreamId, up_to: Seq, reply: Reply<()> },
    Redact { stream: StreamId, seqs: Vec<Seq>, reply: Reply<()> },
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Self::Append { payload, .. } => payload.as_str().len(),
            Self::SaveSnapshot { snapshot, .. } => snapshot.state.len(),
            Self::Trim { .. } | Self::Redact { .. } => 0,
        }
    }

    fn fail(self, error: AppendError) {
        // Whoever asked may have left.
        let _ = match self {
            Self::Append { reply, .. } => reply.send(Err(error)).is_ok(),
            Self::SaveSnapshot { reply, .. } | Self::Trim { reply, .. } | Self::Redact { reply, .. } => {
                reply.send(Err(error)).is_ok()
            }
        };
    }
}

/// Where writes are handed in.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Entrance<Job>,
    /// Closed by the thread's end, as is `end_blocking`.
    end: watch::Receiver<()>,
    end_blocking: Mutex<blocking::Receiver<Infallible>>,
}

impl Writer {
    /// Starts the thread. It ends after [`stop`](Self::stop), once it has done what waits and `readers` have ended.
    pub(super) fn start(
        connection: Connection,
        site: Site,
        directory: Directory,
        options: &SqliteOptions,
        hub: Arc<Hub>,
        readers: Vec<JoinHandle<()>>,
    ) -> Result<Self, OpenError> {
        let (queue, exit) = queue::bounded(options.queue.get());
        let (ending, end) = watch::channel(());
        let (ending_blocking, end_blocking) = blocking::channel::<Infallible>();
        let file = site.file.clone();
        let wal_bytes = options.wal_bytes;
        std::thread::Builder::new()
            .name("journal-write".into())
            .spawn(move || {
                serve(&connection, site, wal_bytes, hub, &exit);
                for reader in readers {
                    // A reader that panicked has nothing to tell: who asked it was told.
                    let _ = reader.join();
                }
                finish(connection);
                drop(directory);
                drop((ending, ending_blocking));
            })
            .map_err(|error| OpenError::failed(&file, error))?;
        Ok(Self { queue, end, end_blocking: Mutex::new(end_blocking) })
    }

    /// Hands in a job, after waiting for a place in the queue. `false` if the writer takes no more.
    pub(super) async fn send(&self, job: Job) -> bool {
        self.queue.send(job).await
    }

    /// Takes no more jobs.
    pub(super) fn stop(&self) {
        self.queue.stop();
    }

    /// Waits until the thread has ended.
    pub(super) async fn ended(&self) {
        let mut end = self.end.clone();
        while end.changed().await.is_ok() {}
    }

    /// As [`ended`](Self::ended), on a thread that may block, and for `patience` at most.
    pub(super) fn wait_for_end(&self, patience: Duration) {
        let end = self.end_blocking.lock().unwrap_or_else(PoisonError::into_inner);
        if end.recv_timeout(patience) == Err(blocking::RecvTimeoutError::Timeout) {
            tracing::warn!(?patience, "the journal's disk does not answer; ending without waiting for it");
        }
    }
}

fn serve(connection: &Connection, site: Site, wal_bytes: u64, hub: Arc<Hub>, queue: &Exit<Job>) {
    let mut scribe = match Scribe::new(connection, site, wal_bytes, hub) {
        Ok(scribe) => scribe,
        Err(error) => {
            // Dropping the queue answers everybody.
            tracing::error!(%error, "the journal's statements cannot be prepared");
            return;
        }
    };
    let mut waiting = VecDeque::new();
    while refill(&mut waiting, queue) {
        scribe.write(next_group(&mut waiting), &mut waiting);
    }
}

/// Takes what waits in the queue; if nothing is left to do, waits for something. `false` when nothing will come.
fn refill(waiting: &mut VecDeque<Job>, queue: &Exit<Job>) -> bool {
    if waiting.is_empty() {
        match queue.next() {
            Some(job) => waiting.push_back(job),
            None => return false,
        }
    }
    while waiting.len() < GROUP_JOBS {
        match queue.next_waiting() {
            Some(job) => waiting.push_back(job),
            None => break,
        }
    }
    true
}

fn next_group(waiting: &mut VecDeque<Job>) -> Vec<Job> {
    let mut bytes = 0;
    let enough = waiting.iter().position(|job| {
        bytes += job.bytes();
        bytes >= GROUP_BYTES
    });
    let count = enough.map_or(waiting.len(), |last| last + 1).min(GROUP_JOBS);
    waiting.drain(..count).collect()
}

fn finish(connection: Connection) {
    if let Err(error) = checkpoint(&connection, "truncate") {
        tracing::warn!(%error, "the journal's write-ahead log was not emptied; the next start does it");
    }
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "the journal's file was not closed");
    }
}

/// How much of the write-ahead log is copied into the database file.
struct Checkpoint {
    /// Whether all of it is, and the log is as short as asked for.
    complete: bool,
    /// Length of the log, in pages.
    log_pages: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Checkpoint> {
    connection.query_row(&format!("pragma wal_checkpoint({mode})"), [], |row| {
        let (busy, log_pages, copied): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Checkpoint { complete: busy == 0 && log_pages == copied, log_pages })
    })
}

/// What became of one job in a transaction.
enum Outcome {
    Appended(Seq),
    Conflict {
        actual: Seq,
    },
    Done,
    /// A trim has more to forget.
    Unfinished,
    /// A redaction is written; what it replaced has still to be wiped.
    Replaced,
}

/// Why a transaction was not acknowledged.
enum Failure {
    NotWritten(rusqlite::Error),
    Unknown(rusqlite::Error),
}

#[derive(Debug, Clone, Copy)]
struct Known {
    id: i64,
    head: Seq,
}

/// The writer's side of the file.
struct Scribe<'c> {
    connection: &'c Connection,
    site: Site,
    hub: Arc<Hub>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    insert: Statement<'c>,
    known: HashMap<StreamId, Known>,
    /// About how much the write-ahead log has grown since it was last copied, and when to copy it.
    log_bytes: u64,
    log_bytes_max: u64,
    /// Whether the operator was told that the log cannot be emptied.
    warned: bool,
}

impl<'c> Scribe<'c> {
    fn new(
        connection: &'c Connection,
        site: Site,
        log_bytes_max: u64,
        hub: Arc<Hub>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            site,
            hub,
            begin: connection.prepare("begin immediate")?,
            commit: connection.prepare("commit")?,
            insert: connection.prepare("insert into entries (stream, seq, payload) values (?1, ?2, ?3)")?,
            known: HashMap::new(),
            log_bytes: 0,
            log_bytes_max,
            warned: false,
        })
    }

    /// Carries out `group` in one transaction and answers. What is to be continued goes back to `waiting`.
    fn write(&mut self, group: Vec<Job>, waiting: &mut VecDeque<Job>) {
        let remembers = !self.known.is_empty();
        match self.transact(&group) {
            Ok(outcomes) => self.answer(group, outcomes, waiting),
            // Another program has written: what was remembered is gone by now, and the file says what is a conflict.
            Err(Failure::NotWritten(error))
                if remembers && error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) =>
            {
                self.write(group, waiting);
            }
            Err(Failure::NotWritten(error)) if group.len() > 1 && may_concern_one(&error) => {
                // One of them is too large for the disk, or meets a damaged page: the others need not suffer for it.
                for job in group {
                    self.write(vec![job], waiting);
                }
            }
            Err(failure) => {
                let error = self.refusal(failure);
                tracing::warn!(%error, jobs = group.len(), "a journal write failed");
                for job in group {
                    job.fail(error.clone());
                }
            }
        }
        self.keep_log_short();
    }

    fn refusal(&self, failure: Failure) -> AppendError {
        match failure {
            Failure::NotWritten(error) => AppendError::Unavailable(write_fault(&self.site, error)),
            Failure::Unknown(error) => AppendError::Unknown(write_fault(&self.site, error)),
        }
    }

    fn transact(&mut self, group: &[Job]) -> Result<Vec<Outcome>, Failure> {
        let outcomes = self.begin.execute([]).and_then(|_| group.iter().map(|job| self.apply(job)).collect());
        let outcomes: Vec<_> = match outcomes {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.roll_back();
                return Err(Failure::NotWritten(error));
            }
        };
        if let Err(error) = self.commit.execute([]) {
            self.roll_back();
            let written =
                may_have_committed(&error) && self.settle(group, &outcomes).map_err(Failure::Unknown)?;
            if !written {
                return Err(Failure::NotWritten(error));
            }
        }
        if self.known.len() > KNOWN_STREAMS {
            self.known.clear();
        }
        self.log_bytes += group.iter().map(|job| JOB_BYTES + job.bytes() as u64).sum::<u64>();
        Ok(outcomes)
    }

    fn roll_back(&mut self) {
        self.known.clear();
        // Most faults have rolled back already.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("rollback")
        {
            tracing::error!(%error, "a failed journal transaction could not be rolled back");
        }
    }

    /// Decides the fate of a commit that failed after its record may have been written: whether the file has it.
    ///
    /// This process does not see that record, but another that opens the file after a crash might. So something else is
    /// committed first, which takes the record's place in the log: after that, what this process sees is what holds.
    fn settle(&mut self, group: &[Job], outcomes: &[Outcome]) -> rusqlite::Result<bool> {
        self.connection.execute("update meta set value = value + 1 where key = 'fence'", [])?;
        let appended = group.iter().zip(outcomes).find_map(|(job, outcome)| match (job, outcome) {
            (Job::Append { stream, .. }, Outcome::Appended(seq)) => Some((stream, *seq)),
            _ => None,
        });
        // Without an append among them the jobs can all be repeated.
        let Some((stream, seq)) = appended else { return Ok(false) };
        Ok(self.find(stream)?.is_some_and(|known| known.head >= seq))
    }

    fn apply(&mut self, job: &Job) -> rusqlite::Result<Outcome> {
        match job {
            Job::Append { stream, after, payload, .. } => self.append(stream, *after, payload),
            Job::SaveSnapshot { stream, snapshot, .. } => self.save_snapshot(stream, snapshot),
            Job::Trim { stream, up_to, .. } => self.trim(stream, *up_to),
            Job::Redact { stream, seqs, .. } => self.redact(stream, seqs),
        }
    }

    fn append(&mut self, stream: &StreamId, after: Seq, payload: &Payload) -> rusqlite::Result<Outcome> {
        let known = match self.find(stream)? {
            Some(known) if known.head != after => return Ok(Outcome::Conflict { actual: known.head }),
            None if after != Seq::START => return Ok(Outcome::Conflict { actual: Seq::START }),
            Some(known) => known,
            None => self.create(stream)?,
        };
        let head = after.next();
        self.insert.execute((known.id, number(head), payload.as_str()))?;
        if let Some(known) = self.known.get_mut(stream) {
            known.head = head;
        }
        Ok(Outcome::Appended(head))
    }

    fn save_snapshot(&mut self, stream: &StreamId, snapshot: &Snapshot) -> rusqlite::Result<Outcome> {
        let known = match self.find(stream)? {
            Some(known) => known,
            None => self.create(stream)?,
        };
        self.connection
            .prepare_cached(
                "insert into snapshots (stream, seq, state) values (?1, ?2, ?3)
                 on conflict (stream) do update set seq = excluded.seq, state = excluded.state
                 where excluded.seq >= snapshots.seq",
            )?
            .execute((known.id, number(snapshot.seq), &*snapshot.state))?;
        Ok(Outcome::Done)
    }

    fn trim(&mut self, stream: &StreamId, up_to: Seq) -> rusqlite::Result<Outcome> {
        let Some(known) = self.find(stream)? else { return Ok(Outcome::Done) };
        let (trimmed, covered) = self
            .connection
            .prepare_cached(
                "select trimmed, coalesce((select seq from snapshots where stream = ?1), 0)
                 from streams where id = ?1",
            )?
            .query_row([known.id], |row| Ok((seq(row.get(0)?), seq(row.get(1)?))))?;
        let up_to = up_to.min(covered).min(known.head);
        if up_to <= trimmed {
            return Ok(Outcome::Done);
        }
        let step = up_to.min(Seq::new(trimmed.get() + TRIM_STEP));
        self.connection
            .prepare_cached("delete from entries where stream = ?1 and seq <= ?2")?
            .execute((known.id, number(step)))?;
        self.connection
            .prepare_cached("update streams set trimmed = ?2 where id = ?1")?
            .execute((known.id, number(step)))?;
        Ok(if step < up_to { Outcome::Unfinished } else { Outcome::Done })
    }

    fn redact(&mut self, stream: &StreamId, seqs: &[Seq]) -> rusqlite::Result<Outcome> {
        let Some(known) = self.find(stream)? else { return Ok(Outcome::Done) };
        let mut replace = self
            .connection
            .prepare_cached("update entries set payload = ?3 where stream = ?1 and seq = ?2")?;
        for seq in seqs {
            replace.execute((known.id, number(*seq), Payload::REDACTED))?;
        }
        // A trimmed entry has nothing to replace, but its text may still lie in a free part of the file.
        let wipe = seqs.iter().any(|seq| *seq <= known.head);
        Ok(if wipe { Outcome::Replaced } else { Outcome::Done })
    }

    fn find(&mut self, stream: &StreamId) -> rusqlite::Result<Option<Known>> {
        if let Some(known) = self.known.get(stream) {
            return Ok(Some(*known));
        }
        let found = self
            .connection
            .prepare_cached(FIND_STREAM)?
            .query_row([stream.as_str()], |row| Ok(Known { id: row.get(0)?, head: seq(row.get(1)?) }))
            .optional()?;
        if let Some(known) = found {
            self.known.insert(stream.clone(), known);
        }
        Ok(found)
    }

    fn create(&mut self, stream: &StreamId) -> rusqlite::Result<Known> {
        self.connection
            .prepare_cached("insert into streams (name) values (?1)")?
            .execute([stream.as_str()])?;
        let known = Known { id: self.connection.last_insert_rowid(), head: Seq::START };
        self.known.insert(stream.clone(), known);
        Ok(known)
    }

    fn answer(&mut self, group: Vec<Job>, outcomes: Vec<Outcome>, waiting: &mut VecDeque<Job>) {
        let mut replaced = Vec::new();
        for (job, outcome) in group.into_iter().zip(outcomes) {
            match (job, outcome) {
                (Job::Append { stream, reply, .. }, Outcome::Appended(seq)) => {
                    self.hub.announce(&stream, seq);
                    let _ = reply.send(Ok(seq));
                }
                (Job::Append { stream, after, reply, .. }, Outcome::Conflict { actual }) => {
                    let _ = reply.send(Err(AppendError::Conflict { stream, expected: after, actual }));
                }
                (job, Outcome::Unfinished) => waiting.push_back(job),
                (job, Outcome::Replaced) => replaced.push(job),
                (
                    Job::SaveSnapshot { reply, .. } | Job::Trim { reply, .. } | Job::Redact { reply, .. },
                    _,
                ) => {
                    let _ = reply.send(Ok(()));
                }
                (Job::Append { .. }, Outcome::Done) => {}
            }
        }
        if !replaced.is_empty() {
            self.answer_redactions(replaced);
        }
    }

    fn answer_redactions(&mut self, replaced: Vec<Job>) {
        let wiped = self.wipe();
        for job in replaced {
            match (&wiped, job) {
                (Ok(()), Job::Redact { reply, .. }) => {
                    let _ = reply.send(Ok(()));
                }
                (Ok(()), _) => {}
                (Err(error), job) => job.fail(error.clone()),
            }
        }
    }

    /// Removes every trace of replaced and deleted text from the files.
    ///
    /// `secure_delete` is not enough: when SQLite moves entries between pages it leaves copies in the unused part of the
    /// old page, out of reach of a later update. Only writing all pages anew is sure to leave none behind.
    fn wipe(&mut self) -> Result<(), AppendError> {
        let wiped = self.connection.execute_batch("vacuum").and_then(|()| {
            self.log_bytes = 0;
            checkpoint(self.connection, "truncate")
        });
        match wiped {
            Ok(Checkpoint { complete: true, .. }) => Ok(()),
            Ok(Checkpoint { complete: false, .. }) => {
                Err(AppendError::Unavailable(BackendError::new(format!(
                    "entries are redacted, but a reader of '{}' keeps their text in the write-ahead log: \
                 end it (a `sqlite3` shell in a transaction?) and redact again",
                    self.site.file.display()
                ))))
            }
            Err(error) => {
                let fault = write_fault(&self.site, error);
                let message = format!(
                    "entries are redacted, but their text is not wiped from the disk: {fault}; redact again"
                );
                Err(AppendError::Unavailable(BackendError::caused(message, fault)))
            }
        }
    }

    /// Copies the write-ahead log into the database file when it has grown long. The next transaction begins it anew.
    fn keep_log_short(&mut self) {
        if self.log_bytes < self.log_bytes_max {
            return;
        }
        match checkpoint(self.connection, "passive") {
            Ok(Checkpoint { complete: true, .. }) => {
                self.log_bytes = 0;
                self.warned = false;
            }
            // A read in progress needs the rest. The next group tries again.
            Ok(Checkpoint { complete: false, log_pages }) => {
                let long = u64::try_from(log_pages).unwrap_or(0) * JOB_BYTES > 8 * self.log_bytes_max;
                if long && !self.warned {
                    self.warned = true;
                    tracing::warn!(
                        file = %self.site.file.display(), log_pages,
                        "the write-ahead log grows because another program reads the journal in one long \
                         transaction; end it"
                    );
                }
            }
            Err(error) => {
                if !self.warned {
                    self.warned = true;
                    tracing::warn!(%error, "the write-ahead log was not copied; every write tries again");
                }
            }
        }
    }
}
