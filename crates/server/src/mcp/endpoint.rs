//! What one view looks like to MCP clients.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::ServerHandler;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig, Tool, ToolAnnotations};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use switchboard_access::Caller;
use switchboard_tools::{Annotations, Registry, View, ViewError};
use tokio_util::sync::CancellationToken;

use super::Topics;
use super::handler::Handler;
use crate::app::Options;
use crate::calls::Calls;
use crate::conformance::{self, Fixtures};
use crate::limits::Limits;

/// How many spellings of views are kept. A client may ask for any combination of toolsets.
const ENDPOINTS: usize = 256;

/// How long a client waits before it resumes a stream that broke.
const RETRY: Duration = Duration::from_secs(1);

/// All endpoints.
pub(crate) struct Mcp {
    registry: Arc<Registry>,
    calls: Arc<Calls>,
    topics: Topics,
    /// Of clients that resume a broken stream.
    resuming: Arc<LocalSessionManager>,
    /// Of clients of protocols before that.
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
    endpoints: RwLock<HashMap<Box<str>, Arc<Endpoint>>>,
    fixtures: bool,
}

/// One view, over every transport.
pub(crate) struct Endpoint {
    /// What it shows over the transports that do not use HTTP's own way.
    pub(crate) shown: Arc<Shown>,
    http: Box<dyn Services>,
}

/// What one view shows.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) view: View,
    pub(crate) info: ServerConfig,
    /// Whether clients may have a session.
    pub(crate) sessions: bool,
    /// Each with its toolset.
    pub(crate) tools: Vec<(&'static str, Tool)>,
    /// Published events as resources, if it shows the bus.
    pub(crate) topics: Option<Topics>,
}

type RmcpResponse = Response<BoxBody<Bytes, Infallible>>;

/// How a request is served over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// On its own.
    Alone,
    /// Within a session, or as the beginning of one.
    Session,
    /// The same, for a client that resumes a stream that breaks: its streams begin with an empty event whose id it
    /// resumes from. Clients of earlier protocols take such an event for a broken message.
    ResumingSession,
}

/// A handler, served in all these ways.
trait Services: Send + Sync {
    fn handle(&self, lifecycle: Lifecycle, request: Request<Full<Bytes>>) -> BoxFuture<'_, RmcpResponse>;
}

struct Served<H> {
    alone: StreamableHttpService<H, NeverSessionManager>,
    session: StreamableHttpService<H, LocalSessionManager>,
    resuming: StreamableHttpService<H, LocalSessionManager>,
}

impl<H: ServerHandler> Services for Served<H> {
    fn handle(&self, lifecycle: Lifecycle, request: Request<Full<Bytes>>) -> BoxFuture<'_, RmcpResponse> {
        match lifecycle {
            Lifecycle::Alone => Box::pin(self.alone.handle(request)),
            Lifecycle::Session => Box::pin(self.session.handle(request)),
            Lifecycle::ResumingSession => Box::pin(self.resuming.handle(request)),
        }
    }
}

impl Mcp {
    pub(crate) fn new(
        registry: Arc<Registry>,
        calls: Arc<Calls>,
        topics: Topics,
        options: &Options,
        close: CancellationToken,
    ) -> Self {
        Self {
            registry,
            calls,
            topics,
            resuming: Arc::new(session_manager(&options.limits, Some(RETRY))),
            sessions: Arc::new(session_manager(&options.limits, None)),
            config: config(&options.limits, close),
            endpoints: RwLock::default(),
            fixtures: options.test_toolset,
        }
    }

    /// The endpoint of the view called `name`.
    pub(crate) fn endpoint(&self, name: &str) -> Result<Arc<Endpoint>, ViewError> {
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        let canonical = canonical(name);
        let endpoint = match self.known(&canonical) {
            Some(known) => known,
            None => self.make(self.registry.view(&canonical)?),
        };
        let mut endpoints = self.endpoints.write().unwrap_or_else(PoisonError::into_inner);
        if endpoints.len() + 2 <= ENDPOINTS {
            endpoints.insert(canonical.into(), endpoint.clone());
            endpoints.insert(name.into(), endpoint.clone());
        }
        Ok(endpoint)
    }

    /// How many sessions are open.
    pub(crate) async fn sessions(&self) -> usize {
        self.sessions.sessions.read().await.len() + self.resuming.sessions.read().await.len()
    }

    /// How the session called `id` is served. One that has ended is served like any, which says so.
    pub(crate) async fn lifecycle_of(&self, id: &str) -> Lifecycle {
        if self.resuming.sessions.read().await.contains_key(id) {
            Lifecycle::ResumingSession
        } else {
            Lifecycle::Session
        }
    }

