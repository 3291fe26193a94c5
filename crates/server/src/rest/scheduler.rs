//! `/api/scheduler/tasks`: schedules as agtOS's REST shows them, with its words for what is wrong.

use axum::Json as Answer;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use switchboard_tools::agtos::{NewTask, Task, TaskError, TaskTiming};

use super::openapi::{Api, Operation};
use super::tools::command_id;
use crate::extract::{Calling, Path};
use crate::limits::{is_nested_deeper, read_body};
use crate::problem::Problem;
use crate::serve::Door;

/// How long the id of a task may be.
const LONGEST_ID: usize = 128;

pub(super) fn add_to(api: Api) -> Api {
    api.route(
        Method::GET,
        "/api/scheduler/tasks",
        list,
        Operation::of("All schedules, as tasks of agtOS, oldest first").answers::<TaskList>(200),
    )
    .route(
        Method::POST,
        "/api/scheduler/tasks",
        create,
        Operation::of("Make a task that publishes an event, as agtOS does")
            .takes::<NewTaskBody>()
            .answers::<Created>(201),
    )
    .route(
        Method::DELETE,
        "/api/scheduler/tasks/{id}",
        cancel,
        Operation::of("Cancel a task").path("id", "Its id, such as `task-93`").answers::<Cancelled>(200),
    )
}

/// What agtOS answers when there is no other answer.
struct Refusal(Box<Response>);

impl Refusal {
    fn new(status: StatusCode, body: &Value) -> Self {
        Self(Box::new((status, Answer(body)).into_response()))
    }

    fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, &json!({"error": error.into()}))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem.into_response()))
    }
}

/// The fields of a new task as agtOS's REST names them when they are missing.
fn refused(error: TaskError) -> Refusal {
    match error {
        TaskError::Field { field, .. } => Refusal::bad_request(format!("Missing or invalid field: {field}")),
        TaskError::Needs { schedule_type, field } => {
            let (name, article) = match schedule_type {
                "cron" => ("Cron", "an"),
                "once" => ("Once", "an"),
                _ => ("Interval", "an"),
            };
            Refusal::bad_request(format!("{name} schedule requires {article} {field} field"))
        }
        TaskError::Cron { expression } => {
            Refusal::bad_request(format!("Invalid cron expression: {expression}"))
        }
        TaskError::NotFound => Refusal::new(
            StatusCode::NOT_FOUND,
            &json!({"error": "Failed to cancel task", "message": "Task not found"}),
        ),
        TaskError::Unavailable => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, &json!({"error": "Scheduler not available"}))
        }
        TaskError::Refused(why) => Refusal::bad_request(why),
        TaskError::Denied(denied) => Problem::from(denied).into(),
    }
}

/// All tasks.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskList {
    tasks: Vec<TaskView>,
    count: usize,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Task")]
#[serde(rename_all = "camelCase")]
struct TaskView {
    /// `task-` and the schedule's number.
    id: String,
    name: String,
    /// `active`, `paused`, `completed`, `cancelled` or `failed`.
    status: String,
    schedule: TaskSchedule,
    action: Action,
    /// In milliseconds since 1970; none if it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_run_at: Option<i64>,
    /// In milliseconds since 1970; none before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_run_at: Option<i64>,
    run_count: u32,
    /// In milliseconds since 1970.
    created_at: i64,
}

/// When a task runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum TaskSchedule {
    /// By a cron expression.
    Cron {
        /// Five fields.
        expression: String,
    },
    /// Once.
    Once {
        /// In milliseconds since 1970.
        at_timestamp: i64,
    },
    /// At an even pace.
    Interval {
        /// In milliseconds.
        interval_ms: u64,
    },
}

/// What a task does.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Action {
    /// The topic it publishes on; of a schedule that calls something else, `kind:destination`.
    event_topic: String,
    payload: Value,
}

impl From<Task> for TaskView {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            name: task.name.to_string(),
            status: task.status.to_string(),
            schedule: match task.timing {
                TaskTiming::Cron { expression } => TaskSchedule::Cron { expression: expression.to_string() },
                TaskTiming::Once { at_timestamp } => TaskSchedule::Once { at_timestamp },
                TaskTiming::Interval { interval_ms } => TaskSchedule::Interval { interval_ms },
            },
            action: Action { event_topic: task.event_topic, payload: task.payload },
            next_run_at: task.next_run_at,
            last_run_at: task.last_run_at,
            run_count: task.run_count,
            created_at: task.created_at,
        }
    }
}

async fn list(State(door): State<Door>, Calling(caller): Calling) -> Result<Answer<TaskList>, Refusal> {
    let tasks = door.app.tasks.list(&caller, None).await.map_err(refused)?;
    let tasks: Vec<_> = tasks.into_iter().map(TaskView::from).collect();
    Ok(Answer(TaskList { count: tasks.len(), tasks }))
}

/// A task to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read field by field, for errors in agtOS's words")]
struct NewTaskBody {
    name: String,
    /// `cron`, `once` or `interval`.
    schedule_type: String,
    /// Five fields, for `cron`; on the server's clock.
    expression: Option<String>,
    /// In milliseconds since 1970, for `once`.
    at_timestamp: Option<i64>,
    /// In milliseconds, for `interval`.
    interval_ms: Option<u64>,
    /// The topic to publish on.
    event_topic: String,
    /// What the event carries.
    payload: Option<Map<String, Value>>,
}

/// A task that was made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CreatedTask")]
struct Created {
    task: TaskView,
}

async fn create(
    State(door): State<Door>,
    Calling(caller): Calling,
    request: Request,
) -> Result<(StatusCode, Answer<Created>), Refusal> {
    let (head, body) = request.into_parts();
    let limits = &door.app.options.limits;
    let body = read_body(&head.headers, body, limits).await.map_err(Problem::from)?;
    let fields = Some(&body).filter(|body| !is_nested_deeper(body, limits.json_depth));
    let fields = fields.and_then(|body| serde_json::from_slice::<Map<String, Value>>(body).ok());
    let fields = fields.ok_or_else(|| Refusal::bad_request("Invalid JSON body"))?;
    let new = NewTask::read(&fields).map_err(refused)?;
    let task = door.app.tasks.create(&caller, new, command_id(&head.headers)?).await.map_err(refused)?;
    Ok((StatusCode::CREATED, Answer(Created { task: task.into() })))
}

/// A task that is cancelled.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CancelledTask")]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    success: bool,
    task_id: String,
}

async fn cancel(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
) -> Result<Answer<Cancelled>, Refusal> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !(1..=LONGEST_ID).contains(&id.len()) || !id.bytes().all(is_id) {
        return Err(Refusal::bad_request("Invalid task ID format"));
    }
    door.app.tasks.cancel(&caller, &id, None).await.map_err(refused)?;
    Ok(Answer(Cancelled { success: true, task_id: id }))
}
