//! The catalogue `promptyoself`: the tools of PromptYoSelf, answer for answer, over the schedules of this server.
//!
//! A **prompt** is a schedule that calls a Letta agent. The **executor** is what delivers prompts when they are due; it is
//! part of the schedules, and may be off, in which case prompts wait for `promptyoself_execute`. A **pass** tries all
//! that is due once.
//!
//! The catalogue serves all projects alike, so a key that is bound to projects may use it only if its grant names this
//! toolset. It lists and cancels schedules of every kind, whoever made them; for a key that is bound to anything, only prompts.

mod service;
pub use service::{DefaultAgents, Executor, Options, PromptYoSelf};

mod scopes;

mod answer;
mod inference;
mod tool;

mod every;
mod time;

mod cancel;
mod defaults;
mod diagnostics;
mod execute;
mod letta;
mod list;
mod schedule;

use crate::{Tool, Toolset};

/// The toolset's name.
pub const NAME: &str = "promptyoself";

/// The kind of the targets that prompts go to.
const KIND: &str = "letta";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "PromptYoSelf, unchanged: prompts for Letta agents, once, by cron or at an interval",
        instructions: "Ask to be prompted later: promptyoself_schedule_time for once, promptyoself_schedule_cron for a cron \
                       expression (UTC), promptyoself_schedule_every for an interval. promptyoself_list shows what is \
                       scheduled, promptyoself_cancel ends one.",
        server_name: "PromptYoSelf MCP Server",
        server_version: env!("CARGO_PKG_VERSION"),
        sessions: true,
    }
}

/// Its tools.
pub(crate) fn tools(service: &PromptYoSelf) -> Vec<Tool> {
    [
        vec![list::tool(service)],
        schedule::tools(service),
        vec![cancel::tool(service), execute::tool(service)],
        letta::tools(service),
        diagnostics::tools(service),
        defaults::tools(service),
    ]
    .into_iter()
    .flatten()
    .collect()
}