    fn known(&self, name: &str) -> Option<Arc<Endpoint>> {
        self.endpoints.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn make(&self, view: View) -> Arc<Endpoint> {
        let shown = Arc::new(Shown {
            info: info(&self.registry, &view),
            sessions: self.registry.single(&view).is_none_or(|toolset| toolset.sessions),
            topics: view.shows(switchboard_tools::BUS).then(|| self.topics.clone()),
            tools: self
                .registry
                .tools(&view)
                .map(|tool| (tool.toolset, describe(&tool.definition)))
                .collect(),
            view,
        });
        let http = if self.fixtures
            && shown.view.toolsets().is_some_and(|sets| *sets == [conformance::NAME.into()])
        {
            let fixtures = Fixtures::new(self.resuming.clone());
            let make = move || fixtures.clone();
            self.serve(make.clone(), make)
        } else {
            let handler = Handler::new(shown.clone(), self.calls.clone(), Caller::local());
            let for_session = handler.clone();
            self.serve(move || handler.for_request(), move || for_session.for_session())
        };
        Arc::new(Endpoint { shown, http })
    }

    fn serve<H: ServerHandler>(
        &self,
        for_request: impl Fn() -> H + Send + Sync + 'static,
        for_session: impl Fn() -> H + Clone + Send + Sync + 'static,
    ) -> Box<dyn Services> {
        let for_session = move || Ok(for_session());
        let config = self.config.clone().with_legacy_session_mode(true);
        Box::new(Served {
            alone: StreamableHttpService::new(
                move || Ok(for_request()),
                Arc::default(),
                self.config.clone().with_legacy_session_mode(false),
            ),
            session: StreamableHttpService::new(for_session.clone(), self.sessions.clone(), config.clone()),
            resuming: StreamableHttpService::new(
                for_session,
                self.resuming.clone(),
                config.with_sse_retry(Some(RETRY)),
            ),
        })
    }
}

impl Endpoint {
    /// Answers a request over HTTP.
    pub(crate) async fn handle(&self, lifecycle: Lifecycle, request: Request<Full<Bytes>>) -> RmcpResponse {
        self.http.handle(lifecycle, request).await
    }
}

/// One spelling for all that mean the same view.
fn canonical(name: &str) -> String {
    let mut names: Vec<&str> = name.split('+').collect();
    names.sort_unstable();
    names.dedup();
    names.join("+")
}

fn session_manager(limits: &Limits, retry: Option<Duration>) -> LocalSessionManager {
    let mut sessions = LocalSessionManager::default();
    let mut config = SessionConfig::default();
    config.keep_alive = Some(limits.session_idle);
    config.sse_retry = retry;
    sessions.session_config = config;
    sessions
}

fn config(limits: &Limits, close: CancellationToken) -> StreamableHttpServerConfig {
    // Host, Origin and the size of the body are checked for all doors alike before a request comes here.
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(limits.body_bytes)
        .with_json_response(true)
        .with_sse_retry(None)
        .with_cancellation_token(close)
}

fn info(registry: &Registry, view: &View) -> ServerConfig {
    // `prompts` is declared because the library answers `prompts/list`, and what is answered must be declared.
    let mut capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().build();
    if view.shows(switchboard_tools::BUS) {
        let bus = ServerCapabilities::builder().enable_resources().enable_resources_subscribe().build();
        capabilities.resources = bus.resources;
    }
    let single = registry.single(view);
    let (name, version) = single.map_or(("switchboard", env!("CARGO_PKG_VERSION")), |toolset| {
        (toolset.server_name, toolset.server_version)
    });
    let info = ServerConfig::new(capabilities).with_server_info(Implementation::new(name, version));
    match single.map(|toolset| toolset.instructions) {
        Some(instructions) if !instructions.is_empty() => info.with_instructions(instructions),
        _ => info,
    }
}

fn describe(definition: &switchboard_tools::Definition) -> Tool {
    let mut tool = Tool::new(definition.name, definition.description, definition.input_schema.clone());
    tool.title = Some(definition.title.to_owned());
    tool.output_schema.clone_from(&definition.output_schema);
    let Annotations { read_only_hint, destructive_hint, idempotent_hint, open_world_hint } =
        definition.annotations;
    tool.annotations = Some(ToolAnnotations::from_raw(
        None,
        Some(read_only_hint),
        Some(destructive_hint),
        Some(idempotent_hint),
        Some(open_world_hint),
    ));
    tool
}
