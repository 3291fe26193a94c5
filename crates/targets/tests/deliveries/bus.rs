//! Events on the bus.

use std::num::NonZeroUsize;

use crate::server::Server;
use crate::support::{deliver, delivery, text};
use serde_json::{Value, json};
use switchboard_bus::{Bus, Pattern, Position};
use switchboard_schedule::{Delivery, Message, Outcome, Target as _};
use switchboard_targets::BusTarget;

async fn published(bus: &Bus, topic: &str) -> Vec<Value> {
    let filter = Pattern::new(topic).unwrap().into();
    let page = bus.read(&filter, Some(Position::new(0)), NonZeroUsize::new(1_000).unwrap()).await.unwrap();
    page.events.iter().map(|event| serde_json::from_str(event.data.get()).unwrap()).collect()
}

#[tokio::test]
async fn an_event_says_what_the_scheduler_of_agtos_says() {
    let server = Server::new();
    let target = BusTarget::new(server.bus.clone());
    let message = Message::json(&json!({"text": "hi"}));
    assert_eq!(deliver(&target, delivery("topic", "mail.due", message)).await, Outcome::delivered());
    let events = published(&server.bus, "mail.due").await;
    assert_eq!(events.len(), 1);
    assert!(events[0]["firedAt"].is_i64());
    let mut event = events[0].clone();
    event.as_object_mut().unwrap().remove("firedAt");
    let expected =
        json!({"taskId": "task-93", "name": "report", "topic": "mail.due", "payload": {"text": "hi"}});
    assert_eq!(event, expected);
}

#[tokio::test]
async fn an_occurrence_that_is_delivered_twice_is_published_once() {
    let server = Server::new();
    let target = BusTarget::new(server.bus.clone());
    for _ in 0..2 {
        let outcome = deliver(&target, delivery("topic", "mail.due", text("wake up"))).await;
        assert_eq!(outcome, Outcome::delivered());
    }
    let next = Delivery {
        key: "schedule-93@2025-01-03T09:00:00Z".into(),
        ..delivery("topic", "mail.due", text("again"))
    };
    deliver(&target, next).await;
    let events = published(&server.bus, "mail.due").await;
    assert_eq!(events.iter().map(|event| &event["payload"]).collect::<Vec<_>>(), ["wake up", "again"]);
}

#[tokio::test]
async fn one_event_that_is_none_does_not_keep_the_others_of_its_batch() {
    let server = Server::new();
    let target = BusTarget::new(server.bus.clone());
    let keyed = |key: &str, message| Delivery { key: key.into(), ..delivery("topic", "mail.due", message) };
    let outcomes = target
        .deliver(vec![
            keyed("a", text("first")),
            keyed("b", Message::Json("no JSON".into())),
            keyed("c", text("last")),
        ])
        .await;
    assert_eq!(outcomes[0], Outcome::delivered());
    assert!(matches!(outcomes[1], Outcome::Failed { permanent: true, .. }), "{outcomes:?}");
    assert_eq!(outcomes[2], Outcome::delivered());
    let events = published(&server.bus, "mail.due").await;
    assert_eq!(events.iter().map(|event| &event["payload"]).collect::<Vec<_>>(), ["first", "last"]);
}

#[tokio::test]
async fn a_destination_is_a_topic() {
    let target = BusTarget::new(Server::new().bus);
    assert_eq!(target.check("mail.due", &text("x")), Ok(()));
    assert!(target.check("", &text("x")).is_err());
    assert!(target.check("mail.*", &text("x")).is_err());
}
