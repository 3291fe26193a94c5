//! One live stream: a machine, what waits for it, and its place in the journal.
//!
//! A stream's task takes all commands that wait, decides them one after another, appends their events as one entry, and
//! replies when the entry is durable. Within a batch a later command sees what an earlier one decided, so while the
//! append is in flight the machine may be **ahead** of the journal. If that append fails, the machine is thrown away and
//! built again from the journal; nobody has seen what it knew.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use switchboard_journal::{
    AppendError, BackendError, Entry, Journal, Payload, ReadError, Seq, Sharing, Snapshot, StreamId, Tail,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::command::{Fault, FirstReply, Job};
use crate::record::{Record, RecordWriter, SnapshotOwned, SnapshotRef};
use crate::replies::Replies;
use crate::{Clock, Machine, Options, Stats};

/// How many entries are read from the journal at once.
const READ_BATCH: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// The size at which a batch is full; the commands behind it go into the next entry. A single decision may be larger.
const BATCH_BYTES: usize = 4 << 20;

/// How often the ready tasks go first before a batch is decided.
const GATHER_ROUNDS: usize = 8;

/// How often an append that lost the race is decided again before its callers are told that the stream is busy.
const MAX_CONFLICTS: usize = 100;

/// How long the task waits after a fault before it tries a deadline again.
const FAULT_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Something that waits for the state to become so, or for the news that the state cannot be known. Answers `true` when
/// it is done with.
pub(crate) type Condition<M> = Box<dyn FnMut(Result<&M, Fault>) -> bool + Send>;

/// What can be asked of a stream's task.
pub(crate) enum Request<M> {
    Command(Box<dyn Job<M>>),
    Wait(Condition<M>),
}

impl<M: Machine> Request<M> {
    fn fail(self, fault: &Fault) {
        match self {
            Self::Command(job) => job.fail(fault.clone()),
            Self::Wait(mut condition) => {
                condition(Err(fault.clone()));
            }
        }
    }
}

/// What all streams of an exchange share.
pub(crate) struct Shared<M: Machine> {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: M::Settings,
    pub(crate) options: Options,
    pub(crate) stats: Stats,
    pub(crate) stop: CancellationToken,
}

/// The task of one stream.
pub(crate) struct Live<M: Machine> {
    shared: Arc<Shared<M>>,
    stream: StreamId,
    requests: mpsc::Receiver<Request<M>>,
    machine: M,
    /// The last entry that the machine includes.
    head: Seq,
    replies: Replies,
    waiting: Vec<Condition<M>>,
    /// Other nodes' entries as they come; none where nobody else appends.
    news: Option<Tail>,
    snapshot: SnapshotPace,
    /// The machine is ahead of a journal that could not be read back. Nothing is answered from it.
    lost: bool,
    /// Why the machine may lack entries that are in the journal: the last attempt to read them failed. Nothing is
    /// answered from it either.
    behind: Option<Fault>,
    /// No deadline is acted on before this, after a fault.
    pause_until: Option<Timestamp>,
}

/// When the next snapshot is due, and the one that is being written.
#[derive(Default)]
struct SnapshotPace {
    covers: Seq,
    bytes: usize,
    bytes_since: usize,
    writing: Option<BoxFuture<'static, Result<Seq, AppendError>>>,
}

/// A machine, the last entry it includes, its replies, and where its snapshots stand.
type Loaded<M> = (M, Seq, Replies, SnapshotPace);

enum Wake {
    Requests,
    Deadline,
    News(Option<Result<Entry, ReadError>>),
    SnapshotWritten(Result<Seq, AppendError>),
    Idle,
    Stop,
}

impl<M: Machine> Live<M> {
    /// Serves the stream until it is idle or the exchange stops. Returns once nothing of it is left running.
    pub(crate) async fn run(
        shared: Arc<Shared<M>>,
        stream: StreamId,
        mut requests: mpsc::Receiver<Request<M>>,
    ) {
        let mut live = match Self::load(&shared, &stream).await {
            Ok((machine, head, replies, snapshot)) => {
                let (_, nothing) = mpsc::channel(1);
                let requests = std::mem::replace(&mut requests, nothing);
                Self {
                    shared,
                    stream,
                    requests,
                    machine,
                    head,
                    replies,
                    waiting: Vec::new(),
                    news: None,
                    snapshot,
                    lost: false,
                    behind: None,
                    pause_until: None,
                }
            }
            Err(fault) => {
                tracing::error!(%stream, ?fault, "the stream cannot be loaded");
                requests.close();
                while let Some(request) = requests.recv().await {
                    request.fail(&fault);
                }
                return;
            }
        };
        match live.shared.journal.sharing() {
            Sharing::Exclusive => live.abandon().await,
            Sharing::Shared => live.news = Some(live.shared.journal.tail(&live.stream, live.head)),
        }
        live.serve().await;
    }

