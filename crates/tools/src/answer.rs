//! What our own toolsets say when a call fails: a code to branch on, a sentence, and what to do next.

use std::fmt::Display;

use serde_json::{Value, json};
use switchboard_exchange::CommandError;

use crate::Output;
use crate::input::BadArguments;

/// An error with `details` beside its code, message and next step; null for none.
pub(crate) fn error(code: &str, message: &str, next: &str, details: Value) -> Output {
    let mut error = json!({"code": code, "message": message, "next": next});
    if let (Value::Object(error), Value::Object(details)) = (&mut error, details) {
        error.extend(details);
    }
    Output::structured(json!({"error": error})).error()
}

/// An argument is missing or wrong.
pub(crate) fn bad_arguments(bad: &BadArguments) -> Output {
    error(
        "invalid_arguments",
        &bad.to_string(),
        "correct the argument and call again",
        json!({"parameter": bad.parameter()}),
    )
}

/// A command failed for a reason that is none of its rules'.
pub(crate) fn failed<R: Display>(fault: &CommandError<R>) -> Output {
    let (code, next) = match fault {
        CommandError::Busy { .. } => ("busy", "call again in a moment"),
        CommandError::Stopping => ("stopping", "call again when the server is back"),
        CommandError::Unknown(_) => ("outcome_unknown", "look at the state before you repeat the call"),
        CommandError::IdReused { .. } => ("command_id_reused", "use a new command id for a new call"),
        CommandError::TooLarge(_) => ("too_large", "send less at once"),
        CommandError::Rejected(_)
        | CommandError::Unavailable(_)
        | CommandError::Unreadable(_)
        | CommandError::Damaged { .. } => {
            ("unavailable", "nothing was changed; tell the person who runs the server: switchboard doctor")
        }
    };
    error(code, &fault.to_string(), next, Value::Null)
}
