//! `todo_add`, `todo_update`, `todo_list`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    AddTodo, AllTodos, Coordination, MyTodos, Priority, Todo, TodoStatus, UpdateTodo,
};

use super::answer::Failure;
use super::tool::{Call, in_project, tool};
use crate::input::{NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(coordination, "todo_add", "Add todo", "Add to your todo list.", Annotations::WRITES, add),
        tool(
            coordination,
            "todo_update",
            "Update todo",
            "Set the status of one of your todos.",
            Annotations::SETS,
            update,
        ),
        tool(
            coordination,
            "todo_list",
            "List todos",
            "The todos of one session, or of all.",
            Annotations::READS,
            list,
        ),
    ]
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
enum PriorityInput {
    #[default]
    High,
    Medium,
    Low,
}

#[derive(Deserialize, JsonSchema)]
struct AddInput {
    project: NameParam,
    session: NameParam,
    text: TextParam,
    #[serde(default)]
    #[schemars(default)]
    priority: Option<PriorityInput>,
}

async fn add(call: Call, input: AddInput) -> Result<Value, Failure> {
    let priority = match input.priority.unwrap_or_default() {
        PriorityInput::High => Priority::High,
        PriorityInput::Medium => Priority::Medium,
        PriorityInput::Low => Priority::Low,
    };
    let id = call.send(AddTodo { session: input.session.0, text: input.text.0, priority }).await?;
    Ok(json!({"id": id.to_string()}))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusInput {
    Pending,
    InProgress,
    Completed,
    Blocked,
}

#[derive(Deserialize, JsonSchema)]
struct UpdateInput {
    project: NameParam,
    session: NameParam,
    id: NameParam,
    status: StatusInput,
}

async fn update(call: Call, input: UpdateInput) -> Result<Value, Failure> {
    let status = match input.status {
        StatusInput::Pending => TodoStatus::Pending,
        StatusInput::InProgress => TodoStatus::InProgress,
        StatusInput::Completed => TodoStatus::Completed,
        StatusInput::Blocked => TodoStatus::Blocked,
    };
    let id = input.id.0.as_str().to_owned();
    let id = call.send(UpdateTodo { session: input.session.0, id, status }).await?;
    Ok(json!({"id": id.to_string(), "status": status}))
}

#[derive(Deserialize, JsonSchema)]
struct ListInput {
    project: NameParam,
    /// Whose; default: everybody's
    #[serde(default)]
    session: Option<NameParam>,
}

async fn list(call: Call, input: ListInput) -> Result<Value, Failure> {
    if let Some(session) = input.session {
        let todos = call.send(MyTodos { session: session.0 }).await?;
        return Ok(json!({"todos": shown(&todos)}));
    }
    let all = call.send(AllTodos).await?;
    let of = all.iter().map(|of| json!({"session": of.agent.session, "todos": shown(&of.todos)}));
    Ok(json!({"agents": of.collect::<Vec<_>>()}))
}

fn shown(todos: &[Todo]) -> Vec<Value> {
    let one = |todo: &Todo| {
        json!({
            "id": todo.id.to_string(),
            "text": todo.text,
            "status": todo.status,
            "priority": todo.priority,
            "created_at": todo.created_at,
            "completed_at": todo.completed_at,
        })
    };
    todos.iter().map(one).collect()
}

in_project!(AddInput, UpdateInput, ListInput);
