//! JSON-RPC errors that are answered before a request reaches the library, or instead of what it says.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::limits::BodyError;

pub(super) const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const BUSY: i32 = -32_000;

/// A JSON-RPC error that answers no particular request.
pub(super) fn error(status: StatusCode, code: i32, message: &str) -> Response {
    (status, Json(error_body(code, message, &Value::Null))).into_response()
}

pub(super) fn error_body(code: i32, message: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

pub(super) fn bad_body(error: &BodyError) -> Response {
    let status = match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken => StatusCode::BAD_REQUEST,
    };
    self::error(status, INVALID_REQUEST, &error.to_string())
}

pub(super) fn busy(message: &str) -> Response {
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, BUSY, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Whether `body` is JSON that the library did not understand, or no JSON at all, as a JSON-RPC error.
pub(super) fn unreadable(body: &[u8]) -> (i32, String, Value) {
    match serde_json::from_slice::<Value>(body) {
        Err(error) => (PARSE_ERROR, format!("Parse error: {error}"), Value::Null),
        Ok(request) => {
            let id = request.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
            let message = "Invalid Request: this is not a JSON-RPC 2.0 message of MCP; it has \"jsonrpc\": \"2.0\", \
                           \"method\", \"params\" (an object) and, unless it is a notification, \"id\"";
            (INVALID_REQUEST, message.to_owned(), id.unwrap_or(Value::Null))
        }
    }
}

/// Makes what the library answers as plain text a JSON-RPC error.
pub(super) async fn worded(response: Response, request: &Bytes, had_json: bool) -> Response {
    let status = response.status();
    let is_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if status.as_u16() < 400 || !is_text {
        return response;
    }
    if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        if !had_json {
            let message = "Invalid Request: send the header Content-Type: application/json";
            return error(status, INVALID_REQUEST, message);
        }
        let (code, message, id) = unreadable(request);
        return (StatusCode::BAD_REQUEST, Json(error_body(code, &message, &id))).into_response();
    }
    let (mut head, body) = response.into_parts();
    let text = axum::body::to_bytes(body, 64 << 10).await.unwrap_or_default();
    let body = error_body(INVALID_REQUEST, &String::from_utf8_lossy(&text), &Value::Null);
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(head, Body::from(body.to_string()))
}
