//! MCP over Streamable HTTP.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use futures::StreamExt as _;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer;
use super::{Endpoint, Lifecycle, Unstreamed};
use crate::limits::{is_nested_deeper, read_body};
use crate::problem::Problem;
use crate::serve::Door;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

const EVENTS: &[&str] = &["text/event-stream"];
const JSON: &[&str] = &["application/json", "application/*", "*/*"];

/// The newest protocol version with batches.
const BATCHES_UNTIL: &str = "2025-03-26";

/// The first protocol version whose clients know how to resume the stream of a call.
const RESUMED_FROM: &str = "2025-11-25";

/// `/mcp` with the view of the listener, `/mcp/{toolset}` with any.
pub(crate) fn routes() -> Router<Door> {
    Router::new()
        .route("/mcp", any(default_view))
        .route("/mcp/", any(default_view))
        .route("/mcp/{toolset}", any(named_view))
        .route("/mcp/{toolset}/", any(named_view))
}

/// MCP with the view of the listener.
pub(crate) async fn default_view(State(door): State<Door>, request: Request) -> Response {
    let endpoint = door.endpoint.clone();
    answer(&door, &endpoint, request).await
}

async fn named_view(State(door): State<Door>, Path(toolset): Path<String>, request: Request) -> Response {
    match door.app.mcp.endpoint(&toolset) {
        Ok(endpoint) => answer(&door, &endpoint, request).await,
        Err(error) => Problem::not_found(error.to_string())
            .hint("the address is /mcp/<toolset>, /mcp/<toolset>+<toolset> or /mcp")
            .into_response(),
    }
}

async fn answer(door: &Door, endpoint: &Arc<Endpoint>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return if endpoint.shown.sessions { session_only(door, endpoint, head).await } else { only_post() };
    }
    let limits = &door.app.options.limits;
    let body = match read_body(&head.headers, body, limits).await {
        Ok(body) => body,
        Err(error) => return answer::bad_body(&error),
    };
    if is_nested_deeper(&body, limits.json_depth) {
        let message = format!(
            "Parse error: the JSON is nested more deeply than {} levels (limits.json_depth)",
            limits.json_depth
        );
        return answer::error(StatusCode::BAD_REQUEST, answer::PARSE_ERROR, &message);
    }
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return batch(door, endpoint, &head, &body).await;
    }
    single(door, endpoint, head, body).await
}

/// Answers what only sessions have: following one, and ending it.
async fn session_only(door: &Door, endpoint: &Endpoint, head: Parts) -> Response {
    let Some(lifecycle) = lifecycle_of(door, &head.headers).await else { return only_post() };
    let request = http::Request::from_parts(head, Full::default());
    let response = endpoint.handle(lifecycle, request).await.map(Body::new);
    answer::worded(response, &Bytes::new(), true).await
}

