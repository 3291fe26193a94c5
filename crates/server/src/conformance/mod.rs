//! The fixtures of MCP's official conformance suite: tools, prompts and resources that do nothing but what its checks ask
//! for. Served at `/mcp/conformance` if [`Options::test_toolset`](crate::Options::test_toolset) says so; what each must
//! contain stands in `tests/conformance/README.md`.
//!
//! They are written in the library's own terms, since they show what the protocol can do beside calling tools: requests to
//! the client, logging, subscriptions, calls in several rounds.

#![expect(deprecated, reason = "the suite's earlier revision asks for what the later one leaves out")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, DiscoverResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchboard_tools::Toolset;
use tokio::sync::broadcast;

mod asking;
mod prompts;
mod resources;
mod rounds;
mod tools;

/// The name of the toolset.
pub(crate) const NAME: &str = "conformance";

/// The toolset of the fixtures, for a registry of a server that serves them. It has no tools in the registry: its
/// endpoint answers by itself.
pub const CONFORMANCE: Toolset = Toolset {
    name: NAME,
    summary: "the fixtures of MCP's conformance suite; for tests only",
    instructions: "",
    server_name: "switchboard-conformance",
    server_version: env!("CARGO_PKG_VERSION"),
    sessions: true,
};

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// No sound at all.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// What listeners are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    Tools,
    Prompts,
}

/// Answers the suite.
#[derive(Clone)]
pub(crate) struct Fixtures {
    changes: broadcast::Sender<Changed>,
    /// The states that were handed out; one that is not here was tampered with.
    states: Arc<Mutex<HashSet<String>>>,
    sessions: Arc<LocalSessionManager>,
}

impl Fixtures {
    /// Fixtures for clients that keep their sessions in `sessions`.
    pub(crate) fn new(sessions: Arc<LocalSessionManager>) -> Self {
        Self { changes: broadcast::channel(16).0, states: Arc::default(), sessions }
    }
}

type Context = RequestContext<RoleServer>;

/// Makes one of the library's types from the JSON that clients see.
fn from_json<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json)
        .map_err(|error| ErrorData::internal_error(format!("a fixture is wrong: {error}"), None))
}

/// Makes a result that is the last one of its request.
fn complete<T: DeserializeOwned>(mut json: Value) -> Result<T, ErrorData> {
    json["resultType"] = "complete".into();
    from_json(json)
}

fn is_stateless(context: &Context) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(CONFORMANCE.server_name, CONFORMANCE.server_version))
    }

    async fn discover(&self, _context: Context) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        info.capabilities.logging = None;
        info.capabilities.resources = Some(from_json(serde_json::json!({}))?);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().ok()?.tools.into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list()
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name.starts_with("test_input_required_") {
            return self.call_in_rounds(&call, &context);
        }
        if is_stateless(&context) {
            if let Some(answer) = self.call_stateless(&call, &context)? {
                return Ok(answer);
            }
        } else if let Some(answer) = self.call_in_session(&call, &context).await? {
            return Ok(answer);
        }
        tools::call(&call, &context).await
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list()
    }

    async fn get_prompt(
        &self,
        prompt: GetPromptRequestParams,
        _context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&prompt)
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list()
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates()
    }

    async fn read_resource(
        &self,
        resource: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&resource.uri)
    }

    async fn subscribe(&self, _resource: SubscribeRequestParams, _context: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _resource: UnsubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(&self, _level: SetLevelRequestParams, context: Context) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let changed = tokio::select! {
                changed = changes.recv() => changed,
                () = subscription.cancelled() => return Ok(()),
            };
            // What a listener did not ask for the sink keeps back.
            let _ = match changed {
                Ok(Changed::Tools) => subscription.sink().notify_tool_list_changed().await,
                Ok(Changed::Prompts) => subscription.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }
}
