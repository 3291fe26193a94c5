//! The catalogue `a2amcp`: the 19 tools of A2AMCP API version 1.0.0, answer for answer.

mod answer;
mod tool;

mod agents;
mod files;
mod interfaces;
mod messages;
mod todos;

use switchboard_coordination::Coordination;

use crate::{Tool, Toolset};

/// The toolset's name.
pub(crate) const NAME: &str = "a2amcp";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "A2AMCP 1.0.0, unchanged: for agents and SDKs that already use it",
        instructions: "Coding agents that share a repository. Call register_agent first; announce_file_change before every \
                       edit and release_file_lock after it; check_messages every 20-30 s; mark_task_completed and \
                       unregister_agent at the end.",
        server_name: "splitmind-coordination",
        server_version: "1.0.0",
        sessions: true,
    }
}

/// Its tools.
pub(crate) fn tools(coordination: &Coordination) -> Vec<Tool> {
    [
        agents::tools(coordination),
        todos::tools(coordination),
        messages::tools(coordination),
        files::tools(coordination),
        interfaces::tools(coordination),
    ]
    .into_iter()
    .flatten()
    .collect()
}