/// The answer to a method that only sessions have, where there is none.
fn only_post() -> Response {
    let message =
        "Method Not Allowed: send MCP requests by POST; GET and DELETE are for clients with a session";
    let mut response = answer::error(StatusCode::METHOD_NOT_ALLOWED, answer::INVALID_REQUEST, message);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

async fn single(door: &Door, endpoint: &Endpoint, mut head: Parts, body: Bytes) -> Response {
    let sessions = endpoint.shown.sessions;
    let reads_events = accepts(&head.headers, EVENTS);
    let reads_only_events = reads_events && !accepts(&head.headers, JSON);
    let streams = if sessions { reads_events } else { reads_only_events };
    let has_json = is_json(&head.headers);
    let lifecycle = match lifecycle_of(door, &head.headers).await {
        _ if !sessions => Lifecycle::Alone,
        Some(lifecycle) => lifecycle,
        None if streams => begun(&head.headers, &body),
        None => Lifecycle::Alone,
    };
    if lifecycle != Lifecycle::Alone && !head.headers.contains_key(SESSION_ID) {
        let limit = door.app.options.limits.sessions;
        if door.app.mcp.sessions().await >= limit {
            return answer::busy(&format!(
                "{limit} MCP sessions are open, the most this server keeps (limits.sessions): try again later, or \
                 call without a session"
            ));
        }
    }
    // The library insists on both, and chooses by itself; what the client cannot read is not sent.
    head.headers.insert(header::ACCEPT, BOTH);
    if !streams {
        head.extensions.insert(Unstreamed);
    }
    let request = http::Request::from_parts(head, Full::new(body.clone()));
    let response = endpoint.handle(lifecycle, request).await;
    let response = answer::worded(response.map(Body::new), &body, has_json).await;
    match is_stream(&response) {
        true if !streams => unstreamed(response).await,
        false if reads_only_events && response.status() == StatusCode::OK => streamed(response),
        _ => response,
    }
}

/// The answer in a stream that the client cannot read, as JSON.
async fn unstreamed(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    head.headers.remove(header::CONTENT_TYPE);
    match only_answer(body, true).await {
        Some(answer) => (head, Json(answer)).into_response(),
        None => Response::from_parts(head, Body::empty()),
    }
}

/// The answer in JSON that the client cannot read, as the one event of a stream.
fn streamed(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    let before = Body::from("event: message\ndata: ").into_data_stream();
    let after = Body::from("\n\n").into_data_stream();
    let event = before.chain(body.into_data_stream()).chain(after);
    Response::from_parts(head, Body::from_stream(event))
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Answers the messages of a JSON-RPC batch one beside the other; the answers are in the order of the requests.
async fn batch(door: &Door, endpoint: &Endpoint, head: &Parts, body: &Bytes) -> Response {
    let version = head.headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    if version.is_some_and(|version| version > BATCHES_UNTIL) {
        let message =
            "Invalid Request: batches ended with protocol version 2025-03-26; send one message per request";
        return answer::error(StatusCode::BAD_REQUEST, answer::INVALID_REQUEST, message);
    }
    let messages: Vec<&RawValue> = match serde_json::from_slice(body) {
        Ok(messages) => messages,
        Err(error) => {
            let message = format!("Parse error: {error}");
            return answer::error(StatusCode::BAD_REQUEST, answer::PARSE_ERROR, &message);
        }
    };
    let limit = door.app.options.limits.batch;
    if messages.is_empty() || messages.len() > limit {
        let message = format!(
            "Invalid Request: a batch holds 1 to {limit} messages (limits.batch), this one {}",
            messages.len()
        );
        return answer::error(StatusCode::BAD_REQUEST, answer::INVALID_REQUEST, &message);
    }
    let answers = messages.iter().enumerate().map(|(index, message)| {
        let mut head = head.clone();
        head.headers.remove(header::CONTENT_LENGTH);
        // The stream of a message inside a batch has nowhere to go.
        head.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        distinguish(&mut head.headers, index);
        let message = Bytes::copy_from_slice(message.get().as_bytes());
        async move { only_answer(single(door, endpoint, head, message).await.into_body(), false).await }
    });
    let answers: Vec<Box<RawValue>> =
        futures::future::join_all(answers).await.into_iter().flatten().collect();
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    Json(answers).into_response()
}

/// Gives each call of a batch an id of its own if the client named the batch.
fn distinguish(headers: &mut HeaderMap, index: usize) {
    let named = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok());
    let own = named.and_then(|key| HeaderValue::try_from(format!("{key}#{index}")).ok());
    if let Some(own) = own {
        headers.insert(IDEMPOTENCY_KEY, own);
    }
}

/// The one JSON-RPC message that a body carries, as JSON or as the last event of a stream; none if it has none.
async fn only_answer(body: Body, is_stream: bool) -> Option<Box<RawValue>> {
    let body = axum::body::to_bytes(body, usize::MAX).await.ok()?;
    let text = std::str::from_utf8(&body).ok()?;
    let json = if is_stream {
        text.lines()
            .rev()
            .filter_map(|line| line.strip_prefix("data:"))
            .find(|data| !data.trim().is_empty())?
    } else {
        text
    };
    serde_json::from_str(json).ok()
}

/// Whether a client says that it reads one of `kinds`.
fn accepts(headers: &HeaderMap, kinds: &[&str]) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|accept| accept.to_str().ok())
        .flat_map(|accept| accept.split(','))
        .filter_map(|accepted| accepted.split(';').next())
        .any(|accepted| kinds.iter().any(|kind| accepted.trim().eq_ignore_ascii_case(kind)))
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    })
}

/// How the session that the request names is served; none if it names none.
async fn lifecycle_of(door: &Door, headers: &HeaderMap) -> Option<Lifecycle> {
    let id = headers.get(SESSION_ID)?;
    Some(door.app.mcp.lifecycle_of(id.to_str().unwrap_or_default()).await)
}

/// How a request that names no session is served: an `initialize`, which only protocols with sessions have, begins one.
fn begun(headers: &HeaderMap, body: &[u8]) -> Lifecycle {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize {
        protocol_version: String,
    }
    // Clients of the protocol without sessions repeat the method in a header, so their bodies need no second reading.
    if headers.get("mcp-method").is_some_and(|method| method != "initialize") {
        return Lifecycle::Alone;
    }
    match serde_json::from_slice::<Message<'_>>(body) {
        Ok(Message { method: Some(method), params }) if method == "initialize" => {
            let wish = params.and_then(|params| serde_json::from_str::<Initialize>(params.get()).ok());
            let resumes = wish.is_some_and(|wish| *wish.protocol_version >= *RESUMED_FROM);
            if resumes { Lifecycle::ResumingSession } else { Lifecycle::Session }
        }
        _ => Lifecycle::Alone,
    }
}
