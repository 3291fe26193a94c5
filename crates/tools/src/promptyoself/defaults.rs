//! `promptyoself_set_default_agent`, `promptyoself_set_scoped_default_agent`, `promptyoself_get_scoped_default_agent`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::PromptYoSelf;
use super::answer::Failure;
use super::tool::{Call, Nothing, Spec, tool};
use crate::{Annotations, Tool};

pub(super) fn tools(service: &PromptYoSelf) -> Vec<Tool> {
    vec![
        tool(
            service,
            Spec {
                name: "promptyoself_set_default_agent",
                title: "Set the default agent",
                description: "Set the agent of calls without agent_id, for everybody until the server restarts.",
                annotations: Annotations::SETS,
                output_schema: None,
            },
            set_default,
        ),
        tool(
            service,
            Spec {
                name: "promptyoself_set_scoped_default_agent",
                title: "Set the session's default agent",
                description: "Set the agent of this session's calls without agent_id.",
                annotations: Annotations::SETS,
                output_schema: None,
            },
            set_scoped,
        ),
        tool(
            service,
            Spec {
                name: "promptyoself_get_scoped_default_agent",
                title: "Get the session's default agent",
                description: "Show the agent of this session's calls without agent_id.",
                annotations: Annotations::READS,
                output_schema: None,
            },
            get_scoped,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct OfAgent {
    /// The id of a Letta agent
    agent_id: String,
}

impl OfAgent {
    fn agent(&self) -> Result<&str, Failure> {
        match self.agent_id.trim() {
            "" => Err(Failure::said("agent_id cannot be empty")),
            agent => Ok(agent),
        }
    }
}

async fn set_default(call: Call, input: OfAgent) -> Result<Value, Failure> {
    let agent = input.agent()?;
    call.service.set_default_agent(agent.into());
    Ok(json!({
        "status": "success",
        "message": format!("Default agent ID set to: {agent}"),
        "agent_id": agent,
        "note": "This setting only applies to the current server session",
    }))
}

async fn set_scoped(call: Call, input: OfAgent) -> Result<Value, Failure> {
    let agent = input.agent()?;
    let session = call.context.origin.session.as_ref().ok_or_else(|| {
        Failure::said("Unable to derive a client/session identity from context; cannot set scoped default")
    })?;
    call.service.scopes().set(session.id.clone(), agent.into());
    Ok(json!({
        "status": "success",
        "message": format!("Scoped default agent set for {}", session.name),
        "agent_id": agent,
    }))
}

async fn get_scoped(call: Call, _: Nothing) -> Result<Value, Failure> {
    let session = call.context.origin.session.as_ref();
    let agent = session.and_then(|session| call.service.scopes().get(&session.id));
    Ok(json!({"status": "ok", "scope": session.map(|session| &session.name), "agent_id": agent}))
}
