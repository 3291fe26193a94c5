//! MCP on standard input and output, carried to a server over HTTP.
//!
//! Lines are passed on as they are. The bridge looks only at what HTTP needs to know: the method, the id, the protocol
//! version, the name of what is called. It keeps no state but what it takes to begin anew with a server that was
//! restarted: how the client introduced itself.
//!
//! What it promises: every request gets an answer, also when the server is gone; requests do not wait for each other; a
//! tool call that is repeated because a connection broke carries the same id, so that it takes effect at most once; it
//! ends within two seconds after its standard input does.

mod message;
mod session;
mod streams;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use switchboard_tools::Variables;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use crate::Failure;
use crate::background::Launch;
use crate::http::{HttpError, refusal};
use message::{Envelope, error_line, one_line};
use session::Session;
use streams::{Input, Output};

/// How long what is under way may take to end once there is nothing more to read.
const LAST_ANSWERS: Duration = Duration::from_millis(1_500);

/// How long saying goodbye to the server may take.
const GOODBYE: Duration = Duration::from_millis(200);

/// How many requests are under way at once; more are refused.
const MAX_PENDING: usize = 256;

/// How often a request is sent again after a connection broke.
const REPETITIONS: usize = 3;

/// The header in which the bridge says which of all bridges it is.
const BRIDGE: HeaderName = HeaderName::from_static("x-switchboard-bridge");

/// The header in which the bridge tells a variable of its process, as `NAME=value`.
const VARIABLE: HeaderName = HeaderName::from_static("x-switchboard-variable");

/// Where the server is.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// On the data directory; started if there is none.
    Here(Launch),
    /// At an address.
    Elsewhere {
        /// Its base URL.
        url: String,
        /// What to send as bearer.
        key: Option<String>,
    },
}

/// Carries messages until standard input ends, and `variables` with each of them.
pub(crate) async fn run(upstream: Upstream, view: &str, variables: &Variables) -> Result<(), Failure> {
    let mut input = Input::start();
    let session = Session::connect(upstream, view).await?;
    let bridge = Bridge {
        inner: Arc::new(Inner {
            session,
            identity: identity(variables),
            output: Output::start(),
            pending: Mutex::default(),
            tasks: TaskTracker::new(),
        }),
    };
    let ended = input.ended();
    let carried = async {
        while let Some(line) = input.next().await {
            bridge.take(line).await;
        }
        bridge.inner.tasks.close();
        bridge.inner.tasks.wait().await;
    };
    tokio::select! {
        () = carried => {}
        () = async { ended.cancelled().await; tokio::time::sleep(LAST_ANSWERS).await } => {}
    }
    let _ = tokio::time::timeout(GOODBYE, bridge.inner.session.leave()).await;
    bridge.inner.output.flush().await;
    Ok(())
}

#[derive(Debug, Clone)]
struct Bridge {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    session: Session,
    /// By what the server tells this bridge from others, also where there is no session, and what it tells of its process.
    identity: Vec<(HeaderName, HeaderValue)>,
    output: Output,
    /// Requests that have no answer yet, by their id as it is written.
    pending: Mutex<HashMap<String, Pending>>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Pending {
    task: AbortHandle,
    /// The request belongs to no session: closing its connection is what withdraws it.
    is_stateless: bool,
}

/// Why a request got no answer from the server.
enum Unanswered {
    /// It was not sent.
    NotSent(String),
    /// It is not known what became of it.
    Lost(String),
    /// The server does not know the session: it was restarted.
    SessionLost(String),
    /// The server said no, in words that are not MCP's.
    Refused(Failure),
}

impl From<HttpError> for Unanswered {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Connect { .. } => Self::NotSent(error.to_string()),
            HttpError::Lost { .. } => Self::Lost(error.to_string()),
        }
    }
}

