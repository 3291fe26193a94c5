//! What A2AMCP's own address answers beside MCP.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::json;

use crate::health::{Health, Status};
use crate::serve::Door;

/// The name under which existing health checks know it.
const SERVICE: &str = "splitmind-mcp-server";

/// `GET /health`, in the words of the system replaced: `redis` stands for whatever keeps the data.
pub(crate) async fn health(State(door): State<Door>) -> Response {
    let health = Health::of(&door.app).await;
    if health.status == Status::Ok {
        let body = json!({"status": "healthy", "service": SERVICE, "redis": "connected"});
        return Json(body).into_response();
    }
    let error = health.journal.error.unwrap_or_else(|| "the server is shutting down".to_owned());
    let body = json!({"status": "unhealthy", "service": SERVICE, "error": error});
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}
