//! `promptyoself_inference_diagnostics`, `health`, `promptyoself_executor_status`.

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
                name: "promptyoself_inference_diagnostics",
                title: "Explain inference",
                description: "Show which agent a call without agent_id is for, and why.",
                annotations: Annotations::READS,
                output_schema: None,
            },
            diagnose,
        ),
        tool(
            service,
            Spec {
                name: "health",
                title: "Health",
                description: "Show how PromptYoSelf is configured.",
                annotations: Annotations::READS,
                output_schema: None,
            },
            health,
        ),
        tool(
            service,
            Spec {
                name: "promptyoself_executor_status",
                title: "Executor status",
                description: "Show whether due prompts are delivered by themselves.",
                annotations: Annotations::READS,
                output_schema: None,
            },
            executor_status,
        ),
    ]
}

async fn diagnose(call: Call, _: Nothing) -> Result<Value, Failure> {
    let mut inferred = call.infer().await;
    let fallback = call.service.options().agents.single_agent_fallback;
    if fallback && inferred.agents_count.is_none() {
        inferred.agents_count = call.service.letta().agents().await.ok().map(|agents| agents.len());
    }
    Ok(json!({
        "status": "ok",
        "ctx_present": true,
        "ctx_metadata_keys": call.metadata_keys(),
        "ctx_agent_id_attr": call.context.origin.agent,
        "env": call.variables_set(),
        "single_agent_fallback_enabled": fallback,
        "agents_count": inferred.agents_count,
        "inferred_agent_id": inferred.agent,
        "inference_debug": call.explained(&inferred),
    }))
}

async fn health(call: Call, _: Nothing) -> Result<Value, Failure> {
    let (letta, options) = (call.service.letta(), call.service.options());
    Ok(json!({
        "status": "healthy",
        "letta_base_url": letta.base_url(),
        "db": options.storage,
        "auth_set": letta.has_secret(),
        "executor_autostart": options.executor.is_on,
        "executor_interval": options.executor.interval_seconds,
    }))
}

async fn executor_status(call: Call, _: Nothing) -> Result<Value, Failure> {
    Ok(json!({
        "status": "ok",
        "running": call.service.is_executing(),
        "interval": call.service.options().executor.interval_seconds,
    }))
}
