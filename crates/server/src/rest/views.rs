//! What clients read of a project. Made by hand from what the machine says, so that either may change on its own.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_coordination as coordination;
use switchboard_coordination::{AgentStatus, ChangeType, Priority, TodoStatus};

/// The agents of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Agents {
    pub(super) agents: Vec<AgentView>,
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub(super) struct AgentView {
    /// Its session.
    session: String,
    /// What it works on.
    task_id: String,
    /// On which branch.
    branch: String,
    /// In its own words.
    description: String,
    /// `active` or `completed`.
    status: &'static str,
    /// When it registered.
    started_at: String,
}

impl From<coordination::AgentView> for AgentView {
    fn from(agent: coordination::AgentView) -> Self {
        Self {
            session: agent.session.to_string(),
            task_id: agent.task_id.to_string(),
            branch: agent.branch.to_string(),
            description: agent.description.to_string(),
            status: match agent.status {
                AgentStatus::Active => "active",
                AgentStatus::Completed => "completed",
            },
            started_at: agent.started_at.to_string(),
        }
    }
}

/// The todos of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Todos {
    pub(super) agents: Vec<AgentTodos>,
}

/// What one agent has to do.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AgentTodos {
    /// Who.
    session: String,
    /// In the order in which they were added.
    todos: Vec<TodoView>,
}

/// A todo.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Todo")]
struct TodoView {
    /// Its id.
    id: String,
    /// What is to be done.
    text: String,
    /// `pending`, `in_progress`, `completed` or `blocked`.
    status: &'static str,
    /// `high`, `medium` or `low`.
    priority: &'static str,
    /// When it was added.
    created_at: String,
    /// When it was done.
    completed_at: Option<String>,
}

impl From<coordination::AgentTodos> for AgentTodos {
    fn from(of: coordination::AgentTodos) -> Self {
        Self {
            session: of.agent.session.to_string(),
            todos: of.todos.into_iter().map(TodoView::from).collect(),
        }
    }
}

impl From<coordination::Todo> for TodoView {
    fn from(todo: coordination::Todo) -> Self {
        Self {
            id: todo.id.to_string(),
            text: todo.text.to_string(),
            status: match todo.status {
                TodoStatus::Pending => "pending",
                TodoStatus::InProgress => "in_progress",
                TodoStatus::Completed => "completed",
                TodoStatus::Blocked => "blocked",
            },
            priority: match todo.priority {
                Priority::High => "high",
                Priority::Medium => "medium",
                Priority::Low => "low",
            },
            created_at: todo.created_at.to_string(),
            completed_at: todo.completed_at.map(|at| at.to_string()),
        }
    }
}

/// The locks of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Locks {
    /// Who holds what.
    pub(super) held: Vec<LockView>,
    /// Who waits for what, first come first.
    pub(super) waiting: Vec<LockView>,
}

/// A lock, or a place in the line for one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Lock")]
pub(super) struct LockView {
    /// What it covers.
    path: String,
    /// Who holds it, or waits for it.
    session: String,
    /// The fencing token; 0 for a place in the line.
    token: u64,
    /// Since when.
    locked_at: String,
    /// `create`, `modify`, `delete` or `refactor`.
    change_type: &'static str,
    /// What its holder is about to do.
    description: String,
    /// When it lapses unless it is renewed; none if it does not.
    expires_at: Option<String>,
    /// Whether this is a place in the line, not a lock.
    waiting: bool,
}

impl From<coordination::LockView> for LockView {
    fn from(lock: coordination::LockView) -> Self {
        Self {
            path: lock.path,
            session: lock.session.to_string(),
            token: lock.token,
            locked_at: lock.locked_at.to_string(),
            change_type: change_word(lock.change_type),
            description: lock.description.to_string(),
            expires_at: lock.expires_at.map(|at| at.to_string()),
            waiting: lock.waiting,
        }
    }
}

const fn change_word(change: ChangeType) -> &'static str {
    match change {
        ChangeType::Create => "create",
        ChangeType::Modify => "modify",
        ChangeType::Delete => "delete",
        ChangeType::Refactor => "refactor",
    }
}

/// The latest messages of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Messages {
    /// Newest first.
    pub(super) messages: Vec<MessageView>,
}

/// What became of a message. Its text is for its addressees.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub(super) struct MessageView {
    /// Its id, which begins with its sender.
    id: String,
    /// Whether it is a question.
    is_question: bool,
    /// When it was stored.
    stored_at: String,
    /// What became of it at each addressee.
    receipts: Vec<ReceiptView>,
    /// When the question was answered.
    answered_at: Option<String>,
    /// When the answer reached its asker.
    answer_delivered_at: Option<String>,
}

/// What became of a message at one addressee.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receipt")]
struct ReceiptView {
    /// The addressee.
    session: String,
    /// When it was handed the message first.
    delivered_at: Option<String>,
    /// When it took the message out of its inbox.
    read_at: Option<String>,
}

impl From<coordination::Delivery> for MessageView {
    fn from(delivery: coordination::Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            is_question: delivery.is_question,
            stored_at: delivery.stored_at.to_string(),
            receipts: delivery.receipts.into_iter().map(ReceiptView::from).collect(),
            answered_at: delivery.answered_at.map(|at| at.to_string()),
            answer_delivered_at: delivery.answer_delivered_at.map(|at| at.to_string()),
        }
    }
}

impl From<coordination::Receipt> for ReceiptView {
    fn from(receipt: coordination::Receipt) -> Self {
        Self {
            session: receipt.session.to_string(),
            delivered_at: receipt.delivered_at.map(|at| at.to_string()),
            read_at: receipt.read_at.map(|at| at.to_string()),
        }
    }
}

/// The definitions that agents of a project share.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Interfaces {
    pub(super) interfaces: Vec<InterfaceView>,
}

/// A shared definition.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Interface")]
pub(super) struct InterfaceView {
    /// Its name.
    name: String,
    /// The definition.
    definition: String,
    /// Who registered it.
    registered_by: String,
    /// Where it stands.
    file_path: Option<String>,
    /// When it was registered.
    registered_at: String,
}

impl From<coordination::NamedInterface> for InterfaceView {
    fn from(named: coordination::NamedInterface) -> Self {
        let interface = named.interface;
        Self {
            name: named.name.to_string(),
            definition: interface.definition.to_string(),
            registered_by: interface.registered_by.to_string(),
            file_path: interface.file_path.map(|path| path.to_string()),
            registered_at: interface.registered_at.to_string(),
        }
    }
}

/// The latest changes of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Changes {
    /// Newest first.
    pub(super) changes: Vec<ChangeView>,
}

/// What an agent said it would change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
pub(super) struct ChangeView {
    /// Who.
    session: String,
    /// Which file, as the agent wrote it.
    path: String,
    /// `create`, `modify`, `delete` or `refactor`.
    change_type: &'static str,
    /// In its own words.
    description: String,
    /// When it got the lock.
    at: String,
}

impl From<coordination::Change> for ChangeView {
    fn from(change: coordination::Change) -> Self {
        Self {
            session: change.session.to_string(),
            path: change.path.to_string(),
            change_type: change_word(change.change_type),
            description: change.description.to_string(),
            at: change.at.to_string(),
        }
    }
}
