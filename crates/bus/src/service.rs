//! The way in: publishes, reads, and tells what is new.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, LazyLock};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use switchboard_exchange::{Clock, CommandError, CommandId, Exchange, Options};
use switchboard_journal::{Journal, StreamId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::line::{Follower, Line};
use crate::log::{Log, Page};
use crate::retention::{self, Kept, Retention};
use crate::{Filter, Ledger, NewEvent, Position, Publish, Refused};

/// The name of the journal's stream that holds all events.
pub const STREAM: &str = "bus";

/// The most events in one page.
pub(crate) const MAX_LIMIT: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

static STREAM_ID: LazyLock<StreamId> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant, and shorter than a name may be")]
    StreamId::new(STREAM).expect("the name of the stream is valid")
});

/// Why the bus did not do what was asked. After [`CommandError::Unknown`] an event with a key, or a command with an id, can
/// be published again without being there twice.
pub type BusError = CommandError<Refused>;

/// Events as they come; see [`Bus::tail`].
pub type Tail = BoxStream<'static, Result<Page, BusError>>;

/// Publishes, reads, and tells what is new. Cheap to clone; all clones are the same bus.
#[derive(Clone)]
pub struct Bus {
    inner: Arc<Inner>,
}

struct Inner {
    exchange: Exchange<Ledger>,
    log: Log,
    line: Line,
    retention: Retention,
    kept: Arc<Kept>,
    published: AtomicU64,
    /// The newest position that was heard of, plus one; 0 for none.
    seen: AtomicU64,
    started: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// What the bus did and holds, for operators. The latter is as of the last look at what is kept, at most five seconds ago,
/// and zero on a bus that was not started or not used yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Events that were published through this bus since it was made. Repetitions are not counted.
    pub published: u64,
    /// Events that can be read.
    pub kept: u64,
    /// Their size: the bytes of topics, data, keys and sources.
    pub kept_bytes: u64,
}

impl Bus {
    /// The most events that one [`read`](Self::read) gives.
    pub const MAX_LIMIT: NonZeroUsize = MAX_LIMIT;

    /// A bus over `journal` that keeps events as long as `retention` says. Nothing is forgotten before
    /// [`start`](Self::start).
    pub fn new(journal: Arc<dyn Journal>, clock: Arc<dyn Clock>, retention: Retention) -> Self {
        let options = Options {
            // Events are the entries themselves, and forgotten by age, number and size only.
            keep_entries: u64::MAX,
            // Only what a snapshot covers can be forgotten.
            snapshot_every: 1_000,
            snapshot_on_leave: 1,
            queue: 1_024,
            ..Options::default()
        };
        let log = Log::new(journal.clone(), STREAM_ID.clone());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let line = Line::new(log.clone(), stop.clone(), tasks.clone());
        Self {
            inner: Arc::new(Inner {
                exchange: Exchange::new(journal, clock, (), options),
                log,
                line,
                retention,
                kept: Arc::default(),
                published: AtomicU64::new(0),
                seen: AtomicU64::new(0),
                started: AtomicBool::new(false),
                stop,
                tasks,
            }),
        }
    }

    /// Begins to forget what is no longer kept, until [`stop`](Self::stop). Starting twice is harmless. Must be called
    /// within a tokio runtime.
    pub fn start(&self) {
        if self.inner.started.swap(true, Relaxed) {
            return;
        }
        let looking = retention::keep_looking(
            self.inner.log.clone(),
            self.inner.exchange.clock().clone(),
            self.inner.retention.clone(),
            self.inner.kept.clone(),
        );
        self.inner.tasks.spawn(self.inner.stop.clone().run_until_cancelled_owned(looking));
    }

    /// Publishes `events`, all or none, in this order, and gives the position of each once they are durable.
    ///
    /// An event whose key was used within ten minutes gets the position it has and is not published again; see
    /// [`Publish`], also for how many events one call takes. If the returned future is dropped, they are published all the
    /// same.
    pub async fn publish(&self, events: Vec<NewEvent>) -> Result<Vec<Position>, BusError> {
        self.publish_once(events, None).await
    }

