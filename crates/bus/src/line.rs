//! Tells all who tail what is new.
//!
//! However many there are, each entry is read and understood once. What is told is held for a bounded number of entries: who
//! is slower reads the journal instead, and nobody waits for anybody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use switchboard_exchange::CommandError;
use switchboard_journal::Seq;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::log::{Decoded, Log, Page};
use crate::{BusError, Filter, Position};

/// How many entries are held for those who are slow.
const HELD: usize = 64;

/// An entry that is larger, in bytes, is not held: who wants it reads it.
const HELD_BYTES: usize = 256 << 10;

/// How many events may pass without a match before a tail says how far it is.
const QUIET: u64 = 1_000;

/// What those who tail are told.
#[derive(Debug, Clone)]
enum News {
    /// The journal has entries up to this one.
    Until(Seq),
    /// The next entry.
    Entry(Arc<Decoded>),
    /// The journal cannot be followed.
    Failed(BusError),
}

/// Follows the journal for as long as anybody tails.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    log: Log,
    sender: Arc<Mutex<Option<broadcast::Sender<News>>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Line {
    pub(crate) fn new(log: Log, stop: CancellationToken, tasks: TaskTracker) -> Self {
        Self { log, sender: Arc::default(), stop, tasks }
    }

    /// What is new from now on, beginning with where the journal ends. Nothing if the bus has stopped.
    fn subscribe(&self) -> Option<broadcast::Receiver<News>> {
        let mut sender = self.lock();
        if self.stop.is_cancelled() {
            return None;
        }
        if let Some(sender) = &*sender {
            return Some(sender.subscribe());
        }
        let (new, receiver) = broadcast::channel(HELD);
        *sender = Some(new.clone());
        drop(sender);
        let line = self.clone();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(line.run(&new)).await;
            line.lock().take_if(|current| current.same_channel(&new));
        });
        Some(receiver)
    }

    async fn run(&self, sender: &broadcast::Sender<News>) {
        let failed = match self.log.journal().head(self.log.stream()).await {
            Ok(head) => self.follow(sender, head).await,
            Err(error) => Some(CommandError::Unreadable(error)),
        };
        if let Some(error) = failed {
            let _ = sender.send(News::Failed(error));
        }
    }

    /// Returns when nobody listens any more, or the journal cannot be followed.
    async fn follow(&self, sender: &broadcast::Sender<News>, head: Seq) -> Option<BusError> {
        let mut tail = self.log.journal().tail(self.log.stream(), head);
        // Whoever subscribed before this may have read less than that.
        let _ = sender.send(News::Until(head));
        loop {
            let entry = tokio::select! {
                entry = tail.next() => entry,
                () = sender.closed() => {
                    let mut current = self.lock();
                    if sender.receiver_count() > 0 {
                        continue;
                    }
                    current.take_if(|current| current.same_channel(sender));
                    return None;
                }
            };
            let news = match entry {
                Some(Ok(entry)) if entry.payload.as_str().len() > HELD_BYTES => News::Until(entry.seq),
                Some(Ok(entry)) => match self.log.decode(&entry) {
                    Ok(decoded) => News::Entry(Arc::new(decoded)),
                    Err(error) => return Some(error),
                },
                Some(Err(error)) => return Some(CommandError::Unreadable(error)),
                None => return None,
            };
            let _ = sender.send(news);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<broadcast::Sender<News>>> {
        // Nothing panics while it is held.
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one tail is.
pub(crate) struct Follower {
    line: Line,
    filter: Filter,
    /// Everything up to here was given out, or did not match.
    after: Position,
    /// The newest position known when the tail began.
    newest: Position,
    /// What was last given out as `next`.
    told: Position,
    /// The last entry that was looked at in full.
    seq: Seq,
    news: Option<broadcast::Receiver<News>>,
    /// There may be entries that only the journal has.
    behind: bool,
    ended: bool,
}

impl Follower {
    pub(crate) fn new(line: Line, filter: Filter, after: Position, newest: Position) -> Self {
        Self {
            line,
            filter,
            after,
            newest,
            told: after,
            seq: Seq::START,
            news: None,
            behind: true,
            ended: false,
        }
    }

    /// The next page that has something to say. None once the bus has stopped, or after an error.
    pub(crate) async fn next(&mut self) -> Option<Result<Page, BusError>> {
        if self.ended {
            return None;
        }
        let page = self.advance().await;
        self.ended = !matches!(page, Some(Ok(_)));
        if let Some(Ok(page)) = &page {
            self.told = page.next;
        }
        page
    }

    async fn advance(&mut self) -> Option<Result<Page, BusError>> {
        loop {
            if self.news.is_none() {
                // Before the journal is read, so that nothing falls between the two.
                self.news = Some(self.line.subscribe()?);
                self.behind = true;
            }
            let page = if self.behind {
                match self.catch_up().await {
                    Ok(page) => page,
                    Err(error) => return Some(Err(error)),
                }
            } else {
                match self.listen().await {
                    Some(Ok(page)) => page,
                    Some(Err(error)) => return Some(Err(error)),
                    None => continue,
                }
            };
            let quiet = page.next.since(self.told) < QUIET;
            if !page.events.is_empty() || page.missed.is_some() || !quiet {
                return Some(Ok(page));
            }
        }
    }

    async fn catch_up(&mut self) -> Result<Page, BusError> {
        let limit = crate::service::MAX_LIMIT;
        let (page, seq) = self.line.log.read(&self.filter, self.after, limit, self.newest).await?;
        self.after = page.next;
        self.seq = seq;
        self.behind = page.more;
        Ok(page)
    }

    /// Waits for news; none if they only say that there is more to read, or to listen to anew.
    async fn listen(&mut self) -> Option<Result<Page, BusError>> {
        let news = self.news.as_mut()?.recv().await;
        match news {
            Ok(News::Entry(entry)) if entry.seq == self.seq.next() => {
                let events = entry.events(&self.filter, self.after).collect();
                self.seq = entry.seq;
                self.after = self.after.max(entry.last().unwrap_or_default());
                Some(Ok(Page { events, next: self.after, more: false, missed: None }))
            }
            Ok(News::Entry(entry)) => {
                self.behind = entry.seq > self.seq;
                None
            }
            Ok(News::Until(seq)) => {
                self.behind = seq > self.seq;
                None
            }
            Ok(News::Failed(error)) => Some(Err(error)),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                self.behind = true;
                None
            }
            Err(broadcast::error::RecvError::Closed) => {
                self.news = None;
                None
            }
        }
    }
}
