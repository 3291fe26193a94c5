//! What happened in a project: the journal's words, kept for ever.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;
use crate::{
    ChangeType, Item, Leaving, MessageId, Name, Priority, Release, Scope, Text, TicketId, TodoId, TodoStatus,
};

/// What happened in a project. Later versions read all earlier ones: fields are added with a default, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after the types and commands that document them")]
pub enum Event {
    /// An agent came, or started over.
    AgentRegistered { session: Name, task_id: Name, branch: Text, description: Text, at: Timestamp },
    /// An agent was alive at this time, long enough after the last time that was journalled.
    AgentSeen { session: Name, at: Timestamp },
    /// An agent left or was silent for too long.
    AgentLeft { session: Name, why: Leaving, at: Timestamp },
    /// A task was reported as done.
    TaskCompleted { session: Name, task_id: Name, at: Timestamp },

    /// A todo was added.
    TodoAdded { session: Name, id: TodoId, text: Text, priority: Priority, at: Timestamp },
    /// A todo is further on.
    TodoUpdated { session: Name, id: TodoId, status: TodoStatus, at: Timestamp },

    /// A message was put into the inboxes of `to`.
    MessageSent {
        id: MessageId,
        to: Vec<Name>,
        message_type: Name,
        content: Text,
        /// Whether it went to everybody.
        broadcast: bool,
        at: Timestamp,
    },
    /// A question was put into an inbox. While `waits_until` has not passed, its answer goes to the waiting call.
    QuestionAsked {
        id: MessageId,
        to: Name,
        question_type: Name,
        content: Text,
        requires_response: bool,
        waits_until: Option<Timestamp>,
        at: Timestamp,
    },
    /// Somebody waits for the answer (again) until then.
    AnswerAwaited { id: Stamp, until: Timestamp },
    /// Nobody waits for the answer any more: it goes, or went, to the inbox.
    WaitEnded { id: Stamp, at: Timestamp },
    /// A question was answered.
    QuestionAnswered { id: Stamp, response: Text, at: Timestamp },
    /// The answer reached the one who waited for it.
    AnswerDelivered { id: Stamp, at: Timestamp },
    /// Messages were handed to their addressee, and stay in the inbox.
    MessagesDelivered { session: Name, ids: Vec<Item>, at: Timestamp },
    /// Messages were read, and are out of the inbox.
    MessagesRead { session: Name, ids: Vec<Item>, at: Timestamp },
    /// The system told agents of something (A2AMCP system events).
    Noticed { id: MessageId, to: Vec<Name>, event: Name, content: Text, at: Timestamp },

    /// A lock was granted, or refreshed by its holder under the same token.
    LockGranted {
        session: Name,
        scope: Scope,
        /// The path as the agent wrote it.
        path: Name,
        token: u64,
        change_type: ChangeType,
        description: Text,
        expires_at: Option<Timestamp>,
        /// The place in the line that was served, and until when the grant is to be claimed.
        ticket: Option<TicketId>,
        claim_by: Option<Timestamp>,
        at: Timestamp,
    },
    /// The holder keeps a lock for longer.
    LockRenewed { scope: Scope, expires_at: Option<Timestamp>, at: Timestamp },
    /// A lock that was granted to somebody in the line was claimed.
    LockClaimed { scope: Scope, at: Timestamp },
    /// A lock ended.
    LockReleased { session: Name, scope: Scope, token: u64, why: Release, at: Timestamp },
    /// An agent waits for a lock.
    LineJoined {
        ticket: TicketId,
        session: Name,
        scope: Scope,
        path: Name,
        change_type: ChangeType,
        description: Text,
        ttl: Option<SignedDuration>,
        at: Timestamp,
    },
    /// An agent gave up its place.
    LineLeft { ticket: TicketId, at: Timestamp },

    /// A definition was shared or replaced.
    InterfaceRegistered {
        session: Name,
        name: Name,
        definition: Text,
        file_path: Option<Name>,
        at: Timestamp,
    },
}
