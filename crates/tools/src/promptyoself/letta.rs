//! `promptyoself_test`, `promptyoself_agents`, `promptyoself_upload`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::PromptYoSelf;
use super::answer::Failure;
use super::tool::{Call, Nothing, Spec, tool};
use crate::{Annotations, Tool};

pub(super) fn tools(service: &PromptYoSelf) -> Vec<Tool> {
    let looks = Annotations { open_world_hint: true, ..Annotations::READS };
    vec![
        tool(
            service,
            Spec {
                name: "promptyoself_test",
                title: "Test the connection",
                description: "Test the connection to the Letta server.",
                annotations: looks,
                output_schema: None,
            },
            test,
        ),
        tool(
            service,
            Spec {
                name: "promptyoself_agents",
                title: "List agents",
                description: "List the agents of the Letta server.",
                annotations: looks,
                output_schema: None,
            },
            agents,
        ),
        tool(
            service,
            Spec {
                name: "promptyoself_upload",
                title: "Upload a tool",
                description: "Upload a Letta tool: the Python source of one function with docstring and type hints.",
                annotations: Annotations { open_world_hint: true, ..Annotations::WRITES },
                output_schema: None,
            },
            upload,
        ),
    ]
}

async fn test(call: Call, _: Nothing) -> Result<Value, Failure> {
    let letta = call.service.letta();
    let agents = letta.agents().await;
    let count = agents.map_err(|error| Failure::because("Failed to test connection")(&error))?.len();
    Ok(json!({
        "status": "success",
        "message": "Connected",
        "agent_count": count,
        "details": {"base_url": letta.base_url(), "agent_count": count},
    }))
}

async fn agents(call: Call, _: Nothing) -> Result<Value, Failure> {
    let agents = call.service.letta().agents().await;
    let agents = agents.map_err(|error| Failure::because("Failed to list agents")(&error))?;
    let shown = agents.iter().map(|agent| {
        json!({
            "id": agent.id,
            "name": agent.name,
            "description": agent.description,
            "created_at": agent.created_at,
            "last_updated": agent.last_updated,
        })
    });
    let shown: Vec<Value> = shown.collect();
    Ok(json!({"status": "success", "count": shown.len(), "agents": shown}))
}

#[derive(Deserialize, JsonSchema)]
struct Upload {
    /// One top-level function
    source_code: String,
    /// For the log only
    #[serde(default)]
    name: Option<String>,
    /// Stored with the tool
    #[serde(default)]
    description: Option<String>,
}

async fn upload(call: Call, input: Upload) -> Result<Value, Failure> {
    let letta = call.service.letta();
    if !letta.has_secret() {
        return Err(Failure::said("Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD"));
    }
    let tool = letta.upload(&input.source_code, input.description.as_deref()).await;
    let tool = tool.map_err(|error| Failure::because("Upload failed")(&error))?;
    tracing::info!(name = input.name, tool = tool.id, "a tool was uploaded to Letta");
    Ok(json!({"status": "success", "tool_id": tool.id, "name": tool.name}))
}
