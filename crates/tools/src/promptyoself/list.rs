//! `promptyoself_list`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_schedule::{Filter, Info, Status, Timing};

use super::PromptYoSelf;
use super::answer::{Failure, seconds};
use super::inference::given;
use super::tool::{self, Call, Spec};
use crate::{Annotations, Tool};

pub(super) fn tool(service: &PromptYoSelf) -> Tool {
    let spec = Spec {
        name: "promptyoself_list",
        title: "List prompts",
        description: "List scheduled prompts, optionally of one agent.",
        annotations: Annotations::READS,
        output_schema: None,
    };
    tool::tool(service, spec, list)
}

#[derive(Deserialize, JsonSchema)]
struct List {
    /// Only schedules for this agent
    #[serde(default)]
    agent_id: Option<String>,
    /// Also cancelled and completed schedules
    #[serde(default)]
    include_cancelled: bool,
}

async fn list(call: Call, input: List) -> Result<Value, Failure> {
    // A paused schedule prompts nobody: it is shown with those that are over.
    let status = (!input.include_cancelled).then(|| vec![Status::Active]);
    let all = call.service.schedules().list(&Filter { status, ..Filter::default() }).await;
    let mut found = all.map_err(|error| Failure::because("Failed to list prompts")(&error))?;
    found.retain(|info| call.may_see(&info.schedule.spec.address));
    if let Some(agent) = input.agent_id.as_deref().and_then(given) {
        found.retain(|info| agent_of(info) == agent);
    }
    // What is never due, which nothing here makes, comes last.
    found.sort_by_key(|info| (info.schedule.next_run_ms().unwrap_or(i64::MAX), info.id));
    let schedules: Vec<Value> = found.iter().map(shown).collect();
    Ok(json!({"status": "success", "count": schedules.len(), "schedules": schedules}))
}

/// Whom it prompts. What is no Letta agent is shown with its kind: `topic:build.done`.
fn agent_of(info: &Info) -> String {
    let address = &info.schedule.spec.address;
    if &*address.kind == super::KIND { address.to.to_string() } else { address.to_string() }
}

fn shown(info: &Info) -> Value {
    let Info { id, schedule } = info;
    let spec = &schedule.spec;
    json!({
        "id": id,
        "agent_id": agent_of(info),
        "prompt_text": spec.message.as_str(),
        "schedule_type": match spec.timing {
            Timing::Once { .. } => "once",
            Timing::Cron { .. } => "cron",
            Timing::Every { .. } => "interval",
        },
        "schedule_value": spec.value,
        "next_run": schedule.next_run_ms().map(seconds),
        "active": schedule.status == Status::Active,
        "created_at": seconds(schedule.created_ms),
        "last_run": schedule.last_run_ms.map(seconds),
        "max_repetitions": spec.max_repetitions,
        "repetition_count": schedule.delivered,
    })
}
