//! `schedule.create`, `schedule.list`, `schedule.cancel`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchboard_schedule::Status;

use super::answer::output;
use super::arguments::{Arguments, BadField};
use super::{NewTask, Task, TaskError, Tasks};
use crate::{Annotations, Context, Definition, Handler, Output, Tool};

pub(super) fn tools(tasks: &Tasks) -> Vec<Tool> {
    vec![
        tool(
            tasks,
            "schedule.create",
            "Create task",
            "Create a new scheduled task. Supports cron expressions for recurring tasks, one-time execution at a timestamp, \
             or interval-based repetition.",
            Annotations::WRITES,
            &json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1, "description": "Human-readable name for the scheduled task"},
                    "scheduleType": {"type": "string", "enum": ["cron", "once", "interval"]},
                    "expression": {"type": "string", "description": "Cron expression (e.g. \"*/5 * * * *\"), for cron"},
                    "atTimestamp": {"type": "number", "description": "Unix millisecond timestamp, for once"},
                    "intervalMs": {"type": "number", "description": "Interval in milliseconds, for interval"},
                    "eventTopic": {
                        "type": "string", "minLength": 1,
                        "description": "Event bus topic to publish when the task fires",
                    },
                    "payload": {"type": "object", "description": "Payload included in the fired event"},
                },
                "required": ["name", "scheduleType", "eventTopic"],
            }),
            create,
        ),
        tool(
            tasks,
            "schedule.list",
            "List tasks",
            "List all scheduled tasks with optional status filtering. Returns task IDs, names, statuses, schedule types, and \
             next run times.",
            Annotations::READS,
            &json!({
                "type": "object",
                "properties": {"status": {"type": "string", "enum": STATUSES.map(|(name, _)| name)}},
            }),
            list,
        ),
        tool(
            tasks,
            "schedule.cancel",
            "Cancel task",
            "Cancel a scheduled task by ID. The task will no longer fire.",
            Annotations::DESTROYS,
            &json!({
                "type": "object",
                "properties": {"taskId": {"type": "string", "minLength": 1}},
                "required": ["taskId"],
            }),
            cancel,
        ),
    ]
}

/// Puts a tool together.
fn tool<F, Fut>(
    tasks: &Tasks,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    annotations: Annotations,
    schema: &Value,
    call: F,
) -> Tool
where
    F: Fn(Tasks, Map<String, Value>, Context) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
{
    let tasks = tasks.clone();
    let handler = Handler::new(move |arguments, context: Context| {
        let tasks = tasks.clone();
        async move { output(name, call(tasks, arguments, context.without_origin()).await) }
    });
    Tool {
        definition: Definition {
            name,
            title,
            description,
            input_schema: Arc::new(schema.as_object().cloned().unwrap_or_default()),
            output_schema: None,
            annotations,
        },
        toolset: super::NAME,
        handler,
    }
}

const STATUSES: [(&str, Status); 5] = [
    ("active", Status::Active),
    ("paused", Status::Paused),
    ("completed", Status::Completed),
    ("cancelled", Status::Cancelled),
    ("failed", Status::Failed),
];

async fn create(tasks: Tasks, arguments: Map<String, Value>, context: Context) -> Result<Output, TaskError> {
    let task = tasks.create(&context.caller, NewTask::read(&arguments)?, context.command_id).await?;
    Ok(Output::json_text(&json!({
        "taskId": task.id,
        "name": task.name,
        "status": task.status.to_string(),
        "nextRunAt": task.next_run_at,
        "scheduleType": task.timing.name(),
    })))
}

async fn list(tasks: Tasks, arguments: Map<String, Value>, context: Context) -> Result<Output, TaskError> {
    let status = match Arguments(&arguments).text("status")? {
        None => None,
        Some(wanted) => {
            let known = STATUSES.into_iter().find(|(name, _)| *name == wanted);
            let names = STATUSES.map(|(name, _)| name).join(", ");
            let (_, status) =
                known.ok_or_else(|| BadField::new("status", format!("must be one of {names}")))?;
            Some(status)
        }
    };
    let tasks = tasks.list(&context.caller, status).await?;
    Ok(Output::json_text(&tasks.iter().map(listed).collect()))
}

fn listed(task: &Task) -> Value {
    let mut shown = json!({
        "id": task.id,
        "name": task.name,
        "status": task.status.to_string(),
        "scheduleType": task.timing.name(),
    });
    for (field, at) in [("nextRunAt", task.next_run_at), ("lastRunAt", task.last_run_at)] {
        if let Some(at) = at {
            shown[field] = at.into();
        }
    }
    shown["runCount"] = task.run_count.into();
    shown
}

async fn cancel(tasks: Tasks, arguments: Map<String, Value>, context: Context) -> Result<Output, TaskError> {
    let task = Arguments(&arguments).some_text("taskId")?;
    tasks.cancel(&context.caller, task, context.command_id).await?;
    Ok(Output::text(format!("Task {task} cancelled successfully")))
}
