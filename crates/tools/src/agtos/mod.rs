//! The catalogue `agtos`: tools of agtOS, answer for answer. For now those of its scheduler.
//!
//! agtOS calls a schedule a **task**. All schedules are tasks, whatever they call and whoever made them; those that are
//! made here publish on a topic of the bus.

mod answer;
mod arguments;
mod schedule;

mod tasks;
pub use tasks::{NewTask, Task, TaskError, TaskTiming, Tasks};

use crate::{Tool, Toolset};

/// The toolset's name.
pub const NAME: &str = "agtos";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "agtOS, unchanged: tasks that publish events at a time, by cron or at an interval",
        instructions: "",
        server_name: "agtos",
        server_version: "1.0.0",
        sessions: false,
    }
}

/// Its tools.
pub(crate) fn tools(tasks: &Tasks) -> Vec<Tool> {
    schedule::tools(tasks)
}
