//! `promptyoself_schedule_time`, `promptyoself_schedule_cron`, `promptyoself_schedule_every`.

use std::num::NonZeroU32;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_exchange::Timestamp;
use switchboard_schedule::{Address, Cron, Message, Missed, Overlap, Timing, Zone};

use super::answer::{Failure, seconds};
use super::inference::given;
use super::tool::{self, Call, Loose, Spec};
use super::{PromptYoSelf, every, time};
use crate::{Annotations, Tool};

pub(super) fn tools(service: &PromptYoSelf) -> Vec<Tool> {
    let spec = |name, title, description| Spec {
        name,
        title,
        description,
        annotations: Annotations { open_world_hint: true, ..Annotations::WRITES },
        output_schema: Some(output_schema()),
    };
    vec![
        tool::tool(
            service,
            spec(
                "promptyoself_schedule_time",
                "Schedule a prompt once",
                "Schedule a one-time prompt at an exact time.",
            ),
            schedule_time,
        ),
        tool::tool(
            service,
            spec(
                "promptyoself_schedule_cron",
                "Schedule a prompt by cron",
                "Schedule a recurring prompt by a cron expression, in UTC.",
            ),
            schedule_cron,
        ),
        tool::tool(
            service,
            spec(
                "promptyoself_schedule_every",
                "Schedule a prompt at an interval",
                "Schedule a repeating prompt at an interval.",
            ),
            schedule_every,
        ),
    ]
}

fn output_schema() -> Arc<Map<String, Value>> {
    let schema = json!({
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["success"]},
            "id": {"type": "integer"},
            "next_run": {"type": "string", "format": "date-time"},
            "message": {"type": "string"},
            "error": {"type": "string"},
        },
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else { return Arc::default() };
    Arc::new(schema)
}

/// The arguments of one of the three tools: what all of them take, and what only this one does.
macro_rules! arguments {
    ($name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        #[derive(Deserialize, JsonSchema)]
        struct $name {
            /// Default: inferred, see promptyoself_inference_diagnostics
            #[serde(default)]
            agent_id: Option<String>,
            // Spellings that are taken and not advertised.
            #[serde(default, rename = "agentId")]
            #[schemars(skip)]
            agent_id_in_camel_case: Option<String>,
            #[serde(default, rename = "agent-id")]
            #[schemars(skip)]
            agent_id_with_hyphen: Option<String>,
            /// What the agent is told
            prompt: String,
            $($(#[$attribute])* $field: $type,)+
            /// Do not ask Letta whether the agent exists
            #[serde(default)]
            skip_validation: bool,
        }

        impl $name {
            fn common(&self) -> Common<'_> {
                let spellings = [&self.agent_id, &self.agent_id_in_camel_case, &self.agent_id_with_hyphen];
                Common {
                    agent: spellings.into_iter().find_map(|agent| given(agent.as_deref()?)),
                    prompt: &self.prompt,
                    skip_validation: self.skip_validation,
                }
            }
        }
    };
}

/// What all three tools take.
#[derive(Clone, Copy)]
struct Common<'a> {
    agent: Option<&'a str>,
    prompt: &'a str,
    skip_validation: bool,
}

arguments! {
    AtTime {
        /// ISO 8601, such as 2025-12-25T10:00:00Z; UTC without a zone
        #[schemars(with = "String")]
        time: Loose,
    }
}

arguments! {
    ByCron {
        /// Minute hour day month weekday, such as 0 9 * * MON-FRI
        cron: String,
    }
}

arguments! {
    AtInterval {
        /// Such as 30s, 5m, 1h; a bare number is seconds
        every: Every,
        /// ISO 8601; the first run is then
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        start_at: Option<Loose>,
        /// How often at most
        #[serde(default)]
        #[schemars(with = "Option<i64>", range(min = 1))]
        max_repetitions: Option<Loose>,
    }
}

/// A text or an integer.
struct Every(String);

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |value: &Value| {
            Err(serde::de::Error::custom(format_args!("{value} is neither a string nor an integer")))
        };
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => match tool::integral(&number) {
                Some(integer) => Ok(Self(integer.to_string())),
                None => wrong(&Value::Number(number)),
            },
            other => wrong(&other),
        }
    }
}

impl JsonSchema for Every {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Every".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["string", "integer"]})
    }
}

/// When a prompt is due, as its author said it.
struct When {
    timing: Timing,
    value: String,
    max_repetitions: Option<NonZeroU32>,
}

