//! What was counted since the start, for whoever watches the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Outcome, Targets};

/// What was counted since the start, by kind of target.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    kinds: BTreeMap<&'static str, Arc<KindStats>>,
}

/// What was counted of one kind of target.
#[derive(Debug, Default)]
pub struct KindStats {
    /// Attempts that delivered.
    pub delivered: AtomicU64,
    /// Attempts that failed, also those that are tried again.
    pub failed: AtomicU64,
    /// How late attempts began, all together, in milliseconds.
    pub late_ms: AtomicU64,
    /// Attempts that began more than a second late.
    pub late: AtomicU64,
}

impl Stats {
    pub(crate) fn of(targets: &Targets) -> Self {
        Self { kinds: targets.iter().map(|target| (target.kind(), Arc::default())).collect() }
    }

    /// What was counted of each kind there is, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &KindStats)> {
        self.kinds.iter().map(|(kind, stats)| (*kind, &**stats))
    }

    pub(crate) fn kind(&self, kind: &str) -> Arc<KindStats> {
        self.kinds.get(kind).cloned().unwrap_or_default()
    }
}

impl KindStats {
    /// An attempt that begins so late.
    pub(crate) fn begun(&self, late_ms: i64) {
        let late_ms = u64::try_from(late_ms).unwrap_or(0);
        self.late_ms.fetch_add(late_ms, Relaxed);
        if late_ms > 1_000 {
            self.late.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn over(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Delivered { .. } => &self.delivered,
            Outcome::Failed { .. } => &self.failed,
        };
        counter.fetch_add(1, Relaxed);
    }
}
