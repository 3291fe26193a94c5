//! `GET /health` and `GET /metrics`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use switchboard_journal::{Journal, Seq, StreamId};

use crate::app::Core;
use crate::metrics;
use crate::problem::Problem;
use crate::serve::Door;

/// Whether this server can do its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok`; `degraded` if it can only read; `stopping`; `down` if it can do nothing.
    pub(crate) status: Status,
    /// The program's version.
    pub(crate) version: &'static str,
    /// The journal.
    pub(crate) journal: JournalHealth,
}

/// In a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// All is well.
    Ok,
    /// The journal can be read and takes no writes.
    Degraded,
    /// The server is shutting down.
    Stopping,
    /// The journal cannot be read.
    Down,
}

/// What the journal does at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct JournalHealth {
    /// Whether it can be read.
    pub(crate) reads: bool,
    /// Whether it takes writes.
    pub(crate) writes: bool,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Health {
    pub(crate) async fn of(core: &Core) -> Self {
        let journal = JournalHealth::of(&*core.journal).await;
        let status = match &journal {
            _ if core.stop.is_cancelled() => Status::Stopping,
            JournalHealth { reads: true, writes: true, .. } => Status::Ok,
            JournalHealth { reads: true, writes: false, .. } => Status::Degraded,
            JournalHealth { reads: false, .. } => Status::Down,
        };
        Self { status, version: env!("CARGO_PKG_VERSION"), journal }
    }

    pub(crate) fn http_status(&self) -> StatusCode {
        match self.status {
            Status::Ok => StatusCode::OK,
            Status::Degraded | Status::Stopping | Status::Down => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl JournalHealth {
    /// Asks the journal for the end of a stream that does not exist, and to trim what is not there: both go all the way
    /// and change nothing.
    async fn of(journal: &dyn Journal) -> Self {
        let Ok(stream) = StreamId::new("health") else {
            return Self { reads: false, writes: false, error: None };
        };
        let read = journal.head(&stream).await.map_err(|error| error.to_string());
        let written = journal.trim(&stream, Seq::START).await.map_err(|error| error.to_string());
        Self { reads: read.is_ok(), writes: written.is_ok(), error: read.err().or(written.err()) }
    }
}

/// `GET /health`: 200 if this server can do its work, else 503; the body says what is wrong.
pub(crate) async fn health(State(door): State<Door>) -> Response {
    let health = Health::of(&door.app).await;
    (health.http_status(), Json(health)).into_response()
}

/// `GET /metrics`: for Prometheus.
pub(crate) async fn metrics(State(door): State<Door>) -> Response {
    let core = &door.app;
    let gauges = core.metrics.gauges();
    gauges.sessions.set(i64::try_from(core.mcp.sessions().await).unwrap_or(i64::MAX));
    gauges.calls_running.set(i64::try_from(core.calls.running()).unwrap_or(i64::MAX));
    match core.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the metrics cannot be written")
                .into_response()
        }
    }
}
