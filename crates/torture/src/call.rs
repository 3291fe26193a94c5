//! What agents ask of the server.

use serde_json::{Value, json};

use crate::client::IdBy;

/// A call with everything that repeating it needs.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The id under which the server knows it again.
    pub(crate) id: String,
    pub(crate) id_by: IdBy,
    pub(crate) wish: Wish,
    /// The highest token that anybody in the team had seen when it was first sent.
    pub(crate) newest_token: u64,
    /// How many calls of the team were answered when it was first sent.
    pub(crate) sent_at: u64,
}

/// What a call is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wish {
    Register,
    Unregister,
    AddTodo { text: String },
    UpdateTodo { id: String, status: &'static str },
    Acquire { path: String, description: String, wait_seconds: u32 },
    Announce { path: String, description: String },
    Release { path: String, token: Option<u64> },
    ReleaseFile { path: String },
    Wait { path: String, ticket: String },
    Leave { path: String, ticket: String },
    Send { to: Vec<String>, text: String },
    Read,
    Share { name: String, definition: String },
}

impl Wish {
    /// The tool and its arguments.
    pub(crate) fn tool(&self, team: &str, agent: &str) -> (&'static str, Value) {
        // The arguments that every call of the toolset `coordination` has, and `more`.
        let ours = |tool: &'static str, more: Value| {
            let mut arguments = json!({"project": team, "session": agent});
            extend(&mut arguments, more);
            (tool, arguments)
        };
        // The same for the catalogue of A2AMCP.
        let theirs = |tool: &'static str, more: Value| {
            let mut arguments = json!({"project_id": team, "session_name": agent});
            extend(&mut arguments, more);
            (tool, arguments)
        };
        match self {
            Self::Register => ours("agent_register", json!({"description": "endures"})),
            Self::Unregister => ours("agent_unregister", json!({})),
            Self::AddTodo { text } => theirs("add_todo", json!({"todo_item": text})),
            Self::UpdateTodo { id, status } => ours("todo_update", json!({"id": id, "status": status})),
            Self::Acquire { path, description, wait_seconds } => ours(
                "lock_acquire",
                json!({"path": path, "description": description, "wait_seconds": wait_seconds}),
            ),
            Self::Announce { path, description } => theirs(
                "announce_file_change",
                json!({"file_path": path, "change_type": "modify", "description": description}),
            ),
            Self::Release { path, token } => ours("lock_release", json!({"path": path, "token": token})),
            Self::ReleaseFile { path } => theirs("release_file_lock", json!({"file_path": path})),
            Self::Wait { ticket, .. } => ours("lock_wait", json!({"ticket": ticket, "wait_seconds": 0})),
            Self::Leave { ticket, .. } => ours("lock_leave", json!({"ticket": ticket})),
            Self::Send { to, text } => ours("message_send", json!({"to": to, "text": text})),
            Self::Read => ours("message_read", json!({"limit": 1000})),
            Self::Share { name, definition } => {
                ours("interface_register", json!({"name": name, "definition": definition}))
            }
        }
    }

    /// The path of a lock that this may end.
    pub(crate) fn may_free(&self, path: &str) -> bool {
        match self {
            Self::Unregister => true,
            Self::Release { path: freed, .. } | Self::ReleaseFile { path: freed } => freed == path,
            _ => false,
        }
    }

    /// Whether it may take a lock on `path`.
    pub(crate) fn may_take(&self, path: &str) -> bool {
        match self {
            Self::Acquire { path: taken, .. } | Self::Announce { path: taken, .. } => taken == path,
            _ => false,
        }
    }

    /// The description of the change that it announces.
    pub(crate) fn description(&self) -> Option<&str> {
        match self {
            Self::Acquire { description, .. } | Self::Announce { description, .. } => Some(description),
            _ => None,
        }
    }
}

fn extend(arguments: &mut Value, more: Value) {
    if let (Value::Object(arguments), Value::Object(more)) = (arguments, more) {
        arguments.extend(more);
    }
}
