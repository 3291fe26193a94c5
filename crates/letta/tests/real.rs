//! The client against a real Letta, where there is one.
//!
//! `LETTA_BASE_URL`, `LETTA_API_KEY` and `LETTA_AGENT_ID` (an agent that answers) say which; then
//! `cargo test -p switchboard-letta --test real -- --ignored`. Tried with Letta 0.13.0.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

use std::collections::BTreeSet;
use std::env;

use switchboard_letta::{CallError, DeliveryError, Letta, Options};

fn letta(api_key: Option<String>) -> Letta {
    Letta::new(Options { base_url: env::var("LETTA_BASE_URL").unwrap(), api_key, ..Options::default() })
        .unwrap()
}

#[tokio::test]
#[ignore = "needs a Letta server"]
async fn a_real_letta_understands_every_call() {
    let letta = letta(env::var("LETTA_API_KEY").ok());
    let agent = env::var("LETTA_AGENT_ID").unwrap();

    let agents = letta.agents().await.unwrap();
    let ids: BTreeSet<_> = agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids.len(), agents.len(), "an agent is listed twice");
    assert!(ids.contains(agent.as_str()));

    assert_eq!(letta.agent_exists(&agent).await, Ok(true));
    assert_eq!(letta.agent_exists("agent-00000000-0000-4000-8000-000000000009").await, Ok(false));
    assert_eq!(letta.agent_exists("not an id").await, Ok(false));

    let reply = letta.deliver(&agent, "Say hello", "schedule-1@2025-01-02T09:00:00Z").await.unwrap();
    assert!(reply.is_some_and(|reply| !reply.is_empty()));
    let nobody = letta.deliver("agent-00000000-0000-4000-8000-000000000009", "Hello?", "key").await;
    assert!(
        matches!(nobody, Err(DeliveryError::Refused(CallError::Status { status: 404, .. }))),
        "{nobody:?}"
    );

    let source = "def roll(sides: int) -> int:\n    \"\"\"Roll.\n\n    Args:\n        sides (int): How many.\n\n    \
                  Returns:\n        int: A number.\n    \"\"\"\n    return 1\n";
    assert_eq!(letta.upload(source, Some("Rolls")).await.unwrap().name.as_deref(), Some("roll"));
}

#[tokio::test]
#[ignore = "needs a Letta server with a password"]
async fn a_real_letta_refuses_a_wrong_key() {
    let error = letta(Some("wrong".into())).agents().await.unwrap_err();
    assert_eq!(error.to_string(), "HTTP 401: Unauthorized");
}
