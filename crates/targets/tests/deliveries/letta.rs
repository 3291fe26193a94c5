//! Prompts to agents of a Letta that answers by script.

use std::time::Duration;

use crate::support::{deliver, delivery, text};
use serde_json::json;
use switchboard_letta::{Letta, Options, Timing};
use switchboard_outbound::fake::{FakeServer, Reply};
use switchboard_schedule::{Message, Outcome, Target};
use switchboard_targets::LettaTarget;

fn target(server: &FakeServer) -> LettaTarget {
    let timing = Timing { pauses: [Duration::from_millis(1); 2], ..Timing::default() };
    LettaTarget::new(Letta::new(Options { base_url: server.url(""), timing, ..Options::default() }).unwrap())
}

#[tokio::test]
async fn the_message_is_the_prompt_and_the_agents_words_are_the_reply() {
    let reply = r#"{"messages":[{"message_type":"assistant_message","content":"Done"}]}"#;
    let server = FakeServer::always(Reply::json(reply)).await;
    let target = target(&server);
    let outcome = deliver(&target, delivery("letta", "agent-1", text("Report!"))).await;
    assert_eq!(outcome, Outcome::Delivered { reply: Some("Done".into()) });
    deliver(&target, delivery("letta", "agent-1", Message::json(&json!({"a": [1]})))).await;

    let seen = server.seen();
    assert_eq!(seen[0].header("idempotency-key"), Some("schedule-93@2025-01-02T09:00:00Z"));
    assert!(seen[0].body.contains(r#""text":"Report!""#), "{}", seen[0].body);
    assert!(seen[1].body.contains(r#""text":"{\"a\":[1]}""#), "{}", seen[1].body);
}

#[tokio::test]
async fn no_failure_is_for_good_but_that_of_an_id_that_is_none() {
    for status in [400, 401, 404, 422, 500] {
        let server = FakeServer::always(Reply::new(status).header("retry-after", "9")).await;
        let outcome = deliver(&target(&server), delivery("letta", "agent-1", text("p"))).await;
        let Outcome::Failed { error, permanent, retry_after } = outcome else { panic!("delivered") };
        assert!(error.starts_with(&format!("HTTP {status}: ")), "{error}");
        assert!(!permanent);
        assert_eq!(retry_after.is_some(), status == 500);
    }
    let server = FakeServer::always(Reply::new(200)).await;
    let outcome = deliver(&target(&server), delivery("letta", "..", text("p"))).await;
    assert!(matches!(outcome, Outcome::Failed { permanent: true, .. }), "{outcome:?}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_agent_has_an_id_and_is_told_something() {
    let server = FakeServer::always(Reply::new(200)).await;
    let target = target(&server);
    assert_eq!(target.check("agent-123", &text("p")), Ok(()));
    assert!(target.check("", &text("p")).is_err());
    assert!(target.check("..", &text("p")).is_err());
    assert!(target.check("a\n", &text("p")).is_err());
    assert!(target.check("agent-123", &text(" ")).is_err());
}
