//! `schedule_create`, `schedule_update`, `schedule_preview`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_schedule::ScheduleId;

use super::tool::{Call, tool};
use super::{ChangeWish, PreviewWish, Refusal, Scheduling, Wish};
use crate::input::{read, schema_of};
use crate::{Annotations, Tool};

/// How many due times are shown of a schedule that was made.
const SHOWN: usize = 3;

pub(super) fn tools(scheduling: &Scheduling) -> Vec<Tool> {
    // Calls of webhooks and agents reach beyond this server.
    let reaches_out = Annotations { open_world_hint: true, ..Annotations::WRITES };
    vec![
        tool(
            scheduling,
            "schedule_create",
            "Create schedule",
            "Have a target called later: once (at), by a cron expression, or every so often. Say exactly one of the three.",
            reaches_out,
            create,
        ),
        tool(
            scheduling,
            "schedule_update",
            "Update schedule",
            "Change a schedule; what is left out stays. Its target cannot be changed.",
            Annotations { idempotent_hint: true, ..reaches_out },
            update,
        ),
        tool(
            scheduling,
            "schedule_preview",
            "Preview timing",
            "When a timing would be due, in UTC and on its clock, and where daylight saving moves it.",
            Annotations::READS,
            preview,
        ),
    ]
}

async fn create(call: Call, wish: Wish) -> Result<Value, Refusal> {
    let Call { scheduling, context } = call;
    let (schedule, upcoming) =
        scheduling.create(&context.caller, &wish, SHOWN, context.command_id.clone()).await?;
    Ok(json!({"schedule": schedule, "upcoming": upcoming}))
}

/// The arguments of an update: a number, and a [`ChangeWish`] beside it.
#[derive(Deserialize)]
struct UpdateInput {
    id: u64,
    #[serde(flatten)]
    change: Map<String, Value>,
}

impl JsonSchema for UpdateInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UpdateInput".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = (*schema_of::<ChangeWish>()).clone();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.shift_insert(0, "id".to_owned(), json!({"type": "integer"}));
        }
        schema.insert("required".to_owned(), json!(["id"]));
        schema.into()
    }
}

async fn update(call: Call, input: UpdateInput) -> Result<Value, Refusal> {
    let Call { scheduling, context } = call;
    let change: ChangeWish = read(input.change, &schema_of::<ChangeWish>())?;
    let id = ScheduleId::new(input.id);
    let schedule = scheduling.update(&context.caller, id, &change, context.command_id.clone()).await?;
    let upcoming = scheduling.upcoming(&context.caller, id, SHOWN).await?;
    Ok(json!({"schedule": schedule, "upcoming": upcoming}))
}

async fn preview(call: Call, wish: PreviewWish) -> Result<Value, Refusal> {
    let (time_zone, upcoming) = call.scheduling.preview(&call.context.caller, &wish)?;
    Ok(json!({"time_zone": time_zone, "upcoming": upcoming}))
}
