//! `register_agent`, `heartbeat`, `list_active_agents`, `mark_task_completed`, `unregister_agent` (contract §3.1).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_coordination::{CompleteTask, Coordination, Heartbeat, ListAgents, Register, Unregister};

use super::answer::{Failure, seconds};
use super::tool::{Call, Spec, in_project, tool};
use crate::input::{NameParam, TextParam};
use crate::{Annotations, Tool};

const WRITES: Annotations = Annotations::WRITES;

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            Spec {
                name: "register_agent",
                title: "Register agent",
                description: "Register with the project. Every agent must call this first.",
                annotations: WRITES,
                aliases: &[],
                may_be_absent: &[],
            },
            register,
        ),
        tool(
            coordination,
            Spec {
                name: "heartbeat",
                title: "Heartbeat",
                description: "Keep-alive signal; send every 30-60 seconds.",
                annotations: WRITES,
                aliases: &[],
                may_be_absent: &[],
            },
            heartbeat,
        ),
        tool(
            coordination,
            Spec {
                name: "list_active_agents",
                title: "List active agents",
                description: "All agents of the project with task, branch and status.",
                annotations: Annotations::READS,
                aliases: &[],
                may_be_absent: &[],
            },
            list,
        ),
        tool(
            coordination,
            Spec {
                name: "mark_task_completed",
                title: "Mark task completed",
                description: "Report the task as done to the orchestrator.",
                annotations: WRITES,
                aliases: &[],
                may_be_absent: &[],
            },
            complete,
        ),
        tool(
            coordination,
            Spec {
                name: "unregister_agent",
                title: "Unregister agent",
                description: "Leave the project; frees all your locks. Call when the task is complete.",
                annotations: Annotations::DESTROYS,
                aliases: &[],
                may_be_absent: &[],
            },
            unregister,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct RegisterAgent {
    /// Project identifier
    project_id: NameParam,
    /// Unique session name
    session_name: NameParam,
    /// Task identifier
    task_id: NameParam,
    /// Git branch name
    branch: TextParam,
    /// Task description
    description: TextParam,
}

async fn register(call: Call, input: RegisterAgent) -> Result<Value, Failure> {
    let session = input.session_name.0;
    let command = Register {
        session: session.clone(),
        task_id: input.task_id.0,
        branch: input.branch.0,
        description: input.description.0,
    };
    let others = call.send(command).await?;
    Ok(json!({
        "status": "registered",
        "project_id": call.project,
        "session_name": session,
        "other_active_agents": others,
        "message": format!(
            "Successfully registered. {} other agents are active in this project.", others.len()
        ),
    }))
}

#[derive(Deserialize, JsonSchema)]
struct OfSession {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
}

async fn heartbeat(call: Call, input: OfSession) -> Result<Value, Failure> {
    let beat_at = call.send(Heartbeat { session: input.session_name.0 }).await?;
    Ok(json!({"status": "ok", "timestamp": seconds(beat_at)}))
}

#[derive(Deserialize, JsonSchema)]
struct OfProject {
    /// Project identifier
    project_id: NameParam,
}

async fn list(call: Call, _: OfProject) -> Result<Value, Failure> {
    let agents = call.send(ListAgents).await?;
    let agents: Map<String, Value> = agents
        .into_iter()
        .map(|agent| {
            let shown = json!({
                "task_id": agent.task_id,
                "branch": agent.branch,
                "description": agent.description,
                "status": agent.status,
                "started_at": seconds(agent.started_at),
            });
            (agent.session.as_str().to_owned(), shown)
        })
        .collect();
    Ok(Value::Object(agents))
}

#[derive(Deserialize, JsonSchema)]
struct MarkTaskCompleted {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
    /// Task identifier that was completed
    task_id: NameParam,
}

async fn complete(call: Call, input: MarkTaskCompleted) -> Result<Value, Failure> {
    let task = input.task_id.0;
    let command = CompleteTask { session: input.session_name.0, task_id: task.clone() };
    let completed = call.coordination.complete(&call.project, command, call.context.command_id.clone()).await;
    completed.map_err(|error| call.refused(error))?;
    Ok(json!({"status": "success", "message": format!("Task {task} marked as completed")}))
}

async fn unregister(call: Call, input: OfSession) -> Result<Value, Failure> {
    let todos = call.send(Unregister { session: input.session_name.0 }).await?;
    Ok(json!({
        "status": "unregistered",
        "todo_summary": {
            "total": todos.total,
            "completed": todos.completed,
            "pending": todos.pending,
            "in_progress": todos.in_progress,
        },
        "message": format!("Successfully unregistered. Completed {}/{} todos.", todos.completed, todos.total),
    }))
}

in_project!(RegisterAgent, OfSession, OfProject, MarkTaskCompleted);
