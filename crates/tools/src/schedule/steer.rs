//! `schedule_pause`, `schedule_resume`, `schedule_run_now`, `schedule_cancel`, `schedule_delete`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_exchange::SignedDuration;
use switchboard_schedule::{Cancelled, OccurrenceId, ScheduleId};

use super::tool::{Call, tool};
use super::{Refusal, Scheduling};
use crate::input::BadArguments;
use crate::waiting::{LONGEST_WAIT_SECONDS, until};
use crate::{Annotations, Tool};

pub(super) fn tools(scheduling: &Scheduling) -> Vec<Tool> {
    vec![
        tool(
            scheduling,
            "schedule_pause",
            "Pause schedule",
            "Nothing is due until it is resumed.",
            Annotations::SETS,
            pause,
        ),
        tool(
            scheduling,
            "schedule_resume",
            "Resume schedule",
            "Let a paused schedule go on; times that passed meanwhile are skipped.",
            Annotations::SETS,
            resume,
        ),
        tool(
            scheduling,
            "schedule_run_now",
            "Run schedule now",
            "Call its target once, now, beside its timing. wait_seconds waits for what comes of it.",
            Annotations { open_world_hint: true, ..Annotations::WRITES },
            run_now,
        ),
        tool(
            scheduling,
            "schedule_cancel",
            "Cancel schedule",
            "End a schedule for good. It is kept for a while, to be looked at.",
            Annotations { idempotent_hint: true, ..Annotations::DESTROYS },
            cancel,
        ),
        tool(
            scheduling,
            "schedule_delete",
            "Delete schedule",
            "End a schedule and forget it with its history.",
            Annotations::DESTROYS,
            delete,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct OfSchedule {
    id: u64,
}

async fn pause(call: Call, input: OfSchedule) -> Result<Value, Refusal> {
    let Call { scheduling, context } = call;
    let schedule = scheduling.pause(&context.caller, ScheduleId::new(input.id), context.command_id).await?;
    Ok(json!({"schedule": schedule}))
}

async fn resume(call: Call, input: OfSchedule) -> Result<Value, Refusal> {
    let Call { scheduling, context } = call;
    let schedule = scheduling.resume(&context.caller, ScheduleId::new(input.id), context.command_id).await?;
    Ok(json!({"schedule": schedule}))
}

async fn cancel(call: Call, input: OfSchedule) -> Result<Value, Refusal> {
    let Call { scheduling, context } = call;
    let id = ScheduleId::new(input.id);
    let cancelled = scheduling.cancel(&context.caller, id, context.command_id).await?;
    Ok(json!({"id": input.id, "status": "cancelled", "was_cancelled_before": cancelled == Cancelled::Before}))
}

async fn delete(call: Call, input: OfSchedule) -> Result<Value, Refusal> {
    let Call { scheduling, context } = call;
    scheduling.delete(&context.caller, ScheduleId::new(input.id), context.command_id).await?;
    Ok(json!({"id": input.id, "status": "deleted"}))
}

#[derive(Deserialize, JsonSchema)]
struct RunInput {
    id: u64,
    /// 0-45
    #[serde(default)]
    wait_seconds: i64,
}

async fn run_now(call: Call, input: RunInput) -> Result<Value, Refusal> {
    if !(0..=LONGEST_WAIT_SECONDS).contains(&input.wait_seconds) {
        let why = format!("must be 0 to {LONGEST_WAIT_SECONDS}; schedule_get shows later what came of it");
        return Err(BadArguments::invalid("wait_seconds", why).into());
    }
    let Call { scheduling, context } = call;
    let id = ScheduleId::new(input.id);
    let occurrence = scheduling.run_now(&context.caller, id, context.command_id.clone()).await?;
    let OccurrenceId { due_ms, schedule } = occurrence;
    let message = format!("waiting for the delivery of schedule {schedule}");
    let time = SignedDuration::from_secs(input.wait_seconds);
    let came = until(&context, scheduling.clock(), time, &message, scheduling.settled(occurrence)).await;
    let due = jiff::Timestamp::from_millisecond(due_ms).unwrap_or_default().to_string();
    Ok(match came.transpose()?.flatten() {
        Some(over) => json!({"id": input.id, "due": due, "over": true, "occurrence": over}),
        None => json!({"id": input.id, "due": due, "over": false}),
    })
}
