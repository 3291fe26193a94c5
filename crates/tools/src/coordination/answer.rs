//! What a refusal says to a model: a code to branch on, a sentence, and what to do next.

use serde_json::{Value, json};
use switchboard_coordination::{CoordinationError, Rejection};
use switchboard_exchange::CommandError;

use crate::Output;
use crate::answer::{bad_arguments, error, failed};
use crate::input::BadArguments;

/// Why a call has no success answer.
pub(super) enum Failure {
    Arguments(BadArguments),
    Refused(CoordinationError),
}

impl From<BadArguments> for Failure {
    fn from(bad: BadArguments) -> Self {
        Self::Arguments(bad)
    }
}

impl From<CoordinationError> for Failure {
    fn from(error: CoordinationError) -> Self {
        Self::Refused(error)
    }
}

pub(super) fn output(answer: Result<Value, Failure>) -> Output {
    match answer {
        Ok(answer) => Output::structured(answer),
        Err(Failure::Arguments(bad)) => bad_arguments(&bad),
        Err(Failure::Refused(CommandError::Rejected(rejection))) => rejected(&rejection),
        Err(Failure::Refused(fault)) => failed(&fault),
    }
}

fn rejected(rejection: &Rejection) -> Output {
    let (code, next, details) = match rejection {
        Rejection::NotRegistered { .. } => ("not_registered", "call agent_register", Value::Null),
        Rejection::AgentNotFound { .. } => {
            ("agent_not_found", "call agent_list to see who is here", Value::Null)
        }
        Rejection::AddressesItself => ("addresses_itself", "address another agent", Value::Null),
        Rejection::TodoNotFound { .. } => ("todo_not_found", "call todo_list for your ids", Value::Null),
        Rejection::QuestionNotFound { .. } => {
            ("question_not_found", "call message_read for the questions to you", Value::Null)
        }
        Rejection::NotTheAsker { .. } => ("not_the_asker", "leave out to", Value::Null),
        Rejection::MessageNotFound { .. } => {
            ("message_not_found", "call message_status without id for your latest messages", Value::Null)
        }
        Rejection::Locked { by, .. } => (
            "locked",
            "pass wait_seconds to wait in line, ask the holder with question_ask, or work on something else",
            json!({"lock": by}),
        ),
        Rejection::Deadlock { circle } => (
            "deadlock",
            "release what the others in the circle wait for, then ask again",
            json!({"circle": circle}),
        ),
        Rejection::NotTheHolder { lock, .. } => {
            ("not_the_holder", "only the holder may do this; ask it with question_ask", json!({"lock": lock}))
        }
        Rejection::StaleToken { current, .. } => (
            "stale_token",
            "others may have written since your grant: read the files again, then use the current token",
            json!({"current": current}),
        ),
        Rejection::NotLocked { .. } => ("not_locked", "call lock_acquire", Value::Null),
        Rejection::TicketNotFound { .. } => ("ticket_not_found", "call lock_acquire again", Value::Null),
        Rejection::RateLimited { retry_after_seconds, .. } => {
            ("rate_limited", "wait, then call again", json!({"retry_after_seconds": retry_after_seconds}))
        }
        Rejection::Full { remedy, limit, .. } => ("full", *remedy, json!({"limit": limit})),
        Rejection::InterfaceNotFound { similar, .. } => {
            ("interface_not_found", "try a similar name, or interface_list", json!({"similar": similar}))
        }
        Rejection::Invalid { field, .. } => {
            ("invalid_arguments", "correct the argument and call again", json!({"parameter": field}))
        }
    };
    error(code, &rejection.to_string(), next, details)
}
