//! Deliveries to try targets with.

use switchboard_schedule::{Address, Delivery, Message, Outcome, Target};

pub(crate) fn delivery(kind: &str, to: &str, message: Message) -> Delivery {
    Delivery {
        key: "schedule-93@2025-01-02T09:00:00Z".into(),
        schedule: 93,
        name: "report".into(),
        address: Address::new(kind, to),
        message,
        due_ms: 1_735_808_400_000,
        attempt: 2,
    }
}

pub(crate) fn text(text: &str) -> Message {
    Message::Text(text.into())
}

pub(crate) async fn deliver(target: &dyn Target, delivery: Delivery) -> Outcome {
    let mut outcomes = target.deliver(vec![delivery]).await;
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}
