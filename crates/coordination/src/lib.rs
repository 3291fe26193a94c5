//! Agents that work side by side on one repository.
//!
//! A **project** is one stream, `project/<id>`, and one machine, [`Project`]; nothing crosses projects. Its commands are
//! the types below, one file per thing they are about; its rules stand in their `decide`, which knows no clock, no
//! randomness and no I/O. [`Coordination`] is the way in: it sends commands to an exchange and waits where a caller waits.
//!
//! What is decided here and nowhere else: who is registered, who may write which files and who is next, which message was
//! delivered to whom, and which answer belongs to which question.

mod text;
pub use text::{InvalidText, Name, Text};

mod stamp;
pub use stamp::{MessageId, Stamp, TicketId, TodoId};

mod path;
pub use path::{FilePath, InvalidPath, Scope};

mod project;
pub use project::{Project, Rule, Settings};

mod event;
pub use event::Event;

mod rejection;
pub use rejection::Rejection;

mod agent;
pub use agent::{
    AgentStatus, AgentView, CompleteTask, Completion, Heartbeat, Leaving, ListAgents, Register, TodoSummary,
    Unregister,
};

mod todo;
pub use todo::{AddTodo, AgentTodos, AllTodos, MyTodos, Priority, Todo, TodoStatus, UpdateTodo};

mod mailbox;
pub use mailbox::{
    Delivery, Item, Letter, LetterKind, Letters, ListMessages, MessageStatus, PostMessage, ReadMessages,
    Receipt, SendMessage, Sent, TakeMessages,
};

mod question;
pub use question::{AnswerQuestion, Ask, CollectAnswer, Collected, Otherwise};

mod lock;
pub use lock::{
    Acquire, Acquired, CheckWrite, Grant, InvalidTtl, ListLocks, LockList, LockView, MayWrite, Release,
    ReleaseLock, Released, RenewLock, Ttl, WriteReason,
};

mod line;
pub use line::{ClaimTicket, LeaveLine, Ticket, WaitsFor};

mod change;
pub use change::{Change, ChangeType, RecentChanges};

mod interface;
pub use interface::{Interface, ListInterfaces, NamedInterface, QueryInterface, RegisterInterface};

mod completion_file;

mod service;
pub use service::{Coordination, CoordinationError, Patience, ServiceOptions};
