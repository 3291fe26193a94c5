//! What a refusal says to a model.

use serde_json::{Value, json};
use switchboard_bus::{BusError, Refused};
use switchboard_exchange::CommandError;

use crate::Output;
use crate::answer::{bad_arguments, error, failed};
use crate::input::BadArguments;

/// Why a call has no success answer.
pub(super) enum Failure {
    Arguments(BadArguments),
    Refused(BusError),
}

impl From<BadArguments> for Failure {
    fn from(bad: BadArguments) -> Self {
        Self::Arguments(bad)
    }
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        Self::Refused(error)
    }
}

pub(super) fn output(answer: Result<Value, Failure>) -> Output {
    match answer {
        Ok(answer) => Output::structured(answer),
        Err(Failure::Arguments(bad)) => bad_arguments(&bad),
        Err(Failure::Refused(CommandError::Rejected(refused))) => rejected(&refused),
        Err(Failure::Refused(fault)) => failed(&fault),
    }
}

fn rejected(refused: &Refused) -> Output {
    let (code, next, details) = match refused {
        Refused::TooMany { .. } | Refused::TooLarge { .. } => {
            ("too_large", "publish in several calls", Value::Null)
        }
        Refused::Ahead { newest, .. } => (
            "position_unknown",
            "the events were removed since: call with after 0 for the oldest kept, or without after for new ones",
            json!({"newest": newest}),
        ),
    };
    error(code, &refused.to_string(), next, details)
}
