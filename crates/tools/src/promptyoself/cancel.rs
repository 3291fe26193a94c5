//! `promptyoself_cancel`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_exchange::CommandError;
use switchboard_schedule::{Cancelled, Rejection, ScheduleId};

use super::PromptYoSelf;
use super::answer::Failure;
use super::tool::{self, Call, Loose, Spec};
use crate::{Annotations, Tool};

pub(super) fn tool(service: &PromptYoSelf) -> Tool {
    let spec = Spec {
        name: "promptyoself_cancel",
        title: "Cancel a prompt",
        description: "Cancel a scheduled prompt by its id, for good.",
        annotations: Annotations::DESTROYS,
        output_schema: None,
    };
    tool::tool(service, spec, cancel)
}

#[derive(Deserialize, JsonSchema)]
struct Cancel {
    /// As promptyoself_list shows it
    #[schemars(with = "i64")]
    schedule_id: Loose,
}

async fn cancel(call: Call, input: Cancel) -> Result<Value, Failure> {
    let number = input.schedule_id.integer().ok_or_else(|| Failure::said("Schedule ID must be a number"))?;
    let nothing = || Failure::Said(format!("Schedule {number} not found or already cancelled"));
    let id = u64::try_from(number).map(ScheduleId::new).map_err(|_| nothing())?;
    let failed = Failure::because("Failed to cancel prompt");
    let known = call.service.schedules().get(id).await.map_err(|error| failed(&error))?;
    if known.is_none_or(|info| !call.may_see(&info.schedule.spec.address)) {
        return Err(nothing());
    }
    match call.service.schedules().cancel(id, call.context.command_id.clone()).await {
        Ok(Cancelled::Now) => Ok(json!({
            "status": "success",
            "cancelled_id": id,
            "message": format!("Schedule {id} cancelled"),
        })),
        Ok(Cancelled::Before)
        | Err(CommandError::Rejected(Rejection::Unknown { .. } | Rejection::Ended { .. })) => Err(nothing()),
        Err(error) => Err(failed(&error)),
    }
}
