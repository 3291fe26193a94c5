//! What a refusal says to a model.

use serde_json::{Value, json};
use switchboard_exchange::CommandError;
use switchboard_schedule::Rejection;

use super::Refusal;
use crate::answer::{error, failed};
use crate::{CallError, Output};

pub(super) fn output(answer: Result<Value, Refusal>) -> Result<Output, CallError> {
    Ok(match answer {
        Ok(answer) => Output::structured(answer),
        Err(Refusal::Denied(denied)) => return Err(denied.into()),
        Err(Refusal::Invalid { parameter, message }) => error(
            "invalid_arguments",
            &message,
            "correct the argument and call again",
            json!({"parameter": parameter}),
        ),
        Err(Refusal::Refused(CommandError::Rejected(rejection))) => rejected(&rejection),
        Err(Refusal::Refused(fault)) => failed(&fault),
    })
}

fn rejected(rejection: &Rejection) -> Output {
    let (code, next) = match rejection {
        Rejection::Unknown { .. } => ("schedule_not_found", "call schedule_list"),
        Rejection::Ended { .. } => ("schedule_ended", "call schedule_create for a new one"),
        Rejection::NeverDue { .. } => ("never_due", "call schedule_preview to try timings"),
        Rejection::OtherAddress { .. } => ("other_target", "call schedule_cancel, then schedule_create"),
        Rejection::TooManyOpen { .. } => ("too_many_open", "call schedule_get for what is open"),
        Rejection::TooMany => ("full", "call schedule_cancel for what is not needed"),
        Rejection::Imported { .. } => ("imported_before", "nothing: it is there"),
        Rejection::Over { .. } | Rejection::Invalid(_) => {
            ("invalid_arguments", "correct the argument and call again")
        }
    };
    let details = match rejection {
        Rejection::Over { .. } => json!({"parameter": "at"}),
        _ => Value::Null,
    };
    error(code, &rejection.to_string(), next, details)
}
