//! MCP's deprecated HTTP+SSE transport: `GET /sse` streams what the server says, `POST /messages/` takes what the
//! client says.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures::{Stream, StreamExt as _, sink};
use http::StatusCode;
use http::request::Parts;
use rand::Rng as _;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::service::serve_server_with_ct;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_access::Caller;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::handler::Handler;
use super::{Endpoint, answer};
use crate::limits::{is_nested_deeper, read_body};
use crate::metrics::OneMore;
use crate::problem::Problem;
use crate::serve::Door;

/// How many messages wait in either direction.
const WAITING: usize = 64;

/// The clients that are connected, and the way to what serves each.
#[derive(Debug, Clone, Default)]
pub(crate) struct SseSessions(Arc<Mutex<HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>>>);

impl SseSessions {
    fn open(&self, limit: usize) -> Option<(String, mpsc::Receiver<ClientJsonRpcMessage>)> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= limit {
            return None;
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        let id = new_id();
        sessions.insert(id.clone(), sender);
        Some((id, receiver))
    }

    fn get(&self, id: &str) -> Option<mpsc::Sender<ClientJsonRpcMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn close(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// `GET /sse`, `GET /sse/{toolset}` and `POST /messages/`.
pub(crate) fn routes() -> Router<Door> {
    Router::new()
        .route("/sse", get(default_view))
        .route("/sse/", get(default_view))
        .route("/sse/{toolset}", get(named_view))
        .route("/messages", post(messages))
        .route("/messages/", post(messages))
}

async fn default_view(State(door): State<Door>) -> Response {
    let endpoint = door.endpoint.clone();
    connect(&door, &endpoint)
}

async fn named_view(State(door): State<Door>, Path(toolset): Path<String>) -> Response {
    match door.app.mcp.endpoint(&toolset) {
        Ok(endpoint) => connect(&door, &endpoint),
        Err(error) => Problem::not_found(error.to_string())
            .hint("the address is /sse/<toolset>, /sse/<toolset>+<toolset> or /sse")
            .into_response(),
    }
}

/// Takes a client off the list when its stream ends.
struct Departure {
    sessions: SseSessions,
    id: String,
    _counted: OneMore,
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.sessions.close(&self.id);
    }
}

fn connect(door: &Door, endpoint: &Endpoint) -> Response {
    let limit = door.app.options.limits.sse_sessions;
    let Some((id, incoming)) = door.app.sse.open(limit) else {
        return Problem::busy(format!(
            "{limit} clients use the SSE transport, the most this server keeps (limits.sse_sessions)"
        ))
        .hint("use the Streamable HTTP transport at /mcp, which needs no open connection")
        .into_response();
    };
    let departure = Departure {
        sessions: door.app.sse.clone(),
        id: id.clone(),
        _counted: OneMore::of(&door.app.metrics.gauges().sse_sessions),
    };
    let (outgoing, said) = mpsc::channel(WAITING);
    let ended = door.app.close.child_token();
    let handler = Handler::new(endpoint.shown.clone(), door.app.calls.clone(), Caller::local())
        .over(switchboard_tools::Session::new(id.clone()));
    let transport = (into_sink(outgoing), ReceiverStream::new(incoming));
    let serving = ended.clone();
    tokio::spawn(async move {
        match serve_server_with_ct(handler, transport, serving).await {
            Ok(session) => drop(session.waiting().await),
            Err(error) => tracing::debug!(%error, "an SSE client left before it began"),
        }
    });
    // The client is gone when its stream is dropped: what serves it stops, and it is taken off the list.
    let gone = (ended.drop_guard(), departure);
    // The trailing slash is what existing servers send, and what their proxies are configured for.
    let endpoint = Event::default().event("endpoint").data(format!("/messages/?session_id={id}"));
    let first = futures::stream::once(async move { endpoint });
    let events = first.chain(events(said)).map(move |event| {
        let _ = &gone;
        Ok::<_, Infallible>(event)
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn into_sink(
    outgoing: mpsc::Sender<ServerJsonRpcMessage>,
) -> impl futures::Sink<ServerJsonRpcMessage, Error = io::Error> + Send + Unpin + 'static {
    Box::pin(sink::unfold(outgoing, |outgoing, message| async move {
        outgoing.send(message).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(outgoing)
    }))
}

fn events(said: mpsc::Receiver<ServerJsonRpcMessage>) -> impl Stream<Item = Event> {
    ReceiverStream::new(said).filter_map(|message| async move {
        let json = serde_json::to_string(&message).ok()?;
        Some(Event::default().event("message").data(json))
    })
}

#[derive(Debug, Deserialize)]
struct Session {
    #[serde(alias = "sessionId")]
    session_id: String,
}

async fn messages(
    State(door): State<Door>,
    session: Result<Query<Session>, QueryRejection>,
    request: Request,
) -> Response {
    let Ok(Query(Session { session_id })) = session else {
        return Problem::bad_request("no_session", "the address has no session_id")
            .hint("post to the address that `GET /sse` names in its first event")
            .into_response();
    };
    let Some(session) = door.app.sse.get(&session_id) else {
        return Problem::not_found("there is no such session: its stream has ended")
            .hint("connect to /sse again")
            .into_response();
    };
    let (head, body) = request.into_parts();
    let limits = &door.app.options.limits;
    let body = match read_body(&head.headers, body, limits).await {
        Ok(body) => body,
        Err(error) => return answer::bad_body(&error),
    };
    if is_nested_deeper(&body, limits.json_depth) {
        let message = format!("Parse error: nested more deeply than {} levels", limits.json_depth);
        return answer::error(StatusCode::BAD_REQUEST, answer::PARSE_ERROR, &message);
    }
    let messages = match parse(&body, limits.batch) {
        Ok(messages) => messages,
        Err((code, message)) => return answer::error(StatusCode::BAD_REQUEST, code, &message),
    };
    for mut message in messages {
        carry(&mut message, &head);
        if session.send(message).await.is_err() {
            return Problem::not_found("the session has ended").hint("connect to /sse again").into_response();
        }
    }
    (StatusCode::ACCEPTED, "Accepted").into_response()
}

/// The message in `body`, or those of a batch.
fn parse(body: &[u8], limit: usize) -> Result<Vec<ClientJsonRpcMessage>, (i32, String)> {
    let unreadable = |body: &[u8]| {
        let (code, message, _) = answer::unreadable(body);
        (code, message)
    };
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        return serde_json::from_slice(body).map(|message| vec![message]).map_err(|_| unreadable(body));
    }
    let batch: Vec<&RawValue> = serde_json::from_slice(body).map_err(|_| unreadable(body))?;
    if batch.len() > limit {
        let message = format!("Invalid Request: a batch holds at most {limit} messages (limits.batch)");
        return Err((answer::INVALID_REQUEST, message));
    }
    batch
        .into_iter()
        .map(|message| serde_json::from_str(message.get()).map_err(|_| unreadable(message.get().as_bytes())))
        .collect()
}

/// Lets the handler see with which request, so from whom, the message came.
fn carry(message: &mut ClientJsonRpcMessage, head: &Parts) {
    match message {
        ClientJsonRpcMessage::Request(request) => {
            request.request.extensions_mut().insert(head.clone());
        }
        ClientJsonRpcMessage::Notification(notification) => {
            notification.notification.extensions_mut().insert(head.clone());
        }
        ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
    }
}

/// 128 random bits: whoever knows the id may send in the session's name.
fn new_id() -> String {
    let mut bytes = [0_u8; 16];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
