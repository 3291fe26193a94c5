//! `/api/tools`: the tools for programs that do not speak MCP.

use axum::Json as Answer;
use axum::extract::State;
use http::{HeaderMap, Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_exchange::CommandId;
use switchboard_tools::{Context, Output, View};
use tokio_util::sync::CancellationToken;

use super::openapi::{Api, Operation};
use crate::calls::CallFailure;
use crate::extract::{Calling, Json, Path, Query};
use crate::problem::Problem;
use crate::serve::Door;

pub(super) fn add_to(api: Api) -> Api {
    api.route(
        Method::GET,
        "/api/tools",
        list,
        Operation::of("The tools that the caller may use, by name").query::<Which>().answers::<Tools>(200),
    )
    .route(
        Method::POST,
        "/api/tools/{name}",
        call,
        Operation::of(
            "Call a tool; the body is its arguments. The header Idempotency-Key names the call: repeating it has no \
             second effect",
        )
        .path("name", "The tool")
        .takes::<Map<String, Value>>()
        .answers::<Answered>(200),
    )
}

/// Which tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// A toolset, or several joined by `+`. Default: all.
    toolset: Option<String>,
}

/// Tools, and the toolsets they belong to.
#[derive(Debug, Serialize, JsonSchema)]
struct Tools {
    toolsets: Vec<ToolsetView>,
    tools: Vec<ToolView>,
}

/// A toolset.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Toolset")]
struct ToolsetView {
    /// As in `/mcp/{toolset}`.
    name: &'static str,
    /// What it is for.
    summary: &'static str,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
struct ToolView {
    /// Its toolset.
    toolset: &'static str,
    /// Its name, title, description, `inputSchema` and `annotations`, as MCP lists them.
    #[serde(flatten)]
    #[schemars(with = "Map<String, Value>")]
    definition: switchboard_tools::Definition,
}

async fn list(
    State(door): State<Door>,
    Calling(caller): Calling,
    Query(which): Query<Which>,
) -> Result<Answer<Tools>, Problem> {
    let registry = &door.app.registry;
    let view = registry
        .view(which.toolset.as_deref().unwrap_or("all"))
        .map_err(|error| Problem::not_found(error.to_string()))?;
    let shown = |toolset: &str| view.shows(toolset) && caller.may_use_toolset(toolset).is_ok();
    let toolsets = registry.toolsets().filter(|toolset| shown(toolset.name));
    let tools = registry.tools(&view).filter(|tool| shown(tool.toolset));
    Ok(Answer(Tools {
        toolsets: toolsets.map(|set| ToolsetView { name: set.name, summary: set.summary }).collect(),
        tools: tools
            .map(|tool| ToolView { toolset: tool.toolset, definition: tool.definition.clone() })
            .collect(),
    }))
}

/// What a tool answered.
#[derive(Debug, Serialize, JsonSchema)]
struct Answered {
    /// For people and models.
    text: String,
    /// For programs; none where a tool answers with text only.
    structured: Option<Value>,
    /// Whether the tool says that it failed.
    is_error: bool,
}

async fn call(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(name): Path,
    headers: HeaderMap,
    Json(arguments): Json<Map<String, Value>>,
) -> Result<Answer<Answered>, Problem> {
    let mut context = Context::new(caller);
    context.command_id = command_id(&headers)?;
    let Output { text, structured, is_error } = run(&door, name, arguments, context).await?;
    Ok(Answer(Answered { text, structured, is_error }))
}

/// Calls on even if the client leaves, so that a tool of several steps is told to stop and not cut off between them.
async fn run(
    door: &Door,
    name: String,
    arguments: Map<String, Value>,
    mut context: Context,
) -> Result<Output, Problem> {
    let cancelled = CancellationToken::new();
    context.cancelled = cancelled.clone();
    let _gone = cancelled.drop_guard();
    let calls = door.app.calls.clone();
    let call = tokio::spawn(async move { calls.call(&View::ALL, &name, arguments, context).await });
    match call.await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(failure)) => Err(failure.into()),
        Err(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the call was cut off")),
    }
}

pub(super) fn command_id(headers: &HeaderMap) -> Result<Option<CommandId>, Problem> {
    let bad = |why: &dyn std::fmt::Display| {
        Problem::bad_request("bad_command_id", format!("the header Idempotency-Key is no command id: {why}"))
    };
    let Some(id) = headers.get("idempotency-key") else { return Ok(None) };
    let id = id.to_str().map_err(|why| bad(&why))?;
    CommandId::new(id).map(Some).map_err(|why| bad(&why))
}

impl From<CallFailure> for Problem {
    fn from(failure: CallFailure) -> Self {
        let message = failure.to_string();
        match failure {
            CallFailure::UnknownTool { .. } => {
                Self::not_found(message).hint("GET /api/tools lists the tools")
            }
            CallFailure::Denied(denied) => denied.into(),
            CallFailure::Busy { .. } => Self::busy(message),
            CallFailure::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message),
            CallFailure::Panicked { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message),
        }
    }
}
