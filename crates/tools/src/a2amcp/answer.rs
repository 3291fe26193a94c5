//! The shapes of A2AMCP's answers (contract §2): objects with `status`, errors with `details.code`, whole seconds.

use serde_json::{Value, json};
use switchboard_coordination::{CoordinationError, LockView, Name, Rejection};
use switchboard_exchange::{CommandError, Timestamp};

use crate::Output;
use crate::input::BadArguments;

/// Why a call has no success answer.
pub(super) enum Failure {
    Arguments(BadArguments),
    Refused { project: Name, error: CoordinationError },
    Timeout { seconds: i64, message_id: String, to: Name },
}

impl From<BadArguments> for Failure {
    fn from(bad: BadArguments) -> Self {
        Self::Arguments(bad)
    }
}

/// `2024-01-15T10:30:00Z`.
pub(super) fn seconds(at: Timestamp) -> Value {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    Value::String(whole.to_string())
}

pub(super) fn lock_info(lock: &LockView) -> Value {
    json!({
        "session": lock.session,
        "locked_at": seconds(lock.locked_at),
        "change_type": lock.change_type,
        "description": lock.description,
    })
}

pub(super) fn output(answer: Result<Value, Failure>) -> Output {
    match answer {
        Ok(answer) => Output::json_text(&answer),
        Err(Failure::Arguments(bad)) => invalid(&bad),
        Err(Failure::Timeout { seconds, message_id, to }) => error(
            "timeout",
            format!("No response received within {seconds} seconds"),
            json!({"code": "timeout", "message_id": message_id, "to": to}),
        ),
        Err(Failure::Refused { project, error: CommandError::Rejected(rejection) }) => {
            rejected(&project, &rejection)
        }
        Err(Failure::Refused { error: fault, .. }) => internal(&fault),
    }
}

fn error(status: &str, text: String, details: Value) -> Output {
    Output::json_text(&json!({"status": status, "error": text, "details": details}))
}

fn invalid(bad: &BadArguments) -> Output {
    error("error", bad.to_string(), json!({"code": "invalid_params", "parameter": bad.parameter()})).error()
}

fn internal(cause: &impl std::fmt::Display) -> Output {
    error("error", format!("Tool execution failed: {cause}"), json!({"code": "internal"})).error()
}

fn rejected(project: &Name, rejection: &Rejection) -> Output {
    match rejection {
        Rejection::NotRegistered { session } => error(
            "error",
            format!("Agent {session} not registered in project {project}"),
            json!({"code": "not_registered"}),
        ),
        Rejection::AgentNotFound { session } => error(
            "not_found",
            format!("Agent {session} not found in project {project}"),
            json!({"code": "agent_not_found"}),
        ),
        Rejection::AddressesItself => invalid(&BadArguments::invalid("to_session", "cannot query yourself")),
        Rejection::NotTheAsker { asked_by } => {
            invalid(&BadArguments::invalid("to_session", format_args!("the query came from {asked_by}")))
        }
        Rejection::TodoNotFound { id } => {
            error("not_found", format!("Todo {id} not found"), json!({"code": "todo_not_found"}))
        }
        Rejection::QuestionNotFound { id } | Rejection::MessageNotFound { id } => {
            error("not_found", format!("Message {id} not found"), json!({"code": "message_not_found"}))
        }
        Rejection::Locked { by, .. } => Output::json_text(&json!({
            "status": "conflict",
            "error": format!("File is locked by {}", by.session),
            "lock_info": lock_info(by),
            "suggestion": "Query that agent about their progress or wait",
        })),
        Rejection::NotTheHolder { lock, .. } => error(
            "error",
            format!("File is locked by {}, not you", lock.session),
            json!({"code": "file_locked", "lock_info": lock_info(lock)}),
        ),
        Rejection::RateLimited { what, retry_after_seconds } => error(
            "error",
            format!("Rate limit exceeded: {what}"),
            json!({"code": "rate_limited", "retry_after_seconds": retry_after_seconds}),
        ),
        Rejection::Full { limit, .. } => {
            error("error", rejection.to_string(), json!({"code": "limit_exceeded", "limit": limit}))
        }
        Rejection::InterfaceNotFound { name, similar } => Output::json_text(&json!({
            "status": "not_found",
            "error": format!("Interface {name} not found"),
            "similar": similar,
        })),
        Rejection::Invalid { field, why } => invalid(&BadArguments::invalid(field, why)),
        // What no tool of this catalogue can ask for.
        Rejection::Deadlock { .. }
        | Rejection::StaleToken { .. }
        | Rejection::NotLocked { .. }
        | Rejection::TicketNotFound { .. } => internal(rejection),
    }
}