    async fn serve(&mut self) {
        let mut batch = Vec::new();
        let mut sleep: Option<(Timestamp, BoxFuture<'static, ()>)> = None;
        let mut idle_since = self.shared.clock.now();
        loop {
            let deadline = self.next_wake();
            if sleep.as_ref().map(|(at, _)| *at) != deadline {
                sleep = deadline.map(|at| (at, self.shared.clock.sleep_until(at)));
            }
            let may_leave = deadline.is_none() && self.waiting.is_empty() && self.snapshot.writing.is_none();
            let mut idle =
                may_leave.then(|| self.shared.clock.sleep_until(idle_since + self.shared.options.idle_after));
            let wake = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => Wake::Stop,
                result = written(&mut self.snapshot.writing) => Wake::SnapshotWritten(result),
                count = self.requests.recv_many(&mut batch, self.shared.options.batch) => {
                    if count == 0 { Wake::Stop } else { Wake::Requests }
                }
                () = elapsed(sleep.as_mut().map(|(_, sleep)| sleep)) => Wake::Deadline,
                entry = news(&mut self.news) => Wake::News(entry),
                () = elapsed(idle.as_mut()) => Wake::Idle,
            };
            match wake {
                Wake::Requests => {
                    self.gather(&mut batch).await;
                    self.take(&mut batch).await;
                    idle_since = self.shared.clock.now();
                }
                Wake::Deadline => {
                    sleep = None;
                    self.settle(VecDeque::new()).await;
                }
                Wake::News(entry) => self.hear(entry).await,
                Wake::SnapshotWritten(result) => self.snapshot_written(result),
                Wake::Idle => {
                    if self.leave_if_idle(idle_since).await {
                        return;
                    }
                    idle_since = self.shared.clock.now();
                }
                Wake::Stop => return self.drain().await,
            }
        }
    }

    /// Lets every task that is ready go first, for as long as that brings more requests: on a busy machine entries grow
    /// and syncs of the disk get fewer, on an idle one it costs microseconds.
    async fn gather(&mut self, batch: &mut Vec<Request<M>>) {
        for _ in 0..GATHER_ROUNDS {
            let waiting = self.requests.len();
            tokio::task::yield_now().await;
            if self.requests.len() == waiting {
                break;
            }
        }
        while batch.len() < self.shared.options.batch
            && let Ok(request) = self.requests.try_recv()
        {
            batch.push(request);
        }
    }

    fn next_wake(&self) -> Option<Timestamp> {
        // Somebody may wait for what the journal holds: it is read again without being asked for.
        let unread = self.lost || self.behind.is_some();
        let deadline = if unread { Timestamp::MIN } else { self.machine.next_deadline()? };
        Some(self.pause_until.map_or(deadline, |pause| deadline.max(pause)))
    }

    /// Takes what waits: conditions are checked after the commands that came before them.
    async fn take(&mut self, batch: &mut Vec<Request<M>>) {
        let mut jobs = VecDeque::with_capacity(batch.len());
        let mut conditions = Vec::new();
        for request in batch.drain(..) {
            match request {
                Request::Command(job) => jobs.push_back(job),
                Request::Wait(condition) => conditions.push(condition),
            }
        }
        if !jobs.is_empty() || !conditions.is_empty() {
            self.settle(jobs).await;
        }
        for mut condition in conditions {
            if !condition(self.durable()) {
                self.waiting.push(condition);
            }
        }
    }

    /// The machine, if it holds all that is durable and nothing else.
    fn durable(&self) -> Result<&M, Fault> {
        if self.lost {
            return Err(Fault::Unavailable(BackendError::new(
                "the stream could not be read back after a fault",
            )));
        }
        self.behind.clone().map_or(Ok(&self.machine), Err)
    }

