//! `bus.publish`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_bus::{Bus, Data, NewEvent, Source};

use super::answer::Failure;
use super::tool::{self, Call};
use crate::input::{BadArguments, KeyParam, TopicParam};
use crate::{Annotations, Tool};

pub(super) fn tool(bus: &Bus) -> Tool {
    tool::tool(
        bus,
        "bus.publish",
        "Publish event",
        "Tell everybody who follows a topic. Kept for a while, so that readers can catch up.",
        Annotations::WRITES,
        publish,
    )
}

#[derive(Deserialize, JsonSchema)]
struct PublishInput {
    /// Such as build.done
    topic: TopicParam,
    /// Any JSON, at most 256 KiB
    #[serde(default)]
    data: Value,
    /// The same key within 10 minutes is published once
    #[serde(default)]
    key: Option<KeyParam>,
}

async fn publish(call: Call, input: PublishInput) -> Result<Value, Failure> {
    let data = Data::of(&input.data).map_err(|why| BadArguments::invalid("data", why))?;
    let event = NewEvent {
        topic: input.topic.0,
        data,
        key: input.key.map(|key| key.0),
        // A caller's name is as short as a source must be; an event without one is still an event.
        source: Source::new(call.context.caller.name.clone()).ok(),
    };
    let positions = call.bus.publish_once(vec![event], call.context.command_id).await?;
    Ok(json!({"position": positions.first()}))
}
