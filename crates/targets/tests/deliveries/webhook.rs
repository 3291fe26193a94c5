//! Webhooks to a server that answers by script.

use std::time::Duration;

use crate::support::{deliver, delivery, text};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use switchboard_outbound::fake::{FakeServer, Reply};
use switchboard_schedule::{Message, Outcome};
use switchboard_targets::{Webhook, WebhookOptions};

const SECRET: [u8; 24] = *b"a secret of twenty-four.";

fn webhook() -> Webhook {
    Webhook::new(WebhookOptions { allow_private: true, ..WebhookOptions::new(SECRET) })
}

async fn outcome_of(reply: Reply) -> Outcome {
    let server = FakeServer::always(reply).await;
    deliver(&webhook(), delivery("webhook", &server.url("/hook"), text("x"))).await
}

fn failed(error: &str, permanent: bool) -> Outcome {
    Outcome::Failed { error: error.into(), permanent, retry_after: None }
}

#[tokio::test]
async fn a_delivery_is_a_signed_post() {
    let server = FakeServer::always(Reply::new(204)).await;
    let webhook = webhook();
    let outcome = deliver(&webhook, delivery("webhook", &server.url("/hook?a=b"), text("Say \"hi\""))).await;
    assert_eq!(outcome, Outcome::delivered());
    let json = Message::json(&json!({"b": 1, "a": [null]}));
    deliver(&webhook, delivery("webhook", &server.url("/hook?a=b"), json)).await;

    let seen = server.seen();
    assert_eq!(seen[0].line(), "POST /hook?a=b");
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    let head = r#"{"schedule":"93","name":"report","key":"schedule-93@2025-01-02T09:00:00Z","due":"2025-01-02T09:00:00Z","attempt":2,"message":"#;
    assert_eq!(seen[0].body, format!(r#"{head}"Say \"hi\""}}"#));
    assert_eq!(seen[1].body, format!(r#"{head}{{"b":1,"a":[null]}}}}"#));

    for seen in &seen {
        let (id, timestamp) = (seen.header("webhook-id").unwrap(), seen.header("webhook-timestamp").unwrap());
        assert_eq!(id, "schedule-93@2025-01-02T09:00:00Z");
        let mut mac = Hmac::<Sha256>::new_from_slice(&SECRET).unwrap();
        mac.update(format!("{id}.{timestamp}.{}", seen.body).as_bytes());
        let expected = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        assert_eq!(seen.header("webhook-signature"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn the_beginning_of_a_text_is_the_reply() {
    let long = Reply::new(200).header("content-type", "text/plain").body("ü".repeat(50_000));
    let Outcome::Delivered { reply: Some(reply) } = outcome_of(long).await else { panic!("no reply") };
    assert_eq!(reply, "ü".repeat(512));
    assert_eq!(outcome_of(Reply::json("{}")).await, Outcome::Delivered { reply: Some("{}".into()) });
    assert_eq!(outcome_of(Reply::new(200).body("?")).await, Outcome::delivered());
    assert_eq!(outcome_of(Reply::new(201).body("half").cut()).await, Outcome::delivered());
}

#[tokio::test]
async fn an_answer_says_whether_to_try_again() {
    for (status, permanent) in
        [(400, true), (401, true), (404, true), (410, true), (408, false), (409, false), (425, false)]
    {
        let outcome = outcome_of(Reply::new(status)).await;
        let Outcome::Failed { permanent: said, .. } = outcome else { panic!("{status} delivered") };
        assert_eq!(said, permanent, "{status}");
    }
    assert_eq!(outcome_of(Reply::new(410)).await, failed("HTTP 410 Gone", true));
    let broken = Reply::new(500).header("content-type", "text/plain").body("out of order\n");
    assert_eq!(outcome_of(broken).await, failed("HTTP 500 Internal Server Error: out of order", false));
}

#[tokio::test]
async fn retry_after_is_heeded() {
    for (status, value, seconds) in [
        (429, "30", Some(30)),
        (503, "Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        (503, "soon", None),
        (410, "30", None),
    ] {
        let outcome = outcome_of(Reply::new(status).header("retry-after", value)).await;
        let Outcome::Failed { retry_after, .. } = outcome else { panic!("delivered") };
        assert_eq!(retry_after.map(|wait| wait.as_secs()), seconds, "{status} {value}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_so() {
    let other = FakeServer::always(Reply::new(200)).await;
    for status in [301, 302, 303, 307, 308] {
        let outcome = outcome_of(Reply::new(status).header("location", other.url("/"))).await;
        let Outcome::Failed { error, permanent: false, .. } = outcome else { panic!("{outcome:?}") };
        assert!(error.contains("follow no redirects"), "{error}");
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn no_answer_is_tried_again() {
    let server = FakeServer::always(Reply::silence()).await;
    let webhook = Webhook::new(WebhookOptions {
        allow_private: true,
        timeout: Duration::from_millis(50),
        ..WebhookOptions::new(SECRET)
    });
    let outcome = deliver(&webhook, delivery("webhook", &server.url("/"), text("x"))).await;
    assert_eq!(outcome, failed(&format!("no answer from {} within 50 ms", server.address), false));

    let outcome = outcome_of(Reply::hang_up()).await;
    assert!(matches!(outcome, Outcome::Failed { permanent: false, .. }), "{outcome:?}");
}

#[tokio::test]
async fn what_is_not_public_is_refused_for_good_in_every_spelling() {
    let server = FakeServer::always(Reply::new(200)).await;
    let port = server.address.port();
    let webhook = Webhook::new(WebhookOptions::new(SECRET));
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let to = format!("http://{host}:{port}/");
        let outcome = deliver(&webhook, delivery("webhook", &to, text("x"))).await;
        let Outcome::Failed { error, permanent: true, .. } = outcome else { panic!("{host}: {outcome:?}") };
        assert!(error.contains("not a public address"), "{error}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_host_that_the_operator_allows_is_called() {
    let server = FakeServer::always(Reply::new(200)).await;
    let port = server.address.port();
    let webhook = Webhook::new(WebhookOptions {
        allowed_hosts: vec![format!("localhost:{port}")],
        ..WebhookOptions::new(SECRET)
    });
    let to = format!("http://localhost:{port}/");
    assert_eq!(deliver(&webhook, delivery("webhook", &to, text("x"))).await, Outcome::delivered());
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = FakeServer::always(Reply::new(200)).await;
    let webhook = webhook();
    for _ in 0..10 {
        deliver(&webhook, delivery("webhook", &server.url("/"), text("x"))).await;
    }
    assert!(server.seen().iter().all(|seen| seen.connection == 0));
}

#[test]
fn no_debug_text_holds_the_secret() {
    let options = WebhookOptions::new(*b"secret");
    let shown = format!("{options:?} {:?}", Webhook::new(options.clone()));
    assert!(!shown.contains("115") && !shown.contains("secret"), "{shown}");
}
