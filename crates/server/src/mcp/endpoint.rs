//! What one view looks like to MCP clients.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

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

use super::handler::Handler;
use crate::app::Options;
use crate::calls::Calls;
use crate::limits::Limits;

/// How many spellings of views are kept. A client may ask for any combination of toolsets.
const ENDPOINTS: usize = 256;

/// All endpoints.
pub(crate) struct Mcp {
    registry: Arc<Registry>,
    calls: Arc<Calls>,
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
    endpoints: RwLock<HashMap<Box<str>, Arc<Endpoint>>>,
}

/// One view, over every transport.
pub(crate) struct Endpoint {
    /// What answers; none for the fixtures of the conformance suite, which are served over HTTP only.
    pub(crate) shown: Arc<Shown>,
    http: Box<dyn Services>,
}

/// What one view shows.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) view: View,
    pub(crate) info: ServerConfig,
    /// Each with its toolset.
    pub(crate) tools: Vec<(&'static str, Tool)>,
}

type RmcpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The two ways in which a handler is served over HTTP.
trait Services: Send + Sync {
    /// For clients that keep a session.
    fn session(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, RmcpResponse>;
    /// For all others.
    fn plain(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, RmcpResponse>;
}

struct Pair<H> {
    session: StreamableHttpService<H, LocalSessionManager>,
    plain: StreamableHttpService<H, NeverSessionManager>,
}

impl<H: ServerHandler> Services for Pair<H> {
    fn session(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, RmcpResponse> {
        Box::pin(self.session.handle(request))
    }

    fn plain(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, RmcpResponse> {
        Box::pin(self.plain.handle(request))
    }
}

impl Mcp {
    pub(crate) fn new(
        registry: Arc<Registry>,
        calls: Arc<Calls>,
        options: &Options,
        close: CancellationToken,
    ) -> Self {
        Self {
            registry,
            calls,
            sessions: Arc::new(session_manager(&options.limits)),
            config: config(&options.limits, close),
            endpoints: RwLock::default(),
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
        self.sessions.sessions.read().await.len()
    }

    fn known(&self, name: &str) -> Option<Arc<Endpoint>> {
        self.endpoints.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn make(&self, view: View) -> Arc<Endpoint> {
        let shown = Arc::new(Shown {
            info: info(&self.registry, &view),
            tools: self
                .registry
                .tools(&view)
                .map(|tool| (tool.toolset, describe(&tool.definition)))
                .collect(),
            view,
        });
        let handler = Handler::new(shown.clone(), self.calls.clone(), Caller::local());
        Arc::new(Endpoint { shown, http: self.serve(move || handler.clone()) })
    }

    fn serve<H: ServerHandler>(
        &self,
        make: impl Fn() -> H + Clone + Send + Sync + 'static,
    ) -> Box<dyn Services> {
        let plain = make.clone();
        Box::new(Pair {
            session: StreamableHttpService::new(
                move || Ok(make()),
                self.sessions.clone(),
                self.config.clone().with_legacy_session_mode(true),
            ),
            plain: StreamableHttpService::new(
                move || Ok(plain()),
                Arc::default(),
                self.config.clone().with_legacy_session_mode(false),
            ),
        })
    }
}

impl Endpoint {
    /// Answers a request of a client that keeps a session, or begins one.
    pub(crate) async fn with_session(&self, request: Request<Full<Bytes>>) -> RmcpResponse {
        self.http.session(request).await
    }

    /// Answers a request on its own.
    pub(crate) async fn alone(&self, request: Request<Full<Bytes>>) -> RmcpResponse {
        self.http.plain(request).await
    }
}

/// One spelling for all that mean the same view.
fn canonical(name: &str) -> String {
    let mut names: Vec<&str> = name.split('+').collect();
    names.sort_unstable();
    names.dedup();
    names.join("+")
}

fn session_manager(limits: &Limits) -> LocalSessionManager {
    let mut sessions = LocalSessionManager::default();
    let mut config = SessionConfig::default();
    config.keep_alive = Some(limits.session_idle);
    // Empty events that only carry an id: clients of protocol 2025-03-26 take them for broken messages.
    config.sse_retry = None;
    // A session goes through all answers it keeps with each request; a client that lost one repeats its call.
    config.completed_cache_ttl = std::time::Duration::ZERO;
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
    let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().build();
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
