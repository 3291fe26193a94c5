//! Why a command changes nothing.

use crate::{Grant, InvalidText, LockView, Name, WaitsFor};

/// Why a command changes nothing. Each is decided by exactly one rule of the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The caller is not registered: never was, left, or was silent for too long.
    #[error("agent '{session}' is not registered: register it first")]
    NotRegistered {
        /// The caller.
        session: Name,
    },
    /// The agent that the caller addresses is not registered.
    #[error("agent '{session}' is not registered in this project: list the agents to see who is")]
    AgentNotFound {
        /// The agent addressed.
        session: Name,
    },
    /// The caller addresses itself.
    #[error("an agent cannot send a message to itself")]
    AddressesItself,
    /// The caller has no such todo.
    #[error("todo '{id}' is not one of yours")]
    TodoNotFound {
        /// The id asked for.
        id: String,
    },
    /// There is no such question for the caller to answer, or it was answered.
    #[error(
        "question '{id}' is not open for you to answer: it is unknown, was for another agent, or is answered"
    )]
    QuestionNotFound {
        /// The id asked for.
        id: String,
    },
    /// The answer is addressed to somebody who did not ask.
    #[error("the question came from '{asked_by}'")]
    NotTheAsker {
        /// Who asked.
        asked_by: Name,
    },
    /// The caller sent no such message, or it was forgotten.
    #[error("message '{id}' is not one that you sent and that is still remembered")]
    MessageNotFound {
        /// The id asked for.
        id: String,
    },
    /// Somebody holds the file, or waited for it first.
    #[error("'{path}' is locked by '{}'", .by.session)]
    Locked {
        /// What was asked for.
        path: String,
        /// The lock in the way, or the place in the line that comes first.
        by: Box<LockView>,
    },
    /// Waiting would never end: everybody in the circle waits for the next.
    #[error("waiting would never end: {}", WaitsFor::circle(.circle))]
    Deadlock {
        /// The circle, beginning with the caller.
        circle: Vec<WaitsFor>,
    },
    /// The lock is another's.
    #[error("'{path}' is locked by '{}', not by you", .lock.session)]
    NotTheHolder {
        /// What was to be released or renewed.
        path: String,
        /// The lock.
        lock: Box<LockView>,
    },
    /// The lock is the caller's, but it was granted anew since the caller got its token.
    #[error("token {given} of '{path}' is not current: you hold it with token {}", .current.token)]
    StaleToken {
        /// The path.
        path: String,
        /// The token presented.
        given: u64,
        /// The grant in force.
        current: Box<Grant>,
    },
    /// There is no lock to renew.
    #[error("'{path}' is not locked")]
    NotLocked {
        /// The path.
        path: String,
    },
    /// The caller has no such place in a line: it was given up, or its grant was not claimed in time.
    #[error(
        "'{ticket}' is no place in a line: it was given up, or its lock was not claimed in time; ask again"
    )]
    TicketNotFound {
        /// The ticket asked for.
        ticket: String,
    },
    /// The caller does something more often than it may.
    #[error("{what}: call again in {retry_after_seconds} s")]
    RateLimited {
        /// The limit.
        what: &'static str,
        /// When the next call is let through, in whole seconds, at least 1.
        retry_after_seconds: i64,
    },
    /// Something is as full as it may be.
    #[error("{what} is full ({limit}): {remedy}")]
    Full {
        /// What is full.
        what: String,
        /// How much it holds.
        limit: usize,
        /// What makes room.
        remedy: &'static str,
    },
    /// No interface of that name.
    #[error("interface '{name}' is not registered")]
    InterfaceNotFound {
        /// The name asked for.
        name: Name,
        /// Registered names like it, at most 10.
        similar: Vec<Name>,
    },
    /// A value is out of its bounds.
    #[error("{field} {why}")]
    Invalid {
        /// What is wrong.
        field: &'static str,
        /// Why.
        why: InvalidText,
    },
}
