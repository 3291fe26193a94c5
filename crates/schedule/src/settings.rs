//! What the rules take from configuration and from the targets.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Retry, Targets};

/// What the rules take from configuration and from the targets.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What is to be known of each kind of target.
    pub kinds: Arc<HashMap<Arc<str>, Kind>>,
    /// How long before its due time an occurrence is written and claimed, so that the disk's pace does not delay its
    /// delivery, in milliseconds. Default: 250.
    pub lookahead_ms: u32,
    /// A due time that nobody acted on for longer than this was missed, in milliseconds. Default: 60,000.
    pub grace_ms: u32,
    /// How long a node keeps its claims without a sign of life, in milliseconds. Default: 60,000.
    pub lease_ms: u32,
    /// How long it is kept what became of due times, in milliseconds. Default: 7 days.
    pub keep_ms: i64,
    /// Several servers share the journal: what was not done before this one started may be under way elsewhere.
    pub shared: bool,
}

/// What is to be known of a kind of target.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Deliveries to one destination go one after another.
    pub ordered: bool,
    /// It is delivered by [`Pass`](crate::Pass) only.
    pub by_pass: bool,
    /// How failed deliveries are tried again.
    pub retry: Retry,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kinds: Arc::default(),
            lookahead_ms: 250,
            grace_ms: 60_000,
            lease_ms: 60_000,
            keep_ms: 7 * 86_400_000,
            shared: false,
        }
    }
}

impl Settings {
    /// The settings for `targets`, of which the kinds `by_pass` are delivered by passes only.
    pub fn of(targets: &Targets, by_pass: &[&str]) -> Self {
        let kind = |target: &Arc<dyn crate::Target>| {
            let manners = target.manners();
            let by_pass = by_pass.contains(&target.kind());
            (Arc::from(target.kind()), Kind { ordered: manners.ordered, by_pass, retry: manners.retry })
        };
        Self { kinds: Arc::new(targets.iter().map(kind).collect()), ..Self::default() }
    }

    pub(crate) fn is_ordered(&self, kind: &str) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.ordered)
    }

    pub(crate) fn is_by_pass(&self, kind: &str) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.by_pass)
    }

    pub(crate) fn retry(&self, kind: &str) -> Retry {
        self.kinds.get(kind).map_or_else(Retry::default, |kind| kind.retry)
    }
}
