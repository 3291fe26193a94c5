//! How REST says that a project, the bus or the schedules refused, or could not be asked.

use http::StatusCode;
use switchboard_bus::{BusError, Refused};
use switchboard_coordination::{CoordinationError, Rejection};
use switchboard_exchange::CommandError;
use switchboard_schedule::Rejection as ScheduleRejection;
use switchboard_tools::schedule::Refusal;

use crate::problem::Problem;

/// Why a project gave no answer.
pub(super) fn problem(error: CoordinationError) -> Problem {
    described(error, rejected)
}

/// Why the bus gave no answer.
pub(super) fn bus_problem(error: BusError) -> Problem {
    described(error, |refused| match refused {
        Refused::Ahead { .. } => Problem::bad_request("position_unknown", refused.to_string())
            .hint("the events were removed since: begin with after=0, or leave it out for what is new"),
        Refused::TooMany { .. } | Refused::TooLarge { .. } => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", refused.to_string())
        }
    })
}

/// Why the schedules gave no answer.
pub(super) fn schedule_problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Invalid { message, .. } => Problem::bad_request("invalid_arguments", message)
            .hint("/api/openapi.json describes what is asked for"),
        Refusal::Denied(denied) => denied.into(),
        Refusal::Refused(error) => described(error, schedule_rejected),
    }
}

fn schedule_rejected(rejection: &ScheduleRejection) -> Problem {
    let message = rejection.to_string();
    match rejection {
        ScheduleRejection::Unknown { .. } => {
            Problem::not_found(message).hint("GET /api/schedules?status=all lists the schedules")
        }
        ScheduleRejection::NeverDue { .. } => {
            Problem::bad_request("never_due", message).hint("POST /api/schedules/preview tries timings")
        }
        ScheduleRejection::Over { .. } | ScheduleRejection::Invalid(_) => {
            Problem::bad_request("invalid_arguments", message)
        }
        ScheduleRejection::Ended { .. } => Problem::new(StatusCode::CONFLICT, "schedule_ended", message),
        ScheduleRejection::OtherAddress { .. }
        | ScheduleRejection::TooManyOpen { .. }
        | ScheduleRejection::TooMany
        | ScheduleRejection::Imported { .. } => Problem::new(StatusCode::CONFLICT, "refused", message),
    }
}

/// Why there is no answer, with the status that says whether trying again may help.
fn described<R: std::fmt::Display>(error: CommandError<R>, rejected: impl FnOnce(&R) -> Problem) -> Problem {
    let unavailable = |code| Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string());
    match &error {
        CommandError::Rejected(rejection) => rejected(rejection),
        CommandError::Busy { .. } => Problem::busy(error.to_string()),
        CommandError::Stopping => unavailable("stopping").hint("try again when it is back"),
        CommandError::Unknown(_) => {
            unavailable("outcome_unknown").hint("repeat the call with the same Idempotency-Key")
        }
        CommandError::Unavailable(_) | CommandError::Unreadable(_) | CommandError::Damaged { .. } => {
            unavailable("journal_unavailable").hint("`switchboard doctor` looks for the cause")
        }
        CommandError::IdReused { .. } => {
            Problem::new(StatusCode::CONFLICT, "command_id_reused", error.to_string())
                .hint("use a new Idempotency-Key")
        }
        CommandError::TooLarge(_) => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.to_string())
                .hint("send less at once")
        }
    }
}

/// REST asks questions only, which projects refuse for what is wrong with the question or not there.
fn rejected(rejection: &Rejection) -> Problem {
    let message = rejection.to_string();
    match rejection {
        Rejection::NotRegistered { .. }
        | Rejection::AgentNotFound { .. }
        | Rejection::TodoNotFound { .. }
        | Rejection::QuestionNotFound { .. }
        | Rejection::MessageNotFound { .. }
        | Rejection::TicketNotFound { .. }
        | Rejection::InterfaceNotFound { .. } => Problem::not_found(message),
        Rejection::Invalid { .. } | Rejection::AddressesItself => Problem::bad_request("invalid", message),
        Rejection::RateLimited { .. } => Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message),
        Rejection::NotTheAsker { .. }
        | Rejection::Locked { .. }
        | Rejection::Deadlock { .. }
        | Rejection::NotTheHolder { .. }
        | Rejection::StaleToken { .. }
        | Rejection::NotLocked { .. }
        | Rejection::Full { .. } => Problem::new(StatusCode::CONFLICT, "refused", message),
    }
}