impl Bridge {
    /// Takes a line from the client. Returns at once for a request, and once it is delivered for anything else, so that
    /// what follows a notification does not overtake it.
    async fn take(&self, line: String) {
        let message = match Envelope::read(&line) {
            Ok(message) => message,
            Err(error) => {
                return self.say(error_line("null", -32700, &format!("Parse error: {error}"))).await;
            }
        };
        if let (Some(id), true) = (&message.id, message.is_request()) {
            return self.begin(id.clone(), message, line).await;
        }
        let withdrawn = message.cancelled_request().and_then(|id| self.pending().remove(id));
        if !withdrawn.as_ref().is_some_and(|request| request.is_stateless) {
            // There is nobody to tell that a notification was not delivered.
            let _ = self.deliver(&message, &line).await;
        }
        if let Some(request) = withdrawn {
            // Nobody wants its answer any more, and for lack of one it must not be sent again.
            request.task.abort();
        }
        if message.method.as_deref() == Some("notifications/initialized") {
            self.inner.session.introduced(&line);
            self.listen();
        }
    }

    async fn begin(&self, id: String, message: Envelope, line: String) {
        if self.pending().len() >= MAX_PENDING {
            let text = format!(
                "{MAX_PENDING} calls are under way, the most this bridge carries: wait for one to end"
            );
            return self.say(error_line(&id, -32000, &text)).await;
        }
        let introduces = message.method.as_deref() == Some("initialize");
        let is_stateless = message.protocol_version().is_some();
        let bridge = self.clone();
        let answered = id.clone();
        let task = self.inner.tasks.spawn(async move {
            if let Err(why) = bridge.deliver(&message, &line).await {
                bridge.say(error_line(&answered, -32000, &why)).await;
            }
            bridge.pending().remove(&answered);
        });
        if introduces {
            // Nothing can follow before the session has begun.
            let _ = task.await;
        } else if !task.is_finished() {
            self.pending().insert(id, Pending { task: task.abort_handle(), is_stateless });
        }
    }

    /// Sends a message and passes on what is answered. The error is for the client to read.
    async fn deliver(&self, message: &Envelope, line: &str) -> Result<(), String> {
        let key = message.is_call().then(switchboard_access::new_token);
        let mut repetitions = 0;
        loop {
            let connection = self.inner.session.connection();
            let unanswered = match self.attempt(&connection, message, line, key.as_deref()).await {
                Ok(()) => return Ok(()),
                Err(unanswered) => unanswered,
            };
            let why = match unanswered {
                Unanswered::Refused(failure) => {
                    let hint = failure.what_to_do().map(|hint| format!(" ({hint})")).unwrap_or_default();
                    return Err(format!("{failure}{hint}"));
                }
                Unanswered::SessionLost(id) => {
                    self.inner.session.begin_anew(&id).await.map_err(|error| error.to_string())?;
                    self.listen();
                    "the server does not keep the session".to_owned()
                }
                // What nobody waits for is lost with the server: the next request brings another one.
                Unanswered::NotSent(why) | Unanswered::Lost(why) if !message.is_request() => return Err(why),
                Unanswered::NotSent(why) | Unanswered::Lost(why) => {
                    self.inner.session.reconnect(&connection).await.map_err(|failure| {
                        format!("the server is gone ({why}), and none came back: {failure}")
                    })?;
                    why
                }
            };
            repetitions += 1;
            if repetitions > REPETITIONS {
                return Err(format!(
                    "the server did not answer, and the call was repeated {REPETITIONS} times: {why}"
                ));
            }
        }
    }

