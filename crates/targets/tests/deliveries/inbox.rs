//! Messages to agents that work side by side.

use crate::server::Server;
use crate::support::{deliver, delivery, text};
use serde_json::json;
use switchboard_schedule::{Delivery, Outcome, Target as _};
use switchboard_targets::InboxTarget;

async fn with_session(session: &str) -> (Server, InboxTarget) {
    let server = Server::new();
    let arguments = json!({
        "project_id": "shop", "session_name": session, "task_id": "1", "branch": "main", "description": "works",
    });
    server.call("register_agent", arguments).await;
    let target = InboxTarget::new(server.coordination.clone());
    (server, target)
}

#[tokio::test]
async fn an_agent_finds_a_prompt_once_however_often_it_is_delivered() {
    let (server, target) = with_session("ada").await;
    for attempt in 1..=2 {
        let delivery = Delivery { attempt, ..delivery("inbox", "shop/ada", text("look at the mail")) };
        assert_eq!(deliver(&target, delivery).await, Outcome::delivered());
    }
    let check = || server.call("check_messages", json!({"project_id": "shop", "session_name": "ada"}));
    let found = check().await;
    let messages = found["messages"].as_array().or(found.as_array()).unwrap().clone();
    assert_eq!(messages.len(), 1, "{found}");
    assert_eq!(messages[0]["from"], "schedule-93@2025-01-02T09:00:00Z");
    assert_eq!(messages[0]["content"], "look at the mail");
    // Read is read: a late repetition brings nothing back.
    deliver(&target, delivery("inbox", "shop/ada", text("look at the mail"))).await;
    let again = check().await;
    assert!(again["messages"].as_array().or(again.as_array()).unwrap().is_empty(), "{again}");
}

#[tokio::test]
async fn a_session_that_is_away_may_come_back() {
    let (_server, target) = with_session("ada").await;
    let outcome = deliver(&target, delivery("inbox", "shop/bob", text("hi"))).await;
    let error = "no session 'bob' is registered in project 'shop'".to_owned();
    assert_eq!(outcome, Outcome::Failed { error, permanent: false, retry_after: None });
}

#[tokio::test]
async fn what_names_no_inbox_is_not_tried_again() {
    let (_server, target) = with_session("ada").await;
    for to in ["ada", "/ada", "shop/"] {
        let outcome = deliver(&target, delivery("inbox", to, text("hi"))).await;
        assert!(matches!(outcome, Outcome::Failed { permanent: true, .. }), "{to}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_destination_is_a_session_of_a_project() {
    let (_server, target) = with_session("ada").await;
    assert_eq!(target.check("shop/ada", &text("x")), Ok(()));
    assert_eq!(target.check("shop/floor 1/ada", &text("x")), Ok(()));
    let why = target.check("ada", &text("x")).unwrap_err();
    assert_eq!(why, "'ada' names no inbox: write it as 'project/session'");
    assert!(target.check("/ada", &text("x")).is_err());
    assert!(target.check("shop/", &text("x")).is_err());
}
