//! Published events, as `GET /api/events?topic=…` sends them.

use axum::response::sse::Event;
use futures::stream::{self, BoxStream, StreamExt as _};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use serde_json::{json, value::to_raw_value};
use switchboard_bus::{Bus, BusError, Filter, Page, Position};

use super::events::data;
use super::refusal::bus_problem;
use crate::problem::Problem;

/// One published event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Published")]
pub(super) struct PublishedView {
    /// Its number on the bus.
    position: u64,
    /// What it is about.
    topic: String,
    /// What it carries: any JSON.
    #[schemars(with = "Value")]
    data: Box<RawValue>,
    /// When it was published.
    at: String,
    /// Who published it: the name of a key, `local`, `owner`, or the part of the server that did.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// Everything that matches from `after` on, without it from now on.
pub(super) async fn follow(
    bus: &Bus,
    topics: Filter,
    after: Option<Position>,
) -> Result<BoxStream<'static, Event>, Problem> {
    let pages = bus.tail(topics, after).await.map_err(bus_problem)?;
    Ok(pages.flat_map(|page| stream::iter(events_of(page))).boxed())
}

fn events_of(page: Result<Page, BusError>) -> Vec<Event> {
    let page = match page {
        Ok(page) => page,
        Err(error) => return vec![data(Event::default().event("unavailable"), &bus_problem(error).body())],
    };
    let mut events = Vec::with_capacity(page.events.len() + 1);
    if let Some(oldest) = page.missed {
        let before = oldest.get().saturating_sub(1).to_string();
        events.push(data(Event::default().event("trimmed").id(before), &gap(oldest)));
    }
    if page.events.is_empty() && page.missed.is_none() {
        // Without data a client takes note of the id and says nothing.
        events.push(Event::default().id(page.next.to_string()));
    }
    for event in page.events {
        let view = PublishedView {
            position: event.position.get(),
            topic: event.topic.to_string(),
            data: to_raw_value(&event.data).unwrap_or_default(),
            at: event.at.to_string(),
            source: event.source.map(|source| source.as_str().to_owned()),
        };
        events.push(data(Event::default().event("published").id(event.position.to_string()), &view));
    }
    events
}

fn gap(oldest: Position) -> Value {
    json!({"error": {
        "code": "trimmed",
        "message": format!("published events before {oldest} are no longer kept; this goes on with {oldest}"),
        "hint": "follow more closely, or keep more: bus.retention, bus.max_bytes, bus.max_events",
    }, "oldest": oldest})
}
