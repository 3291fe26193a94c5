//! `add_todo`, `update_todo`, `get_my_todos`, `get_all_todos` (contract §3.2).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_coordination::{
    AddTodo, AllTodos, Coordination, MyTodos, Priority, Todo, TodoStatus, UpdateTodo,
};

use super::answer::{Failure, seconds};
use super::tool::{Call, Spec, in_project, tool};
use crate::input::{BadArguments, NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            Spec {
                name: "add_todo",
                title: "Add todo",
                description: "Add an item to your task list.",
                annotations: Annotations::WRITES,
                aliases: &[("todo_item", "task")],
                may_be_absent: &[],
            },
            add,
        ),
        tool(
            coordination,
            Spec {
                name: "update_todo",
                title: "Update todo",
                description: "Set the status of one of your todos.",
                annotations: Annotations::WRITES,
                aliases: &[],
                may_be_absent: &[],
            },
            update,
        ),
        tool(
            coordination,
            Spec {
                name: "get_my_todos",
                title: "Get my todos",
                description: "Your own todos.",
                annotations: Annotations::READS,
                aliases: &[],
                may_be_absent: &[],
            },
            mine,
        ),
        tool(
            coordination,
            Spec {
                name: "get_all_todos",
                title: "Get all todos",
                description: "The todos of all agents of the project.",
                annotations: Annotations::READS,
                aliases: &[],
                may_be_absent: &[],
            },
            all,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
    /// Description of the todo
    todo_item: TextParam,
    /// Priority (1=high, 2=medium, 3=low)
    #[serde(default = "highest")]
    #[schemars(with = "i64")]
    priority: Value,
}

fn highest() -> Value {
    1.into()
}

fn priority(value: &Value) -> Result<Priority, BadArguments> {
    let word = value.as_str().map(str::to_lowercase);
    match (value.as_i64(), word.as_deref()) {
        (Some(1), _) | (_, Some("high")) => Ok(Priority::High),
        (Some(2), _) | (_, Some("medium")) => Ok(Priority::Medium),
        (Some(3), _) | (_, Some("low")) => Ok(Priority::Low),
        _ => Err(BadArguments::invalid("priority", "must be 1 (high), 2 (medium) or 3 (low)")),
    }
}

async fn add(call: Call, input: Add) -> Result<Value, Failure> {
    let text = input.todo_item.0;
    let priority = priority(&input.priority)?;
    let id = call.send(AddTodo { session: input.session_name.0, text: text.clone(), priority }).await?;
    Ok(json!({"status": "added", "todo_id": id.to_string(), "message": format!("Added todo: {text}")}))
}

#[derive(Deserialize, JsonSchema)]
struct Update {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
    /// Todo identifier
    todo_id: NameParam,
    /// New status (pending, in_progress, completed, blocked)
    status: String,
}

fn status(word: &str) -> Result<TodoStatus, BadArguments> {
    match word {
        "pending" => Ok(TodoStatus::Pending),
        "in_progress" => Ok(TodoStatus::InProgress),
        "completed" => Ok(TodoStatus::Completed),
        "blocked" | "cancelled" => Ok(TodoStatus::Blocked),
        _ => Err(BadArguments::invalid("status", "must be pending, in_progress, completed or blocked")),
    }
}

async fn update(call: Call, input: Update) -> Result<Value, Failure> {
    let status = status(&input.status)?;
    let id = input.todo_id.0.as_str().to_owned();
    let updated = call.send(UpdateTodo { session: input.session_name.0, id, status }).await?;
    Ok(json!({"status": "updated", "todo_id": updated.to_string(), "new_status": status}))
}

#[derive(Deserialize, JsonSchema)]
struct Mine {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
}

async fn mine(call: Call, input: Mine) -> Result<Value, Failure> {
    let session = input.session_name.0;
    let todos = call.send(MyTodos { session: session.clone() }).await?;
    Ok(json!({"session_name": session, "total": todos.len(), "todos": shown(&todos)}))
}

#[derive(Deserialize, JsonSchema)]
struct All {
    /// Project identifier
    project_id: NameParam,
}

async fn all(call: Call, _: All) -> Result<Value, Failure> {
    let agents = call.send(AllTodos).await?;
    let agents: Map<String, Value> = agents
        .into_iter()
        .map(|of| {
            let completed = of.todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
            let shown = json!({
                "task_id": of.agent.task_id,
                "description": of.agent.description,
                "total_todos": of.todos.len(),
                "completed": completed,
                "todos": shown(&of.todos),
            });
            (of.agent.session.as_str().to_owned(), shown)
        })
        .collect();
    Ok(Value::Object(agents))
}

fn shown(todos: &[Todo]) -> Vec<Value> {
    let one = |todo: &Todo| {
        json!({
            "id": todo.id.to_string(),
            "text": todo.text,
            "status": todo.status,
            "priority": todo.priority.number(),
            "created_at": seconds(todo.created_at),
            "completed_at": todo.completed_at.map(seconds),
        })
    };
    todos.iter().map(one).collect()
}

in_project!(Add, Update, Mine, All);