async fn schedule_time(call: Call, input: AtTime) -> Result<Value, Failure> {
    let agent = addressee(&call, input.common()).await?;
    let at = time_of(&input.time)?;
    if at <= call.service.now() {
        return Err(Failure::said("Scheduled time must be in the future"));
    }
    let timing = Timing::once(at.as_millisecond());
    let when = When { timing, value: input.time.to_string(), max_repetitions: None };
    schedule(&call, agent, input.common(), when).await
}

async fn schedule_cron(call: Call, input: ByCron) -> Result<Value, Failure> {
    let agent = addressee(&call, input.common()).await?;
    let invalid = || Failure::Said(format!("Invalid cron expression: {}", input.cron));
    let cron = Cron::parse(&input.cron).map_err(|_| invalid())?;
    if cron.next_after(call.service.now(), &Zone::UTC).is_none() {
        return Err(invalid());
    }
    let timing = Timing::cron(&input.cron, Zone::UTC).map_err(|_| invalid())?;
    let when = When { timing, value: input.cron.clone(), max_repetitions: None };
    schedule(&call, agent, input.common(), when).await
}

async fn schedule_every(call: Call, input: AtInterval) -> Result<Value, Failure> {
    let agent = addressee(&call, input.common()).await?;
    let start = input.start_at.as_ref().map(time_of).transpose()?;
    let every = &input.every.0;
    let invalid =
        || Failure::Said(format!("Invalid interval format: {every}. Use formats like '30s', '5m', '1h'"));
    let period_ms = every::parse(every).ok_or_else(invalid)?;
    let now = call.service.now();
    if start.is_some_and(|start| start <= now) {
        return Err(Failure::said("Start time must be in the future"));
    }
    let max_repetitions = input.max_repetitions.as_ref().map(repetitions).transpose()?;
    let first_ms = match start {
        Some(start) => start.as_millisecond(),
        None => now.as_millisecond().saturating_add_unsigned(period_ms),
    };
    let timing = Timing::every(period_ms, first_ms).map_err(|_| invalid())?;
    let when = When { timing, value: every.clone(), max_repetitions };
    schedule(&call, agent, input.common(), when).await
}

/// Whom a prompt is for. Also says that there is a prompt.
async fn addressee(call: &Call, common: Common<'_>) -> Result<String, Failure> {
    let agent = match common.agent {
        Some(agent) => Some(agent.to_owned()),
        None => call.infer().await.agent,
    };
    let agent = agent.ok_or_else(|| Failure::said("agent_id is required and could not be inferred"))?;
    if common.prompt.trim().is_empty() {
        return Err(Failure::said("Missing required arguments: agent-id and prompt"));
    }
    Ok(agent)
}

fn time_of(written: &Loose) -> Result<Timestamp, Failure> {
    written.text().and_then(time::parse).ok_or_else(|| {
        Failure::said(
            "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. \
             2025-12-25T10:00:00-05:00",
        )
    })
}

fn repetitions(written: &Loose) -> Result<NonZeroU32, Failure> {
    let no_integer = || Failure::said("max-repetitions must be a valid integer");
    match written.integer() {
        Some(..=0) => Err(Failure::said("max-repetitions must be a positive integer")),
        integer => integer
            .and_then(|integer| u32::try_from(integer).ok())
            .and_then(NonZeroU32::new)
            .ok_or_else(no_integer),
    }
}

async fn schedule(call: &Call, agent: String, common: Common<'_>, when: When) -> Result<Value, Failure> {
    if !common.skip_validation {
        validate(call, &agent).await?;
    }
    let spec = switchboard_schedule::Spec {
        name: "".into(),
        address: Address::new(super::KIND, agent),
        message: Message::Text(common.prompt.into()),
        timing: when.timing,
        value: when.value.into(),
        missed: Missed::Once,
        overlap: Overlap::Skip,
        max_repetitions: when.max_repetitions,
        more: None,
    };
    let made = call.service.schedules().create(spec, call.context.command_id.clone()).await;
    let made = made.map_err(|error| Failure::because("Failed to register prompt")(&error))?;
    Ok(json!({
        "status": "success",
        "id": made.id,
        "next_run": seconds(made.next_ms),
        "message": format!("Prompt scheduled with ID {}", made.id),
    }))
}

async fn validate(call: &Call, agent: &str) -> Result<(), Failure> {
    let why = match call.service.letta().agent_exists(agent).await {
        Ok(true) => return Ok(()),
        Ok(false) => format!("Agent {agent} not found"),
        Err(cause) => format!("Failed to validate agent {agent}: {cause}"),
    };
    Err(Failure::Said(format!("Agent validation failed: {why}")))
}
