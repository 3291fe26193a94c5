//! `agent_register`, `agent_heartbeat`, `agent_list`, `agent_unregister`, `task_complete`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    CompleteTask, Coordination, Heartbeat, ListAgents, Register, Text, Unregister,
};

use super::answer::Failure;
use super::tool::{Call, in_project, tool};
use crate::input::{NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            "agent_register",
            "Register",
            "Join a project under a session name. Call first. Registering again starts your todos over.",
            Annotations::WRITES,
            register,
        ),
        tool(
            coordination,
            "agent_heartbeat",
            "Heartbeat",
            "Say that you are alive. Any other call with your session does too; 120 s of silence remove you.",
            Annotations::SETS,
            heartbeat,
        ),
        tool(
            coordination,
            "agent_list",
            "List agents",
            "Who is here, and what they do.",
            Annotations::READS,
            list,
        ),
        tool(
            coordination,
            "agent_unregister",
            "Unregister",
            "Leave the project: your locks, todos and unread messages go.",
            Annotations::DESTROYS,
            unregister,
        ),
        tool(
            coordination,
            "task_complete",
            "Complete task",
            "Report your task as done.",
            Annotations::SETS,
            complete,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct RegisterInput {
    project: NameParam,
    session: NameParam,
    /// Task id; default: the session
    #[serde(default)]
    task: Option<NameParam>,
    /// Git branch
    #[serde(default)]
    branch: Option<TextParam>,
    /// What you do
    #[serde(default)]
    description: Option<TextParam>,
}

fn text(given: Option<TextParam>) -> Text {
    given.map(|text| text.0).unwrap_or_default()
}

async fn register(call: Call, input: RegisterInput) -> Result<Value, Failure> {
    let session = input.session.0;
    let command = Register {
        session: session.clone(),
        task_id: input.task.map_or_else(|| session.clone(), |task| task.0),
        branch: text(input.branch),
        description: text(input.description),
    };
    let others = call.send(command).await?;
    Ok(json!({"session": session, "others": others}))
}

#[derive(Deserialize, JsonSchema)]
struct OfSession {
    project: NameParam,
    session: NameParam,
}

async fn heartbeat(call: Call, input: OfSession) -> Result<Value, Failure> {
    let at = call.send(Heartbeat { session: input.session.0 }).await?;
    Ok(json!({"seen_at": at}))
}

#[derive(Deserialize, JsonSchema)]
struct OfProject {
    project: NameParam,
}

async fn list(call: Call, _: OfProject) -> Result<Value, Failure> {
    let agents = call.send(ListAgents).await?;
    Ok(json!({"agents": agents}))
}

async fn unregister(call: Call, input: OfSession) -> Result<Value, Failure> {
    let todos = call.send(Unregister { session: input.session.0 }).await?;
    Ok(json!({"todos": todos}))
}

#[derive(Deserialize, JsonSchema)]
struct CompleteInput {
    project: NameParam,
    session: NameParam,
    /// Task id
    task: NameParam,
}

async fn complete(call: Call, input: CompleteInput) -> Result<Value, Failure> {
    let task = input.task.0;
    let command = CompleteTask { session: input.session.0, task_id: task.clone() };
    call.coordination.complete(&call.project, command, call.context.command_id.clone()).await?;
    Ok(json!({"completed": task}))
}

in_project!(RegisterInput, OfSession, OfProject, CompleteInput);
