//! The way in: makes, lists and ends keys, and tells who a bearer is.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use switchboard_exchange::{CommandError, Exchange};
use switchboard_journal::{Seq, StreamId, Tail};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::key::{bearer, split_bearer};
use crate::{
    AccessKeys, Caller, CreateKey, Grant, KeyId, KeyInfo, Refused, RevokeKey, SecretHash, new_token,
};

/// The name of the stream that holds all keys.
pub const STREAM: &str = "access";

/// How long the table waits before it follows the journal anew after a fault.
const FAULT_PAUSE: Duration = Duration::from_secs(1);

static STREAM_ID: LazyLock<StreamId> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant, and shorter than a name may be")]
    StreamId::new(STREAM).expect("the name of the stream is valid")
});

type Error = CommandError<Refused>;

/// Who may reach the server. Cheap to clone; all clones are the same.
///
/// It keeps all keys in memory, in step with the journal, so that telling who a bearer is needs no I/O. A key that
/// another node revokes is refused here as soon as the journal's tail brings the news.
#[derive(Debug, Clone)]
pub struct Access {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    exchange: Exchange<AccessKeys>,
    table: Table,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Access {
    /// Reads all keys and goes on following them until [`stop`](Self::stop), or until the last clone is gone.
    pub async fn open(exchange: Exchange<AccessKeys>) -> Result<Self, Error> {
        let table = Table::default();
        let tail = table.follow(&exchange).await?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(stop.clone().run_until_cancelled_owned(table.clone().keep(exchange.clone(), tail)));
        tasks.close();
        Ok(Self { inner: Arc::new(Inner { exchange, table, stop, tasks }) })
    }

    /// Who sends `bearer` at `now`; none if it is not a live key. The comparison takes constant time.
    pub fn authenticate(&self, bearer: &str, now: Timestamp) -> Option<Caller> {
        let (id, secret) = split_bearer(bearer)?;
        let keys = self.inner.table.now();
        let key = keys.open(id, secret, now)?;
        Some(Caller { name: key.name.clone(), grant: key.grant.clone() })
    }

    /// Whether any key is live at `now`.
    pub fn has_live_keys(&self, now: Timestamp) -> bool {
        self.inner.table.now().keys().any(|key| key.is_live(now))
    }

    /// Makes a key. The text that its holder sends as bearer is returned here and never again.
    pub async fn create(
        &self,
        name: &str,
        grant: Grant,
        expires_at: Option<Timestamp>,
    ) -> Result<(KeyInfo, String), Error> {
        let secret = new_token();
        loop {
            let id = KeyId::random();
            let command = CreateKey {
                id: id.clone(),
                name: name.to_owned(),
                secret: SecretHash::of(&secret),
                grant: grant.clone(),
                expires_at,
            };
            match self.inner.exchange.send(&STREAM_ID, command, None).await {
                Err(CommandError::Rejected(Refused::IdTaken { .. })) => {}
                Err(error) => return Err(error),
                Ok(key) => {
                    self.inner.table.refresh(&self.inner.exchange).await?;
                    return Ok((key, bearer(&id, &secret)));
                }
            }
        }
    }

    /// All keys that are kept, oldest first, also those that are no longer live.
    pub async fn list(&self) -> Result<Vec<KeyInfo>, Error> {
        self.inner.exchange.look(&STREAM_ID, |keys| keys.keys().cloned().collect()).await
    }

    /// Ends the key with this id or name. Once this returns, this node refuses it.
    pub async fn revoke(&self, key: &str) -> Result<KeyInfo, Error> {
        let command = RevokeKey { key: key.to_owned() };
        let revoked = self.inner.exchange.send(&STREAM_ID, command, None).await?;
        self.inner.table.refresh(&self.inner.exchange).await?;
        Ok(revoked)
    }

    /// Follows the journal no longer and stops the exchange. Who is known stays known.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.wait().await;
        self.inner.exchange.stop().await;
    }
}

/// All keys as this node knows them.
#[derive(Debug, Clone, Default)]
struct Table(Arc<RwLock<Arc<AccessKeys>>>);

impl Table {
    fn now(&self) -> Arc<AccessKeys> {
        // The lock is held to copy or to replace a pointer: nothing can panic and leave it half done.
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn refresh(&self, exchange: &Exchange<AccessKeys>) -> Result<(), Error> {
        let newer = exchange.look(&STREAM_ID, |keys| Arc::new(keys.clone())).await?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Two refreshes may overtake each other.
        if newer.revision() >= known.revision() {
            *known = newer;
        }
        Ok(())
    }

    /// Reads all keys, and gives the entries that come after.
    async fn follow(&self, exchange: &Exchange<AccessKeys>) -> Result<Tail, Error> {
        let one = std::num::NonZeroUsize::MIN;
        let heads = exchange.streams(STREAM, None, one).await.map_err(CommandError::Unreadable)?;
        let head = heads.iter().find(|head| head.stream == *STREAM_ID).map_or(Seq::START, |head| head.head);
        let tail = exchange.watch(&STREAM_ID, head).await?;
        self.refresh(exchange).await?;
        Ok(tail)
    }

    /// Takes every entry as the news that something changed. Keys are few and change rarely, so all are copied.
    async fn keep(self, exchange: Exchange<AccessKeys>, mut tail: Tail) {
        loop {
            let outcome = match tail.next().await {
                Some(Ok(_)) => self.refresh(&exchange).await,
                Some(Err(error)) => Err(CommandError::Unreadable(error)),
                None => self.follow(&exchange).await.map(|again| tail = again),
            };
            if let Err(error) = outcome {
                tracing::warn!(%error, "keys cannot be read: a key that is revoked elsewhere may still be valid here");
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a pause after a fault; no rule depends on it"
                )]
                tokio::time::sleep(FAULT_PAUSE).await;
                // What ended is followed anew.
                tail = futures::stream::empty().boxed();
            }
        }
    }
}
