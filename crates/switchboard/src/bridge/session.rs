//! The server at the other end: where it is, and how the client is known to it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::body::Bytes;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::message::Envelope;
use super::{Upstream, is_event_stream};
use crate::background::{self, Launch};
use crate::http::{Http, HttpError};
use crate::running::Running;
use crate::{Exit, Failure};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// How long a server that was there may be away before one is started in its place.
const RESTART: Duration = Duration::from_secs(5);

/// How long a server elsewhere may be away.
const PATIENCE: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The server at the other end.
#[derive(Debug)]
pub(super) struct Session {
    upstream: Upstream,
    now: RwLock<Arc<Connection>>,
    /// How the client introduced itself, for a server that does not know it any more.
    introduction: std::sync::Mutex<Introduction>,
    /// Held while a server is looked for or a session begun anew, so that one does it for all.
    renewing: Mutex<Option<Missing>>,
}

/// A search for a server that led nowhere.
#[derive(Debug)]
struct Missing {
    until: Instant,
    failure: Failure,
}

#[derive(Debug, Default, Clone)]
struct Introduction {
    initialize: Option<String>,
    initialized: Option<String>,
}

/// A server, and the session with it, as of now.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) http: Http,
    pub(super) path: String,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Connection {
    /// What a message that belongs to the session carries.
    pub(super) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> + use<> {
        let session = self.session.clone().map(|id| (SESSION_ID, id));
        let version = self.version.clone().map(|version| (PROTOCOL_VERSION, version));
        session.into_iter().chain(version)
    }

    pub(super) fn session_id(&self) -> Option<String> {
        self.session.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned)
    }
}

impl Session {
    pub(super) async fn connect(upstream: Upstream, view: &str) -> Result<Self, Failure> {
        let http = match &upstream {
            Upstream::Here(launch) => launch.find_or_start().await?.http()?,
            Upstream::Elsewhere { url, key } => Http::new(url, key.as_deref())?,
        };
        let connection = Connection { http, path: format!("/mcp/{view}"), session: None, version: None };
        Ok(Self {
            upstream,
            now: RwLock::new(Arc::new(connection)),
            introduction: std::sync::Mutex::default(),
            renewing: Mutex::default(),
        })
    }

    pub(super) fn connection(&self) -> Arc<Connection> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, connection: Connection) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(connection);
    }

    fn introduction(&self) -> std::sync::MutexGuard<'_, Introduction> {
        self.introduction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server answered `initialize`, which was `line`, with `answer`.
    pub(super) fn began(&self, line: &str, session: Option<HeaderValue>, answer: &str) {
        self.introduction().initialize = Some(line.to_owned());
        let now = self.connection();
        self.set(Connection { session, version: version_in(answer), ..Connection::clone(&now) });
    }

    /// The client said that it is ready, which was `line`.
    pub(super) fn introduced(&self, line: &str) {
        self.introduction().initialized = Some(line.to_owned());
    }

    /// Finds the server again, after `lost` led nowhere.
    pub(super) async fn reconnect(&self, lost: &Arc<Connection>) -> Result<(), Failure> {
        let asked = Instant::now();
        let mut missing = self.renewing.lock().await;
        if let Some(Missing { failure, .. }) = missing.as_ref().filter(|missing| missing.until > asked) {
            // It was looked for in vain while this request waited for its turn.
            return Err(failure.clone());
        }
        let now = self.connection();
        if now.http.base() != lost.http.base() {
            return Ok(());
        }
        let http = match self.find_again().await {
            Ok(http) => http,
            Err(failure) => {
                *missing = Some(Missing { until: Instant::now(), failure: failure.clone() });
                return Err(failure);
            }
        };
        // The session is kept: a connection may break without the server having lost anything.
        self.set(Connection { http, ..Connection::clone(&now) });
        Ok(())
    }

    async fn find_again(&self) -> Result<Http, Failure> {
        match &self.upstream {
            Upstream::Here(launch) => find_again(launch).await?.http(),
            Upstream::Elsewhere { url, key } => {
                let http = Http::new(url, key.as_deref())?;
                wait_for(&http).await?;
                Ok(http)
            }
        }
    }

    /// Introduces the client to a server that does not know the session `lost` any more.
    pub(super) async fn begin_anew(&self, lost: &str) -> Result<(), Failure> {
        let _renewing = self.renewing.lock().await;
        let now = self.connection();
        if now.session_id().as_deref() != Some(lost) {
            return Ok(());
        }
        let Introduction { initialize, initialized } = self.introduction().clone();
        let Some(initialize) = initialize else {
            return Err(Failure::failed("the server does not know this session: connect again"));
        };
        let mut fresh = Connection { session: None, version: None, ..Connection::clone(&now) };
        let (session, answer) = ask(&fresh, &initialize).await?;
        fresh.session = session;
        fresh.version = version_in(&answer);
        if let Some(initialized) = initialized {
            ask(&fresh, &initialized).await?;
        }
        self.set(fresh);
        Ok(())
    }

    /// Tells the server that the client is gone.
    pub(super) async fn leave(&self) {
        let now = self.connection();
        if now.session.is_some() {
            let headers: Vec<_> = now.headers().collect();
            // It finds out by itself, after a while.
            let _ = now.http.send(Method::DELETE, &now.path, &headers, Bytes::new()).await;
        }
    }
}

/// The server on the data directory: the one that comes back, or a new one.
async fn find_again(launch: &Launch) -> Result<Running, Failure> {
    let deadline = Instant::now() + RESTART;
    while Instant::now() < deadline {
        if let Some(running) = background::find(launch.data_dir()).await? {
            return Ok(running);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    launch.find_or_start().await
}

async fn wait_for(http: &Http) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match http.send(Method::GET, "/health", &[], Bytes::new()).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= deadline => {
                return Err(Failure::new(Exit::NoServer, error.to_string()));
            }
            Err(_) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// Sends one line and reads its answer to the end, for nobody but the bridge.
async fn ask(connection: &Connection, line: &str) -> Result<(Option<HeaderValue>, String), HttpError> {
    let mut headers = vec![
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
    ];
    headers.extend(connection.headers());
    let body = Bytes::copy_from_slice(line.as_bytes());
    let response = connection.http.send(Method::POST, &connection.path, &headers, body).await?;
    let session = response.headers().get(SESSION_ID).cloned();
    if !is_event_stream(&response) {
        let body = connection.http.read(response).await?;
        return Ok((session, String::from_utf8_lossy(&body).into_owned()));
    }
    let request = Envelope::read(line).unwrap_or_default();
    let mut events = std::pin::pin!(connection.http.events(response));
    while let Some(event) = events.next().await {
        let event = event?;
        if request.is_answered_by(&event.data) {
            return Ok((session, event.data));
        }
    }
    Ok((session, String::new()))
}

/// The protocol version that the server chose.
fn version_in(answer: &str) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    struct Answer {
        result: Chosen,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Chosen {
        protocol_version: String,
    }
    let answer: Answer = serde_json::from_str(answer).ok()?;
    HeaderValue::from_str(&answer.result.protocol_version).ok()
}
