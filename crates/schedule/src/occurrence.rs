//! One due time of one schedule, and what became of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ScheduleId;

/// The occurrence of a schedule at a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OccurrenceId {
    /// When it was due, in milliseconds since 1970.
    pub due_ms: i64,
    /// Of which schedule.
    pub schedule: ScheduleId,
}

/// Who delivers: one running server. A restarted server is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub Arc<str>);

/// An occurrence that is not over.
///
/// ```text
/// due ──▶ waiting ──▶ claimed ──▶ delivered
///            ▲  │        ├─────▶ dead         (the last try failed)
///            │  │        │
///            └──┼────────┴ failed, tried again; or its node is gone
///               └──▶ skipped                  (its schedule was cancelled)
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// When it was due, in milliseconds since 1970.
    #[serde(rename = "due")]
    pub due_ms: i64,
    /// It is not delivered before this, in milliseconds since 1970: its due time and jitter, or the next try.
    #[serde(rename = "ready")]
    pub ready_ms: i64,
    /// How many attempts have begun.
    #[serde(default)]
    pub attempts: u32,
    /// By whom it is being delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<NodeId>,
    /// Somebody asked for it; it counts for no limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// It may be delivered although its kind is delivered by passes only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

/// What became of due times, for as long as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it was due, in milliseconds since 1970; of several, the first.
    #[serde(rename = "due")]
    pub due_ms: i64,
    /// When it was over, in milliseconds since 1970.
    #[serde(rename = "at")]
    pub at_ms: i64,
    /// What became of it.
    pub fate: Fate,
    /// How many attempts there were.
    #[serde(default)]
    pub attempts: u32,
}

impl Record {
    /// When it was due, in milliseconds since 1970; of several, the last.
    pub const fn last_due_ms(&self) -> i64 {
        match self.fate {
            Fate::Skipped { last_ms, .. } => last_ms,
            Fate::Delivered { .. } | Fate::Dead { .. } => self.due_ms,
        }
    }
}

/// What became of due times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The target has it.
    Delivered {
        /// What the target said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<Arc<str>>,
    },
    /// No attempt succeeded, and no more are made.
    Dead {
        /// Why the last attempt failed.
        error: Arc<str>,
    },
    /// Nobody tried: the due times from `due_ms` to `last_ms`.
    Skipped {
        /// Why.
        why: SkipReason,
        /// The last of them.
        last_ms: i64,
        /// How many they are.
        count: u64,
        /// There were more than were counted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        or_more: bool,
    },
}

/// Why nobody tried to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its time passed while nobody could act on it, and its schedule does not make up for that.
    Missed,
    /// An earlier occurrence was still open.
    Overlap,
    /// As many occurrences of its schedule were open as may be.
    TooManyOpen,
    /// Its schedule was paused.
    Paused,
    /// Its schedule was cancelled, or over for another reason, before it was delivered.
    Cancelled,
}
