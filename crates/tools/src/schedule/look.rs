//! `schedule_list`, `schedule_get`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_schedule::{ScheduleId, Status};

use super::tool::{Call, tool};
use super::{Refusal, Scheduling, Which};
use crate::input::BadArguments;
use crate::{Annotations, Tool};

/// The most that is listed at once.
const MOST: i64 = 1_000;

pub(super) fn tools(scheduling: &Scheduling) -> Vec<Tool> {
    vec![
        tool(
            scheduling,
            "schedule_list",
            "List schedules",
            "Schedules of every kind, whoever made them, oldest first. Pass next as after for more.",
            Annotations::READS,
            list,
        ),
        tool(
            scheduling,
            "schedule_get",
            "Show schedule",
            "A schedule, when it is due next, and what became of its latest due times.",
            Annotations::READS,
            get,
        ),
    ]
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StatusInput {
    Active,
    Paused,
    Completed,
    Cancelled,
    Failed,
    All,
}

#[derive(Deserialize, JsonSchema)]
struct ListInput {
    /// Default: active and paused
    #[serde(default)]
    #[schemars(default)]
    status: Option<StatusInput>,
    /// topic, inbox, letta, webhook or tool
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    to: Option<String>,
    #[serde(default)]
    after: Option<u64>,
    /// 1-1000
    #[serde(default = "fifty")]
    limit: i64,
}

const fn fifty() -> i64 {
    50
}

async fn list(call: Call, input: ListInput) -> Result<Value, Refusal> {
    let status = match input.status {
        None => vec![Status::Active, Status::Paused],
        Some(StatusInput::All) => Vec::new(),
        Some(StatusInput::Active) => vec![Status::Active],
        Some(StatusInput::Paused) => vec![Status::Paused],
        Some(StatusInput::Completed) => vec![Status::Completed],
        Some(StatusInput::Cancelled) => vec![Status::Cancelled],
        Some(StatusInput::Failed) => vec![Status::Failed],
    };
    let limit = between("limit", input.limit, 1)?;
    let which = Which { status, kind: input.kind, to: input.to, after: input.after, limit };
    let listed = call.scheduling.list(&call.context.caller, which).await?;
    Ok(json!({"schedules": listed.schedules, "next": listed.next}))
}

#[derive(Deserialize, JsonSchema)]
struct GetInput {
    id: u64,
    /// How many past ones, 0-1000
    #[serde(default = "twenty")]
    history: i64,
}

const fn twenty() -> i64 {
    20
}

async fn get(call: Call, input: GetInput) -> Result<Value, Refusal> {
    let history = between("history", input.history, 0)?;
    let id = ScheduleId::new(input.id);
    let (schedule, occurrences) = call.scheduling.get(&call.context.caller, id, history).await?;
    let upcoming = call.scheduling.upcoming(&call.context.caller, id, 3).await?;
    Ok(json!({"schedule": schedule, "upcoming": upcoming, "occurrences": occurrences}))
}

fn between(parameter: &str, number: i64, least: i64) -> Result<usize, BadArguments> {
    usize::try_from(number)
        .ok()
        .filter(|_| (least..=MOST).contains(&number))
        .ok_or_else(|| BadArguments::invalid(parameter, format_args!("must be {least} to {MOST}")))
}