    /// Decides `jobs`, makes what they decided durable, and answers their callers.
    async fn settle(&mut self, mut jobs: VecDeque<Box<dyn Job<M>>>) {
        let mut conflicts = 0;
        let mut at_once = usize::MAX;
        loop {
            let round = match self.round(&mut jobs, at_once).await {
                Ok(round) => round,
                Err(fault) => {
                    self.pause();
                    for job in jobs {
                        job.fail(fault.clone());
                    }
                    return;
                }
            };
            match round {
                Round::Settled { more: false } => return,
                Round::Settled { more: true } => conflicts = 0,
                // One by one, so that those who would have fitted do not suffer with the one that does not.
                Round::TooLarge => at_once = 1,
                Round::Conflict => {
                    conflicts += 1;
                    self.shared.stats.conflicts.fetch_add(1, Relaxed);
                    if conflicts >= MAX_CONFLICTS {
                        for job in jobs {
                            job.fail(Fault::Busy { stream: self.stream.clone(), waiting: conflicts });
                        }
                        return;
                    }
                }
            }
        }
    }

    /// One attempt: as many of `jobs` as one entry holds, and no more than `at_once`. Those that are settled are gone from
    /// `jobs` afterwards.
    async fn round(&mut self, jobs: &mut VecDeque<Box<dyn Job<M>>>, at_once: usize) -> Result<Round, Fault> {
        if self.lost {
            self.rebuild().await?;
        } else if self.news.is_some() || self.behind.is_some() {
            self.catch_up().await?;
        }
        let now = self.shared.clock.now();
        let draft = match self.draft(now, jobs, at_once) {
            Ok(draft) => draft,
            Err(why) => {
                // The machine may be ahead, and the same commands would fail again: none of them happened.
                self.rebuild().await?;
                let why = Arc::from(why.to_string());
                return Err(Fault::Damaged {
                    stream: self.stream.clone(),
                    entry: self.head.next().get(),
                    why,
                });
            }
        };
        let more = draft.decided < jobs.len();
        if draft.record.is_empty() {
            self.finish(jobs, draft.decided);
            return Ok(Round::Settled { more });
        }
        let (json, replies) = match draft.record.finish() {
            Ok(finished) => finished,
            Err(error) => {
                self.rebuild().await?;
                return Err(Fault::Unavailable(BackendError::caused(
                    "a reply cannot be written as JSON",
                    error,
                )));
            }
        };
        let bytes = json.len();
        let payload = match Payload::new(json) {
            Ok(payload) => payload,
            Err(too_large) => {
                self.rebuild().await?;
                if draft.decided > 1 {
                    return Ok(Round::TooLarge);
                }
                self.pause();
                if let Some(job) = jobs.pop_front() {
                    job.fail(Fault::TooLarge(too_large));
                }
                return Ok(Round::Settled { more: !jobs.is_empty() });
            }
        };
        match self.shared.journal.append(&self.stream, self.head, payload).await {
            Ok(seq) => {
                for event in &draft.unapplied {
                    self.machine.apply(event);
                }
                if draft.ticked {
                    self.machine.ticked(now);
                }
                self.appended(seq, bytes, now, replies);
                // Whoever watches knows before whoever asked: an answer is never ahead of what follows from it.
                self.wake_waiting();
                self.finish(jobs, draft.decided);
                self.pause_until = None;
                Ok(Round::Settled { more })
            }
            Err(AppendError::Conflict { .. }) => {
                if draft.ahead {
                    self.rebuild().await?;
                } else {
                    self.catch_up().await?;
                }
                Ok(Round::Conflict)
            }
            Err(AppendError::Unavailable(cause)) => {
                tracing::warn!(stream = %self.stream, %cause, "an append was refused");
                if draft.ahead {
                    self.rebuild().await?;
                }
                self.pause();
                self.answer_reads(now, jobs, draft.decided, &Fault::Unavailable(cause));
                Ok(Round::Settled { more })
            }
            Err(AppendError::Unknown(cause)) => {
                tracing::warn!(stream = %self.stream, %cause, "it is not known whether an append was taken");
                self.rebuild().await.map_err(|_| Fault::Unknown(cause.clone()))?;
                self.pause();
                self.answer_known(jobs, draft.decided, &Fault::Unknown(cause));
                Ok(Round::Settled { more })
            }
        }
    }

