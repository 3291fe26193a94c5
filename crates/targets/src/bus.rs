//! Events on the bus.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use serde_json::value::RawValue;
use switchboard_bus::{Bus, Data, InvalidEvent, Key, NewEvent, Source, Topic};
use switchboard_schedule::{Delivery, Manners, Message, Outcome, Retry, Target};

/// The kind `topic`: an event on a topic of the bus.
///
/// The event says `{"taskId", "name", "topic", "payload", "firedAt"}`, as agtOS's scheduler does: `task-93`, the
/// schedule's name, the topic, the message, and the time in milliseconds since 1970. The bus publishes each occurrence once.
#[derive(Debug, Clone)]
pub struct BusTarget {
    bus: Bus,
}

impl BusTarget {
    /// The topics of `bus`.
    pub fn new(bus: Bus) -> Self {
        Self { bus }
    }

    async fn publish(&self, deliveries: Vec<Delivery>) -> Vec<Outcome> {
        let now = self.bus.clock().now();
        let events: Vec<_> = deliveries.iter().map(|delivery| event(delivery, now)).collect();
        let valid: Vec<_> = events.iter().filter_map(|event| event.as_ref().ok().cloned()).collect();
        let published = self.bus.publish(valid).await;
        let outcome = |event: Result<NewEvent, InvalidEvent>| match (event, &published) {
            (Err(invalid), _) => Outcome::refused(invalid.to_string()),
            (Ok(_), Ok(_)) => Outcome::delivered(),
            (Ok(_), Err(error)) => Outcome::failed(error.to_string()),
        };
        events.into_iter().map(outcome).collect()
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the replaced system")]
struct Fired<'a> {
    task_id: String,
    name: &'a str,
    topic: &'a str,
    payload: &'a RawValue,
    fired_at: i64,
}

fn event(delivery: &Delivery, now: Timestamp) -> Result<NewEvent, InvalidEvent> {
    let topic = &*delivery.address.to;
    let not_json = |error: serde_json::Error| InvalidEvent::NotJson { why: error.to_string().into() };
    let payload = match &delivery.message {
        Message::Json(json) => RawValue::from_string(json.to_string()),
        Message::Text(text) => serde_json::value::to_raw_value(text),
    };
    let fired = Fired {
        task_id: format!("task-{}", delivery.schedule),
        name: &delivery.name,
        topic,
        payload: &payload.map_err(not_json)?,
        fired_at: now.as_millisecond(),
    };
    Ok(NewEvent {
        topic: Topic::new(topic).map_err(|error| InvalidEvent::NotJson { why: error.to_string().into() })?,
        data: Data::of(&fired)?,
        key: Some(Key::new(delivery.key.clone())?),
        source: Some(Source::new(format!("schedule-{}", delivery.schedule))?),
    })
}

impl Target for BusTarget {
    fn kind(&self) -> &'static str {
        "topic"
    }

    fn manners(&self) -> Manners {
        Manners {
            ordered: false,
            // The next batch gathers while one is made durable.
            at_once: 4,
            per_group: 4,
            batch: 256,
            timeout: Duration::from_secs(30),
            retry: Retry { first_ms: 200, factor: 2, max_ms: 60_000, attempts: None },
        }
    }

    /// They share one journal.
    fn group<'a>(&self, _to: &'a str) -> &'a str {
        ""
    }

    fn check(&self, to: &str, _message: &Message) -> Result<(), String> {
        Topic::new(to).map(drop).map_err(|error| error.to_string())
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        self.publish(deliveries).boxed()
    }
}
