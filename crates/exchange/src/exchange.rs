//! The way in: which streams are live, and how commands reach them.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::SignedDuration;
use switchboard_journal::{BackendError, Journal, ReadError, Seq, Sharing, StreamHead, StreamId, Tail};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::command::{Call, Fault};
use crate::live::{Live, Request, Shared};
use crate::{Clock, CommandError, CommandId, Decide, Machine};

/// The bounds of an exchange.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many commands may wait for one stream; more are refused as [`CommandError::Busy`]. Default: 4,096.
    pub queue: usize,
    /// How many commands are decided for one entry at most. Default: 512.
    pub batch: usize,
    /// How long a stream without commands, waiting calls and deadlines stays in memory. Default: 10 minutes.
    pub idle_after: SignedDuration,
    /// How many entries are replayed at most after a restart, as long as the snapshot is smaller than they are.
    /// Default: 2,000.
    pub snapshot_every: u64,
    /// The same, in bytes of entries. Default: 8 MiB.
    pub snapshot_bytes: usize,
    /// A stream that leaves memory with at least so many entries since its last snapshot leaves a new one. Default: 200.
    pub snapshot_on_leave: u64,
    /// How many entries before the newest snapshot stay readable, for watchers that resume. Default: 10,000.
    pub keep_entries: u64,
    /// How long a command id is remembered. At most 4,096 per stream. Default: 10 minutes.
    pub reply_window: SignedDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue: 4_096,
            batch: 512,
            idle_after: SignedDuration::from_mins(10),
            snapshot_every: 2_000,
            snapshot_bytes: 8 << 20,
            snapshot_on_leave: 200,
            keep_entries: 10_000,
            reply_window: SignedDuration::from_mins(10),
        }
    }
}

/// What an exchange did since it started.
#[derive(Debug, Default)]
pub struct Stats {
    /// Commands that were answered.
    pub commands: AtomicU64,
    /// Entries that were appended.
    pub appends: AtomicU64,
    /// Appends that lost a race against another node.
    pub conflicts: AtomicU64,
    /// Snapshots that were begun.
    pub snapshots: AtomicU64,
}

/// Runs one machine per stream. Cheap to clone; all clones are the same exchange.
pub struct Exchange<M: Machine> {
    inner: Arc<Inner<M>>,
}

impl<M: Machine> fmt::Debug for Exchange<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("live_streams", &self.live_streams()).finish_non_exhaustive()
    }
}

impl<M: Machine> Clone for Exchange<M> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<M: Machine> {
    shared: Arc<Shared<M>>,
    live: Mutex<HashMap<StreamId, LiveStream<M>>>,
    tasks: TaskTracker,
}

struct LiveStream<M> {
    requests: mpsc::Sender<Request<M>>,
    /// Cancelled when the stream's task is gone.
    gone: CancellationToken,
}