    /// Lets the machine decide, until the entry is full.
    fn draft(
        &mut self,
        now: Timestamp,
        jobs: &mut VecDeque<Box<dyn Job<M>>>,
        at_once: usize,
    ) -> Result<Draft<M::Event>, serde_json::Error> {
        let mut draft = Draft {
            record: RecordWriter::new(M::VERSION, now),
            unapplied: Vec::new(),
            ahead: false,
            ticked: false,
            decided: 0,
        };
        self.replies.forget(now, self.shared.options.reply_window);
        if self.machine.next_deadline().is_some_and(|deadline| deadline <= now) {
            let events = self.machine.tick(now);
            if events.is_empty() {
                self.machine.ticked(now);
            } else {
                draft.push(events)?;
                draft.ticked = true;
            }
        }
        let mut given: Vec<FirstReply> = Vec::new();
        for job in jobs.iter_mut().take(at_once) {
            if draft.record.len() >= BATCH_BYTES {
                break;
            }
            draft.decided += 1;
            if let Some(id) = job.id() {
                let first = self.replies.get(id).or_else(|| given.iter().find(|reply| reply.id == *id));
                if let Some(first) = first {
                    job.repeat(first);
                    continue;
                }
            }
            if !draft.unapplied.is_empty() {
                for event in draft.unapplied.drain(..) {
                    self.machine.apply(&event);
                }
                draft.ahead = true;
                if std::mem::take(&mut draft.ticked) {
                    self.machine.ticked(now);
                }
            }
            let events = job.decide(&self.machine, now);
            let decided_something = !events.is_empty();
            draft.push(events)?;
            if decided_something && let Some(first) = job.first_reply() {
                let first = first?;
                draft.record.reply(first.clone());
                given.push(first);
            }
            if let Some(event) = job.observe(&mut self.machine, now) {
                draft.push(vec![event])?;
            }
        }
        Ok(draft)
    }

    fn finish(&self, jobs: &mut VecDeque<Box<dyn Job<M>>>, decided: usize) {
        self.shared.stats.commands.fetch_add(decided as u64, Relaxed);
        for job in jobs.drain(..decided) {
            job.finish();
        }
    }

    /// The journal takes no writes: answers those that only ask, as of the last durable entry.
    fn answer_reads(
        &mut self,
        now: Timestamp,
        jobs: &mut VecDeque<Box<dyn Job<M>>>,
        decided: usize,
        fault: &Fault,
    ) {
        for mut job in jobs.drain(..decided) {
            if let Some(first) = job.id().and_then(|id| self.replies.get(id)) {
                // It was done before: what the state says by now is not its reply.
                job.repeat(first);
                job.finish();
            } else if job.decide(&self.machine, now).is_empty() {
                job.finish();
            } else {
                job.fail(fault.clone());
            }
        }
    }

    /// After an append of unknown fate: answers those whose reply the journal turned out to hold.
    fn answer_known(&self, jobs: &mut VecDeque<Box<dyn Job<M>>>, decided: usize, fault: &Fault) {
        for mut job in jobs.drain(..decided) {
            match job.id().and_then(|id| self.replies.get(id)) {
                Some(first) => {
                    job.repeat(first);
                    job.finish();
                }
                None => job.fail(fault.clone()),
            }
        }
    }

    fn pause(&mut self) {
        self.pause_until = self.shared.clock.now().checked_add(FAULT_PAUSE).ok();
    }

    fn wake_waiting(&mut self) {
        let machine = &self.machine;
        self.waiting.retain_mut(|condition| !condition(Ok(machine)));
    }

    /// Another node appended.
    async fn hear(&mut self, entry: Option<Result<Entry, ReadError>>) {
        let has_ended = !matches!(entry, Some(Ok(_)));
        let result = match entry {
            // The entry cannot be added to a machine that is ahead of the journal.
            _ if self.lost => self.rebuild().await,
            Some(Ok(entry)) if entry.seq <= self.head => Ok(()),
            Some(Ok(entry)) if entry.seq == self.head.next() => {
                self.replay(&entry).map(|()| self.wake_waiting())
            }
            Some(_) | None => self.catch_up().await,
        };
        if has_ended {
            // As a tail does after an error: begin a new one where we are.
            self.news = Some(self.shared.journal.tail(&self.stream, self.head));
        }
        if let Err(fault) = result {
            tracing::warn!(stream = %self.stream, ?fault, "another node's entry cannot be read");
            self.shared.clock.sleep_until(self.shared.clock.now() + FAULT_PAUSE).await;
        }
    }

    // ---- the journal -------------------------------------------------------------------------------------------