    /// As [`publish`](Self::publish), as one command with an id: repeating it within ten minutes gives the first answer.
    pub async fn publish_once(
        &self,
        events: Vec<NewEvent>,
        id: Option<CommandId>,
    ) -> Result<Vec<Position>, BusError> {
        let receipt = self.inner.exchange.send(&STREAM_ID, Publish { events }, id).await?;
        self.inner.published.fetch_add(receipt.published as u64, Relaxed);
        self.saw(receipt.positions.iter().copied().max());
        Ok(receipt.positions)
    }

    /// The position of the newest event; [`Position::START`] if there never was one.
    pub async fn newest(&self) -> Result<Position, BusError> {
        let newest = self.inner.exchange.look(&STREAM_ID, Ledger::newest).await?;
        self.saw(Some(newest));
        Ok(newest)
    }

    /// The newest position that this bus has given out or was asked for, without looking further; none before that. What
    /// is published after this was called has a later one.
    pub fn seen(&self) -> Option<Position> {
        self.inner.seen.load(SeqCst).checked_sub(1).map(Position::new)
    }

    /// Reads at most `limit` events, and no more than [`MAX_LIMIT`](Self::MAX_LIMIT), that match `filter` and follow
    /// `after`; without `after` none, only where new ones will begin.
    ///
    /// A page also ends after a mebibyte of data, or after 16 MiB of journal were looked through; [`Page::more`] then says
    /// that there was more, and [`Page::next`] where.
    ///
    /// # Errors
    /// [`Refused::Ahead`] if `after` was not given out yet.
    pub async fn read(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: NonZeroUsize,
    ) -> Result<Page, BusError> {
        let Some(after) = after else {
            let next = self.newest().await?;
            return Ok(Page { events: Vec::new(), next, more: false, missed: None });
        };
        let (after, newest) = self.place(Some(after)).await?;
        Ok(self.inner.log.read(filter, after, limit.min(MAX_LIMIT), newest).await?.0)
    }

    /// The last `limit` events, at most [`MAX_LIMIT`](Self::MAX_LIMIT), that match `filter`, oldest first. A mebibyte of
    /// data at most, found in the last 16 MiB of the journal; [`Page::more`] says that there may be older ones, and
    /// [`Page::next`] where new ones begin.
    pub async fn latest(&self, filter: &Filter, limit: NonZeroUsize) -> Result<Page, BusError> {
        let newest = self.newest().await?;
        self.inner.log.latest(filter, limit.min(MAX_LIMIT), newest).await
    }

    /// Follows what matches `filter` from `after` on, without `after` from now on: every event once, in order, as pages
    /// that hold what came together. None is skipped without [`Page::missed`] saying so, which happens to whoever follows
    /// so slowly that events are forgotten first. It holds up neither the bus nor others.
    ///
    /// Now and then a page has no events and only says how far the bus is. It ends when the bus stops, and after an error;
    /// to go on, begin anew after the last [`Page::next`].
    ///
    /// # Errors
    /// [`Refused::Ahead`] if `after` was not given out yet.
    pub async fn tail(&self, filter: Filter, after: Option<Position>) -> Result<Tail, BusError> {
        let (after, newest) = self.place(after).await?;
        let follower = Follower::new(self.inner.line.clone(), filter, after, newest);
        let pages = futures::stream::unfold(follower, |mut follower| async move {
            follower.next().await.map(|page| (page, follower))
        });
        Ok(pages.boxed())
    }

    /// Where the bus takes time from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.exchange.clock()
    }

    /// What this bus did and holds.
    pub fn stats(&self) -> Stats {
        let (kept, kept_bytes) = self.inner.kept.now();
        Stats { published: self.inner.published.load(Relaxed), kept, kept_bytes }
    }

    /// Takes no more events, answers those who wait, ends all tails, and returns when nothing is left running.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.exchange.stop().await;
    }

    fn saw(&self, position: Option<Position>) {
        self.inner.seen.fetch_max(position.map_or(0, |position| position.plus(1).get()), SeqCst);
    }

    /// Where to begin, and where the bus is.
    async fn place(&self, after: Option<Position>) -> Result<(Position, Position), BusError> {
        let newest = self.newest().await?;
        let after = after.unwrap_or(newest);
        if after > newest {
            return Err(CommandError::Rejected(Refused::Ahead { after, newest }));
        }
        Ok((after, newest))
    }
}
