//! `promptyoself_execute`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_exchange::{SignedDuration, Timestamp};
use switchboard_schedule::PassEntry;

use super::answer::{Failure, seconds};
use super::tool::{self, Call, Loose, Spec};
use super::{KIND, PromptYoSelf};
use crate::{Annotations, Tool};

pub(super) fn tool(service: &PromptYoSelf) -> Tool {
    let spec = Spec {
        name: "promptyoself_execute",
        title: "Deliver due prompts",
        description: "Deliver all prompts that are due, once or in a loop until the call is cancelled.",
        annotations: Annotations { open_world_hint: true, ..Annotations::WRITES },
        output_schema: None,
    };
    tool::tool(service, spec, execute)
}

#[derive(Deserialize, JsonSchema)]
struct Execute {
    /// Go on until the call is cancelled
    #[serde(default)]
    r#loop: bool,
    /// Seconds between passes of a loop
    #[serde(default = "a_minute")]
    #[schemars(with = "i64", default = "a_minute_of_seconds", range(min = 1))]
    interval: Loose,
}

fn a_minute() -> Loose {
    Loose::from(a_minute_of_seconds())
}

const fn a_minute_of_seconds() -> i64 {
    60
}

async fn execute(call: Call, input: Execute) -> Result<Value, Failure> {
    if input.r#loop {
        let interval = input.interval.integer().and_then(|seconds| i64::try_from(seconds).ok());
        let interval = interval.filter(|seconds| *seconds > 0);
        let interval = interval.ok_or_else(|| Failure::said("Interval must be a number (seconds)"))?;
        run(&call, SignedDuration::from_secs(interval)).await;
        return Ok(json!({"status": "success", "message": "Scheduler loop completed"}));
    }
    let passed = call.service.schedules().pass(KIND).await;
    let passed = passed.map_err(|error| Failure::because("Failed to execute prompts")(&error))?;
    let executed: Vec<Value> = passed.iter().map(shown).collect();
    let message = format!("{} prompts executed", executed.len());
    Ok(json!({"status": "success", "executed": executed, "message": message}))
}

fn shown(entry: &PassEntry) -> Value {
    let next_run = entry.next_ms.map(seconds);
    if entry.delivered {
        json!({
            "id": entry.id,
            "agent_id": entry.to,
            "delivered": true,
            "next_run": next_run,
            "repetition_count": entry.repetitions,
            "max_repetitions": entry.max_repetitions,
            "completed": entry.completed,
        })
    } else {
        json!({
            "id": entry.id,
            "agent_id": entry.to,
            "delivered": false,
            "error": "Failed to deliver prompt",
            "next_run": next_run,
        })
    }
}

/// Makes a pass at once and every `interval` until the call is withdrawn or the server stops. A fault of the journal ends
/// a pass and not the loop: what is due is due at the next one, too.
async fn run(call: &Call, interval: SignedDuration) {
    let _running = call.service.begin_loop();
    let passes = async {
        let clock = call.service.schedules().exchange().clock();
        let mut passes: u32 = 0;
        loop {
            let next = clock.now().checked_add(interval).unwrap_or(Timestamp::MAX);
            match call.service.schedules().pass(KIND).await {
                Ok(passed) => tracing::debug!(prompts = passed.len(), "a pass of a loop is over"),
                Err(error) => tracing::warn!(%error, "a pass of a loop failed"),
            }
            passes = passes.saturating_add(1);
            call.context.progress.report(passes.into(), None, "delivering prompts");
            clock.sleep_until(next).await;
        }
    };
    // What a pass had begun is delivered all the same: nobody waits for it here.
    let _: Option<()> = call.context.cancelled.run_until_cancelled(passes).await;
}