    async fn load(shared: &Arc<Shared<M>>, stream: &StreamId) -> Result<Loaded<M>, Fault> {
        let snapshot = shared.journal.load_snapshot(stream).await?;
        let (mut machine, mut head, mut replies, mut pace) =
            (M::new(), Seq::START, Replies::default(), SnapshotPace::default());
        if let Some(snapshot) = snapshot {
            let owned = SnapshotOwned::<M>::parse(&snapshot.state)
                .map_err(|why| damaged(stream, snapshot.seq, &why))?;
            machine = owned.state;
            replies = Replies::from_snapshot(owned.replies);
            head = snapshot.seq;
            pace = SnapshotPace { covers: head, bytes: snapshot.state.len(), ..pace };
        }
        machine.configure(&shared.settings);
        loop {
            let entries = shared.journal.read(stream, head, READ_BATCH).await?;
            let last = entries.len() < READ_BATCH.get();
            for entry in entries {
                replay(stream, &entry, &mut machine, &mut replies)?;
                head = entry.seq;
                pace.bytes_since += entry.payload.as_str().len();
            }
            if last {
                break;
            }
        }
        machine.resume(shared.clock.now());
        Ok((machine, head, replies, pace))
    }

    /// Throws the machine away, for it is ahead of the journal, and builds it again.
    async fn rebuild(&mut self) -> Result<(), Fault> {
        self.lost = true;
        let loaded = Self::load(&self.shared, &self.stream).await?;
        self.replace(loaded);
        self.lost = false;
        Ok(())
    }

    fn replace(&mut self, (machine, head, replies, snapshot): Loaded<M>) {
        let stale = std::mem::replace(&mut self.machine, machine);
        self.machine.adopt(stale);
        self.head = head;
        self.replies = replies;
        self.behind = None;
        self.snapshot = SnapshotPace { writing: self.snapshot.writing.take(), ..snapshot };
        self.wake_waiting();
    }

    async fn catch_up(&mut self) -> Result<(), Fault> {
        let from = self.head;
        let result = self.read_on().await;
        self.behind = result.as_ref().err().cloned();
        if self.head > from {
            self.wake_waiting();
        }
        result
    }

