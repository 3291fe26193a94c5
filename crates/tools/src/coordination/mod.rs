//! The toolset `coordination`: what A2AMCP does without its quirks, and what it cannot do: leases, folders and globs,
//! lines for locks, questions that outlive their caller's patience, receipts, and a check made for hooks.

mod answer;
mod tool;

mod agents;
mod interfaces;
mod locks;
mod messages;
mod questions;
mod todos;

use switchboard_coordination::Coordination;

use crate::{Tool, Toolset};

/// The toolset's name.
pub(crate) const NAME: &str = "coordination";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "agents that work side by side: locks, questions, messages, todos, interfaces",
        instructions: "You share a repository with other agents. Use the repository's name as project and one name of your \
                       own as session. Call agent_register first. lock_acquire a file or folder before you edit it and \
                       lock_release it when done. message_read between steps; answer questions with question_answer. \
                       agent_unregister at the end.",
        server_name: "switchboard",
        server_version: env!("CARGO_PKG_VERSION"),
        sessions: true,
    }
}

/// Its tools.
pub(crate) fn tools(coordination: &Coordination) -> Vec<Tool> {
    [
        agents::tools(coordination),
        todos::tools(coordination),
        messages::tools(coordination),
        questions::tools(coordination),
        locks::tools(coordination),
        interfaces::tools(coordination),
    ]
    .into_iter()
    .flatten()
    .collect()
}
