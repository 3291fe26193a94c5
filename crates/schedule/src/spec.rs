//! What a schedule is asked to be.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Address, Message, Retry, Timing};

/// What a schedule is asked to be: when it calls whom, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// A name for people; may be empty. At most [`Spec::MAX_NAME`] bytes.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Arc<str>,
    /// Whom it calls.
    pub address: Address,
    /// What it says.
    pub message: Message,
    /// When it is due.
    pub timing: Timing,
    /// The timing as its author wrote it. At most [`Spec::MAX_VALUE`] bytes.
    pub value: Arc<str>,
    /// What becomes of due times that passed while nobody could act on them.
    pub missed: Missed,
    /// What becomes of a due time while an earlier occurrence is still open.
    pub overlap: Overlap,
    /// After so many deliveries it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_repetitions: Option<NonZeroU32>,
    /// What most schedules do without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Box<More>>,
}

/// What most schedules do without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct More {
    /// Nothing is due before it, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    /// Nothing is due after it, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    /// Each occurrence is delivered up to so many milliseconds after it is due, by a rule that spreads schedules evenly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u32,
    /// How failed deliveries are tried again; by the habit of the target if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What it was imported from: nothing is imported twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Arc<str>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What becomes of due times that passed while nobody could act on them: the server was down, or its clock jumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are skipped, and the record says so.
    Skip,
    /// The first is delivered late, the others are skipped.
    Once,
    /// The last `max` of those that are at most `window_ms` old are delivered late, the others are skipped.
    All {
        /// 1 to [`Missed::MAX_ALL`].
        max: u32,
        /// In milliseconds.
        window_ms: u64,
    },
}

impl Missed {
    /// The most due times that are made up for at once.
    pub const MAX_ALL: u32 = 100;
}

/// What becomes of a due time while an earlier occurrence of the same schedule is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It waits for its turn.
    Queue,
    /// It is skipped, and the record says so.
    Skip,
    /// It is delivered all the same.
    Allow,
}

impl Spec {
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 256;
    /// The longest destination, in bytes.
    pub const MAX_TO: usize = 2_048;
    /// The longest spelling of a timing, in bytes.
    pub const MAX_VALUE: usize = 256;
    /// The longest jitter: one day, in milliseconds.
    pub const MAX_JITTER_MS: u32 = 86_400_000;

    /// Nothing is due before it.
    pub fn start_ms(&self) -> Option<i64> {
        self.more.as_ref()?.start_ms
    }

    /// Nothing is due after it.
    pub fn end_ms(&self) -> Option<i64> {
        self.more.as_ref()?.end_ms
    }

    /// The greatest delay of a delivery, in milliseconds.
    pub fn jitter_ms(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.jitter_ms)
    }

    /// How failed deliveries are tried again, if it is said.
    pub fn retry(&self) -> Option<Retry> {
        self.more.as_ref()?.retry
    }

    /// What it was imported from.
    pub fn source(&self) -> Option<&Arc<str>> {
        self.more.as_ref()?.source.as_ref()
    }

    /// What most schedules do without, to be filled in.
    pub fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// The first due time after `after_ms` between start and end.
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        let after_ms = self.start_ms().map_or(after_ms, |start| after_ms.max(start.saturating_sub(1)));
        let next = self.timing.next_after(after_ms)?;
        self.end_ms().is_none_or(|end| next <= end).then_some(next)
    }
}
