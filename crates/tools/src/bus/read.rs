//! `bus.read`.

use std::num::NonZeroUsize;

use futures::StreamExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_bus::{Bus, BusError, Event, Filter, Page, Position};
use switchboard_exchange::SignedDuration;

use super::answer::Failure;
use super::tool::{self, Call};
use crate::input::{BadArguments, PatternParam};
use crate::waiting::{LONGEST_WAIT_SECONDS, until};
use crate::{Annotations, Tool};

pub(super) fn tool(bus: &Bus) -> Tool {
    tool::tool(
        bus,
        "bus.read",
        "Read events",
        "Read events that match a topic pattern, oldest first. Pass next as after to go on.",
        Annotations::READS,
        read,
    )
}

#[derive(Deserialize, JsonSchema)]
struct ReadInput {
    /// Topic; segments between dots may be * for any one, the last # for any rest
    topic: PatternParam,
    /// Position; 0 for the oldest kept; default: only new events
    #[serde(default)]
    after: Option<u64>,
    /// 1-1000
    #[serde(default = "fifty")]
    limit: i64,
    /// 0-45, for events to come
    #[serde(default)]
    wait_seconds: i64,
}

const fn fifty() -> i64 {
    50
}

async fn read(call: Call, input: ReadInput) -> Result<Value, Failure> {
    let most = Bus::MAX_LIMIT;
    let limit = usize::try_from(input.limit).ok().and_then(NonZeroUsize::new);
    let limit = limit
        .filter(|limit| *limit <= most)
        .ok_or_else(|| BadArguments::invalid("limit", format_args!("must be 1 to {most}")))?;
    if !(0..=LONGEST_WAIT_SECONDS).contains(&input.wait_seconds) {
        let why = format!("must be 0 to {LONGEST_WAIT_SECONDS}; wait again for longer");
        return Err(BadArguments::invalid("wait_seconds", why).into());
    }
    let time = SignedDuration::from_secs(input.wait_seconds);
    let pattern = input.topic.0;
    let message = format!("waiting for an event of {pattern}");
    let filter = Filter::from(pattern);
    let page = call.bus.read(&filter, input.after.map(Position::new), limit).await?;
    if time.is_zero() || page.more || says_something(&page) {
        return Ok(json_of_page(&page));
    }
    let came = come(&call.bus, &filter, page.next);
    match until(&call.context, &**call.bus.clock(), time, &message, came).await {
        None => Ok(json_of_page(&page)),
        Some(came) => {
            came?;
            // From where the call began, so that what came first is there whatever came meanwhile.
            Ok(json_of_page(&call.bus.read(&filter, Some(page.next), limit).await?))
        }
    }
}

/// Waits until something matches after `after`.
async fn come(bus: &Bus, filter: &Filter, after: Position) -> Result<(), BusError> {
    let mut tail = bus.tail(filter.clone(), Some(after)).await?;
    while let Some(page) = tail.next().await {
        if says_something(&page?) {
            break;
        }
    }
    Ok(())
}

fn says_something(page: &Page) -> bool {
    !page.events.is_empty() || page.missed.is_some()
}

/// What clients are shown of a page:
/// `{"events": [{"position", "topic", "data", "at", "source"}], "next", "more", "missed"?}`.
pub fn json_of_page(page: &Page) -> Value {
    let events: Vec<Value> = page.events.iter().map(json_of_event).collect();
    let mut shown = json!({"events": events, "next": page.next, "more": page.more});
    if let Some(oldest) = page.missed {
        shown["missed"] = json!({"before": oldest, "why": "no longer kept"});
    }
    shown
}

fn json_of_event(event: &Event) -> Value {
    // What was published was checked to be JSON.
    let data: Value = serde_json::from_str(event.data.get()).unwrap_or_default();
    json!({
        "position": event.position,
        "topic": event.topic,
        "data": data,
        "at": event.at,
        "source": event.source,
    })
}