impl<M: Machine> Exchange<M> {
    /// An exchange over `journal`. Its streams' tasks run on the tokio runtime of whoever first uses them.
    pub fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        settings: M::Settings,
        options: Options,
    ) -> Self {
        let shared = Arc::new(Shared {
            journal,
            clock,
            settings,
            options,
            stats: Stats::default(),
            stop: CancellationToken::new(),
        });
        Self { inner: Arc::new(Inner { shared, live: Mutex::default(), tasks: TaskTracker::new() }) }
    }

    /// Sends `command` to `stream` and waits for its reply, which comes once its events are durable.
    ///
    /// With an `id`, a repetition within [`Options::reply_window`] has no second effect and gets the first reply; a
    /// command that was rejected, or that changed nothing, is decided anew. If the returned future is dropped, the
    /// command takes effect all the same.
    pub async fn send<C>(
        &self,
        stream: &StreamId,
        command: C,
        id: Option<CommandId>,
    ) -> Result<<M as Decide<C>>::Reply, CommandError<M::Rejection>>
    where
        M: Decide<C>,
        C: Send + 'static,
    {
        let (call, reply) = Call::<M, C>::new(command, id);
        self.request(stream, Request::Command(Box::new(call))).await?;
        // A task that ends without an answer was stopped, or ran into a mistake in a rule.
        reply.await.unwrap_or_else(|_| {
            Err(if self.is_stopping() {
                CommandError::Stopping
            } else {
                CommandError::Unknown(task_failed())
            })
        })
    }

    /// Waits until `condition` holds of the stream's state, and gives what it gave. It is asked now and after every
    /// change, so it must be cheap. What it sees is durable.
    ///
    /// Dropping the returned future withdraws it.
    pub async fn wait_for<T, F>(
        &self,
        stream: &StreamId,
        mut condition: F,
    ) -> Result<T, CommandError<M::Rejection>>
    where
        T: Send + 'static,
        F: FnMut(&M) -> Option<T> + Send + 'static,
    {
        let (sender, found) = oneshot::channel();
        let mut sender = Some(sender);
        let condition = Box::new(move |machine: Result<&M, Fault>| {
            if sender.as_ref().is_none_or(oneshot::Sender::is_closed) {
                return true;
            }
            let answer = match machine {
                Ok(machine) => condition(machine).map(Ok),
                Err(fault) => Some(Err(fault)),
            };
            let done = answer.is_some();
            if let Some((answer, sender)) = answer.and_then(|answer| Some((answer, sender.take()?))) {
                // The caller may just have left.
                let _ = sender.send(answer);
            }
            done
        });
        self.request(stream, Request::Wait(condition)).await?;
        let lost = |_| {
            if self.is_stopping() { Fault::Stopping } else { ReadError::Unavailable(task_failed()).into() }
        };
        Ok(found.await.map_err(lost)??)
    }

    /// Looks at the stream's state as of the last durable entry.
    pub async fn look<T, F>(&self, stream: &StreamId, look: F) -> Result<T, CommandError<M::Rejection>>
    where
        T: Send + 'static,
        F: FnOnce(&M) -> T + Send + 'static,
    {
        let mut look = Some(look);
        self.wait_for(stream, move |machine| look.take().map(|look| look(machine))).await
    }

    /// Follows the stream's entries from `after` on, those of other nodes too; none is skipped or repeated.
    /// The payload of an entry is a [`Record`](crate::Record).
    pub async fn watch(&self, stream: &StreamId, after: Seq) -> Result<Tail, CommandError<M::Rejection>> {
        // The stream must be live, else nobody would act on its deadlines while it is watched.
        self.look(stream, |_| ()).await?;
        Ok(self.inner.shared.journal.tail(stream, after))
    }

    /// The streams whose name begins with `prefix` and sorts after `after`, at most `limit`.
    pub async fn streams(
        &self,
        prefix: &str,
        after: Option<&StreamId>,
        limit: NonZeroUsize,
    ) -> Result<Vec<StreamHead>, ReadError> {
        self.inner.shared.journal.streams(prefix, after, limit).await
    }

    /// How many streams are in memory.
    pub fn live_streams(&self) -> usize {
        self.lock().len()
    }

    /// Who else may append to the journal.
    pub fn sharing(&self) -> Sharing {
        self.inner.shared.journal.sharing()
    }

    /// Where this exchange takes time from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.shared.clock
    }

    /// What this exchange did since it started.
    pub fn stats(&self) -> &Stats {
        &self.inner.shared.stats
    }

    /// Takes no more commands, answers those that wait, and returns when every stream's task has ended. What the caller
    /// is not willing to wait for it leaves by dropping the future: nothing acknowledged depends on it.
    pub async fn stop(&self) {
        self.inner.shared.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    async fn request(&self, stream: &StreamId, mut request: Request<M>) -> Result<(), Fault> {
        loop {
            let (requests, gone) = self.open(stream)?;
            match requests.try_send(request) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => {
                    return Err(Fault::Busy {
                        stream: stream.clone(),
                        waiting: self.inner.shared.options.queue,
                    });
                }
                Err(mpsc::error::TrySendError::Closed(returned)) => {
                    // The stream is leaving memory. Its successor must not start before it is gone.
                    gone.cancelled().await;
                    request = returned;
                }
            }
        }
    }

    fn open(&self, stream: &StreamId) -> Result<(mpsc::Sender<Request<M>>, CancellationToken), Fault> {
        let mut live = self.lock();
        if let Some(open) = live.get(stream) {
            return Ok((open.requests.clone(), open.gone.clone()));
        }
        if self.is_stopping() {
            return Err(Fault::Stopping);
        }
        let (requests, receiver) = mpsc::channel(self.inner.shared.options.queue);
        let gone = CancellationToken::new();
        live.insert(stream.clone(), LiveStream { requests: requests.clone(), gone: gone.clone() });
        let departure = Departure { inner: self.inner.clone(), stream: stream.clone(), gone: gone.clone() };
        let run = Live::run(self.inner.shared.clone(), stream.clone(), receiver);
        self.inner.tasks.spawn(async move {
            let _departure = departure;
            run.await;
        });
        Ok((requests, gone))
    }

    fn is_stopping(&self) -> bool {
        self.inner.shared.stop.is_cancelled()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, LiveStream<M>>> {
        self.inner.lock()
    }
}

fn task_failed() -> BackendError {
    BackendError::new("the stream's task ended by a fault of this program, and the stream is loaded again")
}

impl<M: Machine> Inner<M> {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, LiveStream<M>>> {
        // Every critical section leaves the map whole, so a panic elsewhere does not make it unusable.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the stream off the list when its task ends, also by a panic: the next command loads it anew.
struct Departure<M: Machine> {
    inner: Arc<Inner<M>>,
    stream: StreamId,
    gone: CancellationToken,
}

impl<M: Machine> Drop for Departure<M> {
    fn drop(&mut self) {
        self.inner.lock().remove(&self.stream);
        self.gone.cancel();
    }
}
