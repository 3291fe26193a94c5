//! Forgets events that are old, or more than are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jiff::Timestamp;
use switchboard_exchange::{Clock, CommandError, SignedDuration};
use switchboard_journal::{AppendError, Seq};

use crate::log::{Decoded, Log};
use crate::{BusError, NewEvent, Published};

/// How long the bus waits between two looks at what it keeps.
const PACE: SignedDuration = SignedDuration::from_secs(5);

/// How long, and how much of, what was published is kept. An event is forgotten once any of these says so.
///
/// It is forgotten at the next look, every five seconds, and with the entry of the journal that it came in; and never
/// before the state of the bus was saved after it, which is every 1,000 entries or 8 MiB, and once nothing was published for
/// ten minutes. So what is readable may be somewhat more than these, and is never less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// How long. Default: 24 hours.
    pub age: SignedDuration,
    /// How much, in bytes of topics, data, keys and sources. Default: 64 MiB.
    pub bytes: u64,
    /// How many. Default: 1,000,000.
    pub events: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: SignedDuration::from_hours(24), bytes: 64 << 20, events: 1_000_000 }
    }
}

/// What was left at the last look.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    events: AtomicU64,
    bytes: AtomicU64,
}

impl Kept {
    /// How many events, and their size.
    pub(crate) fn now(&self) -> (u64, u64) {
        (self.events.load(Relaxed), self.bytes.load(Relaxed))
    }

    fn nothing(&self) {
        self.events.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    fn note(&self, oldest: &Decoded, newest: &Published) {
        let (Some(before), Some(batch)) = (oldest.before(), oldest.published.first()) else { return };
        let own: u64 = batch.events.iter().map(NewEvent::bytes).sum();
        self.events.store(newest.last().since(before), Relaxed);
        self.bytes.store((newest.bytes + own).saturating_sub(batch.bytes), Relaxed);
    }
}

/// Looks again and again.
pub(crate) async fn keep_looking(log: Log, clock: Arc<dyn Clock>, retention: Retention, kept: Arc<Kept>) {
    loop {
        if let Err(error) = look(&log, &retention, clock.now(), &kept).await {
            tracing::warn!(%error, "what the bus no longer keeps is not forgotten yet");
        }
        clock.sleep_until(clock.now() + PACE).await;
    }
}

/// Forgets what is not kept at `now`.
pub(crate) async fn look(
    log: &Log,
    retention: &Retention,
    now: Timestamp,
    kept: &Kept,
) -> Result<(), BusError> {
    let (journal, stream) = (log.journal(), log.stream());
    let head = journal.head(stream).await.map_err(CommandError::Unreadable)?;
    let trimmed = log.trimmed().await?;
    let newest = log.first_with_events(Seq::new(head.get().max(1)), head).await?.found();
    let Some(newest) = newest.as_ref().and_then(|entry| entry.published.last()) else {
        kept.nothing();
        return Ok(());
    };
    let oldest_ms = now.checked_sub(retention.age).unwrap_or(Timestamp::MIN).as_millisecond();
    let (events, bytes) =
        (newest.last().get().saturating_sub(retention.events), newest.bytes.saturating_sub(retention.bytes));
    // Of an entry, what its last events say: they are the newest.
    let is_over = |entry: &Decoded| {
        entry
            .published
            .last()
            .is_some_and(|last| last.at_ms <= oldest_ms || last.last().get() <= events || last.bytes <= bytes)
    };
    let Some(oldest) = log.first_with_events(trimmed.next(), head).await?.found() else { return Ok(()) };
    if !is_over(&oldest) {
        kept.note(&oldest, newest);
        return Ok(());
    }
    let last = log.halve(oldest.seq, head, is_over).await?;
    journal.trim(stream, last).await.map_err(not_trimmed)?;
    let trimmed = log.trimmed().await?;
    match log.first_with_events(trimmed.next(), head).await?.found() {
        Some(oldest) => kept.note(&oldest, newest),
        None => kept.nothing(),
    }
    Ok(())
}

fn not_trimmed(error: AppendError) -> BusError {
    match error {
        AppendError::Unavailable(cause) | AppendError::Unknown(cause) => CommandError::Unavailable(cause),
        AppendError::Conflict { stream, .. } => CommandError::Busy { stream, waiting: 1 },
    }
}
