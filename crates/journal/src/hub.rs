//! Wakes the tails of streams that one process appends to.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::StreamExt as _;
use tokio::sync::watch;

use crate::{Entry, ReadError, Seq, StreamId, Tail};

/// How many entries a tail reads at once.
const TAIL_BATCH: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Knows which streams are followed, and tells their followers that there is something to read.
///
/// It carries no entries: a follower reads them from the store, so that a slow one costs nothing and misses nothing.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    followed: Mutex<HashMap<StreamId, Weak<watch::Sender<Seq>>>>,
}

impl Hub {
    /// Says that `stream` now ends at `head`, and that readers will see it.
    pub(crate) fn announce(&self, stream: &StreamId, head: Seq) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = followed.get(stream) else { return };
        match sender.upgrade() {
            Some(sender) => {
                sender.send_if_modified(|seen| std::mem::replace(seen, head.max(*seen)) < head);
            }
            None => {
                followed.remove(stream);
            }
        }
    }

    /// Makes every follower read once more, to find that its store has closed.
    pub(crate) fn wake_all(&self) {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in followed.values().filter_map(Weak::upgrade) {
            sender.send_modify(|_| {});
        }
    }

    /// Follows `stream` from `after` on by means of `read`.
    pub(crate) fn tail<R, F>(self: &Arc<Self>, stream: StreamId, after: Seq, read: R) -> Tail
    where
        R: Fn(StreamId, Seq, NonZeroUsize) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<Entry>, ReadError>> + Send + 'static,
    {
        let sender = self.follow(&stream);
        let news = sender.subscribe();
        let follower = Follower { stream, after, read, news, _sender: sender, failed: false };
        futures::stream::unfold(follower, Follower::next_batch).map(futures::stream::iter).flatten().boxed()
    }

    fn follow(&self, stream: &StreamId) -> Arc<watch::Sender<Seq>> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = followed.get(stream).and_then(Weak::upgrade) {
            return sender;
        }
        followed.retain(|_, sender| sender.strong_count() > 0);
        let sender = Arc::new(watch::Sender::new(Seq::START));
        followed.insert(stream.clone(), Arc::downgrade(&sender));
        sender
    }
}

struct Follower<R> {
    stream: StreamId,
    after: Seq,
    read: R,
    news: watch::Receiver<Seq>,
    /// Keeps the hub's entry alive while somebody follows.
    _sender: Arc<watch::Sender<Seq>>,
    failed: bool,
}

impl<R, F> Follower<R>
where
    R: Fn(StreamId, Seq, NonZeroUsize) -> F,
    F: Future<Output = Result<Vec<Entry>, ReadError>>,
{
    async fn next_batch(mut self) -> Option<(Vec<Result<Entry, ReadError>>, Self)> {
        if self.failed {
            return None;
        }
        loop {
            // Marked before the read: an append that lands during it wakes us again.
            self.news.mark_unchanged();
            match (self.read)(self.stream.clone(), self.after, TAIL_BATCH).await {
                Ok(entries) => {
                    if let Some(last) = entries.last() {
                        self.after = last.seq;
                        return Some((entries.into_iter().map(Ok).collect(), self));
                    }
                }
                Err(error) => {
                    self.failed = true;
                    return Some((vec![Err(error)], self));
                }
            }
            self.news.changed().await.ok()?;
        }
    }
}
