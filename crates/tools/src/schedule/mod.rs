//! The toolset `schedule`: wake-up calls of every kind, with previews and a history.
//!
//! A **schedule** calls a **target** when it is due; each due time is an **occurrence**, and what became of it is kept for a
//! while. Here are also the words in which REST and the command line ask for schedules and show them.
//!
//! Schedules serve all projects alike, so a key that is bound to projects may use them only if its grant names this toolset,
//! and nobody has called by a schedule what they may not call themselves.

mod wish;
pub use wish::{ChangeWish, ImportWish, MissedWish, OverlapWish, PreviewWish, RetryWish, TargetWish, Wish};

mod when;

mod view;
pub use view::{OccurrenceView, OpenView, RetryView, ScheduleView, TargetView, UpcomingView};

mod scheduling;
pub use scheduling::{Imported, Listed, Refusal, Scheduling, Which};

mod reach;
pub(crate) use reach::may_reach;

mod answer;
mod tool;

mod look;
mod make;
mod steer;

use crate::{Tool, Toolset};

/// The name of the toolset.
pub const NAME: &str = "schedule";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "wake-up calls: once, by cron or every so often, to topics, inboxes, agents, webhooks and tools",
        instructions: "schedule_create has something called later; its answer says when. Try a timing with schedule_preview \
                       first. schedule_get tells what became of due times. Times without an offset are local to time_zone.",
        server_name: "switchboard",
        server_version: env!("CARGO_PKG_VERSION"),
        sessions: true,
    }
}

/// Its tools.
pub(crate) fn tools(scheduling: &Scheduling) -> Vec<Tool> {
    [make::tools(scheduling), look::tools(scheduling), steer::tools(scheduling)]
        .into_iter()
        .flatten()
        .collect()
}
