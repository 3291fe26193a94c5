//! The texts of agtOS's answers.

use switchboard_access::Denied;

use super::TaskError;
use crate::{CallError, Output};

/// What a tool answers when there is no task, or no list of them.
pub(super) fn output(tool: &str, answer: Result<Output, TaskError>) -> Result<Output, CallError> {
    answer.or_else(|error| refusal(tool, error).map_err(CallError::Denied))
}

fn refusal(tool: &str, error: TaskError) -> Result<Output, Denied> {
    let text = match error {
        TaskError::Field { field, why } => format!("Invalid arguments for tool {tool}: {field}: {why}"),
        TaskError::Needs { schedule_type, field } => {
            format!("\"{field}\" is required for {schedule_type} schedules")
        }
        TaskError::Cron { expression } => format!("Invalid cron expression: {expression}"),
        TaskError::NotFound => "Task not found".to_owned(),
        TaskError::Unavailable => "Task scheduler not available".to_owned(),
        TaskError::Refused(why) => why,
        TaskError::Denied(denied) => return Err(denied),
    };
    Ok(Output::text(format!("Error: {text}")).error())
}
