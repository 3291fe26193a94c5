//! Which paths there are on which listener.

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use http::StatusCode;

use crate::mcp;
use crate::problem::Problem;
use crate::serve::Door;
use crate::{a2amcp, health, rest};

/// The routes of a listener.
pub(crate) fn of(door: Door) -> Router {
    let router = if is_a2amcp(&door) {
        Router::new()
            .route("/", any(mcp::default_view).get(unknown))
            .route("/health", get(a2amcp::health))
            .merge(mcp::routes())
            .merge(mcp::sse_routes())
    } else {
        Router::new()
            .route("/health", get(health::health))
            .route("/metrics", get(health::metrics))
            .merge(mcp::routes())
            .merge(mcp::sse_routes())
            .merge(rest::routes())
    };
    router.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(door)
}

fn is_a2amcp(door: &Door) -> bool {
    door.app.registry.single(&door.endpoint.shown.view).is_some_and(|toolset| toolset.name == "a2amcp")
}

async fn unknown(request: Request) -> Response {
    Problem::not_found(format!("there is nothing at {}", request.uri().path())).into_response()
}

async fn wrong_method(request: Request) -> Response {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).into_response()
}

/// The name under which requests to `path` are counted. There are few, whatever clients ask for.
pub(crate) fn label(path: &str) -> &'static str {
    let mut parts = path.trim_matches('/').splitn(3, '/');
    match (parts.next(), parts.next()) {
        (Some(""), None) => "/",
        (Some("mcp"), None) => "/mcp",
        (Some("mcp"), Some(_)) => "/mcp/{toolset}",
        (Some("sse"), _) => "/sse",
        (Some("messages"), _) => "/messages",
        (Some("health"), None) => "/health",
        (Some("metrics"), None) => "/metrics",
        (Some("api"), Some("events")) => "/api/events",
        (Some("api"), Some("projects")) => "/api/projects",
        (Some("api"), Some("coordination")) => "/api/coordination",
        (Some("api"), Some("tools")) => "/api/tools",
        (Some("api"), Some("keys")) => "/api/keys",
        (Some("api"), Some("schedules")) => "/api/schedules",
        (Some("api"), Some("occurrences")) => "/api/occurrences",
        (Some("api"), Some("scheduler")) => "/api/scheduler",
        (Some("api"), _) => "/api",
        _ => "(other)",
    }
}