    async fn read_on(&mut self) -> Result<(), Fault> {
        loop {
            let entries = match self.shared.journal.read(&self.stream, self.head, READ_BATCH).await {
                Ok(entries) => entries,
                // So far behind that only a snapshot leads on.
                Err(ReadError::Trimmed { .. }) => {
                    let loaded = Self::load(&self.shared, &self.stream).await?;
                    self.replace(loaded);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let last = entries.len() < READ_BATCH.get();
            for entry in entries {
                self.replay(&entry)?;
            }
            if last {
                return Ok(());
            }
        }
    }

    fn replay(&mut self, entry: &Entry) -> Result<(), Fault> {
        replay(&self.stream, entry, &mut self.machine, &mut self.replies)?;
        self.head = entry.seq;
        self.snapshot.bytes_since += entry.payload.as_str().len();
        Ok(())
    }

    fn appended(&mut self, seq: Seq, bytes: usize, now: Timestamp, replies: Vec<FirstReply>) {
        self.head = seq;
        for reply in replies {
            self.replies.remember(now, reply);
        }
        self.shared.stats.appends.fetch_add(1, Relaxed);
        self.snapshot.bytes_since += bytes;
        let options = &self.shared.options;
        let entries = seq.since(self.snapshot.covers);
        // A snapshot is worth writing once replaying costs more than loading it would.
        let due = entries >= options.snapshot_every || self.snapshot.bytes_since >= options.snapshot_bytes;
        if due && self.snapshot.bytes_since >= self.snapshot.bytes && self.snapshot.writing.is_none() {
            self.begin_snapshot();
        }
    }

    /// What callers waited for when the process that served this stream went away is over.
    async fn abandon(&mut self) {
        let now = self.shared.clock.now();
        let events = self.machine.abandon(now);
        if events.is_empty() {
            return;
        }
        let mut record = RecordWriter::new(M::VERSION, now);
        let written = events.iter().try_for_each(|event| record.event(event)).and_then(|()| record.finish());
        let Ok((json, _)) = written else { return };
        let bytes = json.len();
        let Ok(payload) = Payload::new(json) else { return };
        match self.shared.journal.append(&self.stream, self.head, payload).await {
            Ok(seq) => {
                for event in &events {
                    self.machine.apply(event);
                }
                self.appended(seq, bytes, now, Vec::new());
            }
            // Not needed for what follows: those waits end at their own deadline instead.
            Err(error) => {
                tracing::warn!(stream = %self.stream, %error, "abandoned waits stay open");
                if let AppendError::Unknown(cause) = error {
                    // The entry may be there all the same.
                    self.behind = Some(Fault::Unknown(cause));
                }
            }
        }
    }

    // ---- snapshots ---------------------------------------------------------------------------------------------

    fn begin_snapshot(&mut self) {
        let replies = self.replies.to_snapshot();
        let form = SnapshotRef { v: M::VERSION, state: &self.machine, replies: &replies };
        let state: Arc<str> = match serde_json::to_string(&form) {
            Ok(state) => state.into(),
            Err(error) => {
                tracing::error!(stream = %self.stream, %error, "the state cannot be written as JSON");
                return;
            }
        };
        let (journal, stream, seq) = (self.shared.journal.clone(), self.stream.clone(), self.head);
        let keep = self.shared.options.keep_entries;
        self.snapshot = SnapshotPace { covers: seq, bytes: state.len(), bytes_since: 0, writing: None };
        self.shared.stats.snapshots.fetch_add(1, Relaxed);
        self.snapshot.writing = Some(
            async move {
                journal.save_snapshot(&stream, Snapshot { seq, state }).await?;
                journal.trim(&stream, Seq::new(seq.get().saturating_sub(keep))).await?;
                Ok(seq)
            }
            .boxed(),
        );
    }

    fn snapshot_written(&mut self, result: Result<Seq, AppendError>) {
        self.snapshot.writing = None;
        if let Err(error) = result {
            // The entries are all there; the next snapshot is tried after as many more.
            tracing::warn!(stream = %self.stream, %error, "a snapshot was not written");
        }
    }

    // ---- leaving -----------------------------------------------------------------------------------------------

    /// Whether the stream was idle and its task is done.
    async fn leave_if_idle(&mut self, idle_since: Timestamp) -> bool {
        let idle_for = self.shared.clock.now().duration_since(idle_since);
        if idle_for < self.shared.options.idle_after || !self.requests.is_empty() {
            return false;
        }
        self.drain().await;
        true
    }

    /// Answers what waits, takes nothing more, and leaves a snapshot behind if replaying would take long.
    async fn drain(&mut self) {
        self.requests.close();
        let mut batch = Vec::new();
        while self.requests.recv_many(&mut batch, self.shared.options.batch).await > 0 {
            self.take(&mut batch).await;
        }
        // Whoever still waits for a condition learns from its dropped channel that it will not be told.
        self.waiting.clear();
        // A machine that is ahead of the journal must not become what the journal begins with.
        if !self.lost
            && self.snapshot.writing.is_none()
            && self.head.since(self.snapshot.covers) >= self.shared.options.snapshot_on_leave
        {
            self.begin_snapshot();
        }
        if let Some(writing) = self.snapshot.writing.take() {
            let result = writing.await;
            self.snapshot_written(result);
        }
    }
}

enum Round {
    Settled {
        more: bool,
    },
    Conflict,
    /// The decisions of several commands are more than one entry holds. None was settled.
    TooLarge,
}

/// What one attempt decided.
struct Draft<E> {
    record: RecordWriter,
    /// Decided, but not yet part of the machine.
    unapplied: Vec<E>,
    /// Whether the machine includes events that are not durable.
    ahead: bool,
    /// Whether a tick's events are among the unapplied.
    ticked: bool,
    /// How many commands were decided.
    decided: usize,
}

impl<E: serde::Serialize> Draft<E> {
    fn push(&mut self, events: Vec<E>) -> Result<(), serde_json::Error> {
        for event in events {
            self.record.event(&event)?;
            self.unapplied.push(event);
        }
        Ok(())
    }
}

fn replay<M: Machine>(
    stream: &StreamId,
    entry: &Entry,
    machine: &mut M,
    replies: &mut Replies,
) -> Result<(), Fault> {
    if entry.payload.is_redacted() {
        return Ok(());
    }
    let record =
        Record::parse::<M>(entry.payload.as_str()).map_err(|why| damaged(stream, entry.seq, &why))?;
    for event in &record.events {
        machine.apply(event);
    }
    if let Some(at) = record.at {
        for reply in record.replies {
            replies.remember(at, reply);
        }
    }
    Ok(())
}

fn damaged(stream: &StreamId, seq: Seq, why: &impl std::fmt::Display) -> Fault {
    Fault::Damaged { stream: stream.clone(), entry: seq.get(), why: why.to_string().into() }
}

async fn elapsed(sleep: Option<&mut BoxFuture<'static, ()>>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

async fn news(news: &mut Option<Tail>) -> Option<Result<Entry, ReadError>> {
    match news {
        Some(tail) => tail.next().await,
        None => std::future::pending().await,
    }
}

async fn written(
    writing: &mut Option<BoxFuture<'static, Result<Seq, AppendError>>>,
) -> Result<Seq, AppendError> {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}