    async fn attempt(
        &self,
        connection: &session::Connection,
        message: &Envelope,
        line: &str,
        key: Option<&str>,
    ) -> Result<(), Unanswered> {
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        ];
        headers.extend(message.headers());
        let in_session = message.protocol_version().is_none();
        if in_session {
            headers.extend(connection.headers());
        }
        headers.extend(self.inner.identity.iter().cloned());
        if let Some(key) = key.and_then(|key| HeaderValue::from_str(key).ok()) {
            headers.push((HeaderName::from_static("idempotency-key"), key));
        }
        let body = Bytes::copy_from_slice(line.as_bytes());
        let response = connection.http.send(Method::POST, &connection.path, &headers, body).await?;
        let session = connection.session_id().filter(|_| in_session);
        if response.status() == StatusCode::NOT_FOUND
            && let Some(id) = session
        {
            return Err(Unanswered::SessionLost(id));
        }
        self.pass_on(connection, message, line, response).await
    }

    async fn pass_on(
        &self,
        connection: &session::Connection,
        message: &Envelope,
        line: &str,
        response: Response<Incoming>,
    ) -> Result<(), Unanswered> {
        let status = response.status();
        let session = response.headers().get(session::SESSION_ID).cloned();
        let introduces = message.method.as_deref() == Some("initialize");
        if is_event_stream(&response) {
            let mut events = std::pin::pin!(connection.http.events(response));
            while let Some(event) = events.next().await {
                let event = event?;
                let answers = message.is_answered_by(&event.data);
                if answers && introduces {
                    self.inner.session.began(line, session.clone(), &event.data);
                }
                self.say(one_line(&event.data)).await;
                if answers {
                    return Ok(());
                }
            }
            if message.is_request() {
                return Err(Unanswered::Lost("its answer ended early".to_owned()));
            }
            return Ok(());
        }
        let body = connection.http.read(response).await?;
        let text = String::from_utf8_lossy(&body);
        if status.is_success() || (message.is_request() && message.is_answered_by(&text)) {
            if introduces && status.is_success() {
                self.inner.session.began(line, session, &text);
            }
            if !text.trim().is_empty() {
                self.say(one_line(&text)).await;
            }
            return Ok(());
        }
        let answer = serde_json::from_str(&text).unwrap_or_else(|_| text.as_ref().into());
        Err(Unanswered::Refused(refusal(status, &answer)))
    }

    /// Passes on what the server says of its own accord, as long as the session lasts.
    fn listen(&self) {
        let bridge = self.clone();
        // Not among the tasks that are waited for: it ends with the process.
        tokio::spawn(async move {
            let connection = bridge.inner.session.connection();
            let Some(id) = connection.session_id() else { return };
            let accept = (ACCEPT, HeaderValue::from_static("text/event-stream"));
            while bridge.inner.session.connection().session_id().as_ref() == Some(&id) {
                let connection = bridge.inner.session.connection();
                let headers: Vec<_> = std::iter::once(accept.clone()).chain(connection.headers()).collect();
                match connection.http.send(Method::GET, &connection.path, &headers, Bytes::new()).await {
                    Ok(response) if response.status().is_success() => {
                        let mut events = std::pin::pin!(connection.http.events(response));
                        while let Some(Ok(event)) = events.next().await {
                            bridge.say(one_line(&event.data)).await;
                        }
                    }
                    // It offers no such stream, or does not know the session any more: the next request finds out.
                    Ok(_) => return,
                    // It is gone: whoever has something to ask brings it back.
                    Err(_) => {}
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
    }

    async fn say(&self, line: String) {
        self.inner.output.write(line).await;
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        // Every critical section leaves the map whole.
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that no other bridge has, and `variables`.
fn identity(variables: &Variables) -> Vec<(HeaderName, HeaderValue)> {
    let name = HeaderValue::try_from(switchboard_access::new_token()).ok().map(|name| (BRIDGE, name));
    let variables = variables.iter().filter_map(|(name, value)| {
        // Of what a header cannot hold no agent's id is made.
        let variable = HeaderValue::try_from(format!("{name}={value}").into_bytes()).ok()?;
        Some((VARIABLE, variable))
    });
    name.into_iter().chain(variables).collect()
}

fn is_event_stream(response: &Response<Incoming>) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.starts_with("text/event-stream"))
}
