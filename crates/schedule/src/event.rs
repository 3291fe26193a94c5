//! What happens to schedules. Kept in journals for ever, so every later version reads it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{NodeId, ScheduleId, SkipReason, Spec};

/// What happened to a schedule or to one of its occurrences. All times are milliseconds since 1970.
///
/// `next` is the schedule's next due time after the event; it is part of the event because another version of the time
/// zone database would work out another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A schedule was made.
    Created {
        /// Its number.
        id: ScheduleId,
        /// What it was asked to be.
        spec: Box<Spec>,
        /// When.
        at: i64,
        /// Its first due time.
        next: Option<i64>,
        /// How often it was delivered before it came here.
        #[serde(default, skip_serializing_if = "is_zero")]
        delivered: u32,
        /// When it was last attempted before it came here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_run: Option<i64>,
    },
    /// A schedule was changed.
    Updated {
        /// Its number.
        id: ScheduleId,
        /// What it is asked to be from now on.
        spec: Box<Spec>,
        /// When.
        at: i64,
        /// Its next due time.
        next: Option<i64>,
    },
    /// Nothing is due until it is resumed.
    Paused {
        /// Its number.
        id: ScheduleId,
        /// When.
        at: i64,
    },
    /// It goes on.
    Resumed {
        /// Its number.
        id: ScheduleId,
        /// When.
        at: i64,
        /// Its next due time.
        next: Option<i64>,
    },
    /// It is over.
    Ended {
        /// Its number.
        id: ScheduleId,
        /// How.
        end: End,
        /// When.
        at: i64,
        /// The due time that it keeps, to be shown. If it is not said, it keeps its next; if it has none, the last of its
        /// history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<i64>,
    },
    /// It is forgotten.
    Deleted {
        /// Its number.
        id: ScheduleId,
        /// When.
        at: i64,
    },
    /// A due time came, and its occurrence waits to be delivered, or is claimed at once.
    Opened {
        /// Of which schedule.
        id: ScheduleId,
        /// The due time.
        due: i64,
        /// When it may be delivered.
        ready: i64,
        /// By whom it is claimed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// The schedule's next due time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<i64>,
        /// Somebody asked for it: `next` says nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        manual: bool,
        /// It may be delivered although its kind is delivered by passes only.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        released: bool,
    },
    /// An occurrence that was opened ahead of its due time is taken back, as if it had not been.
    Unopened {
        /// Of which schedule.
        id: ScheduleId,
        /// Its due time.
        due: i64,
        /// The schedule's next due time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<i64>,
    },
    /// Due times passed, and nobody will deliver them.
    Skipped {
        /// Of which schedule.
        id: ScheduleId,
        /// The first of them.
        due: i64,
        /// The last of them.
        last: i64,
        /// How many.
        count: u64,
        /// There were more than were counted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        or_more: bool,
        /// Why.
        why: SkipReason,
        /// When.
        at: i64,
        /// The schedule's next due time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<i64>,
    },
    /// An open occurrence will not be delivered.
    Withdrawn {
        /// Of which schedule.
        id: ScheduleId,
        /// Its due time.
        due: i64,
        /// Why.
        why: SkipReason,
        /// When.
        at: i64,
    },
    /// An occurrence may be delivered now, although it would have waited.
    Released {
        /// Of which schedule.
        id: ScheduleId,
        /// Its due time.
        due: i64,
        /// From when on.
        ready: i64,
    },
    /// Somebody began to deliver it.
    Claimed {
        /// Of which schedule.
        id: ScheduleId,
        /// Its due time.
        due: i64,
        /// Who.
        node: NodeId,
    },
    /// The target has it.
    Delivered {
        /// Of which schedule.
        id: ScheduleId,
        /// Its due time.
        due: i64,
        /// When.
        at: i64,
        /// What the target said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<Arc<str>>,
    },
    /// An attempt failed.
    Failed {
        /// Of which schedule.
        id: ScheduleId,
        /// Its due time.
        due: i64,
        /// When.
        at: i64,
        /// Why.
        error: Arc<str>,
        /// When it is tried again; never, if it is not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<i64>,
    },
    /// The claims of a node hold until then.
    Leased {
        /// Who.
        node: NodeId,
        /// Until when.
        until: i64,
    },
    /// A node is gone: what it had claimed waits again.
    Lapsed {
        /// Who.
        node: NodeId,
        /// When.
        at: i64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How a schedule came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It did all it was asked for.
    Completed,
    /// Somebody ended it.
    Cancelled,
    /// Its only occurrence could not be delivered.
    Failed,
}
