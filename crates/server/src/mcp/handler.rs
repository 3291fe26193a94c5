//! MCP's requests, as the library hands them over, turned into calls of tools.

use std::sync::Arc;

use http::request::Parts;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    ListResourceTemplatesResult, ListToolsResult, PaginatedRequestParams, ProgressToken,
    ReadResourceRequestMethod, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter, SubscriptionsListenRequestMethod,
    Tool, UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use switchboard_access::Caller;
use switchboard_exchange::CommandId;
use switchboard_tools::{Context, Origin, Output, Progress, Session, Variables};

use super::endpoint::Shown;
use super::progress;
use super::topics::{Subscriptions, Topics};
use crate::calls::{CallFailure, Calls};

/// The name under which a client gives a call an id in its `_meta`.
const COMMAND_ID: &str = "switchboard/commandId";

/// The HTTP header in which a client that calls for several agents names one.
const AGENT_ID: &str = "x-agent-id";

/// The HTTP header in which the stdio bridge says which of all bridges it is.
const BRIDGE: &str = "x-switchboard-bridge";

/// The HTTP header in which the stdio bridge tells a variable of its process, as `NAME=value`.
const VARIABLE: &str = "x-switchboard-variable";

/// The HTTP header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// Says of an HTTP request that its client reads one JSON answer and no stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unstreamed;

/// Answers one client of an endpoint: for as long as it is connected, or for one request. Cheap to clone; clones serve the
/// same client.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    shown: Arc<Shown>,
    calls: Arc<Calls>,
    /// Who calls where there is no HTTP request to tell.
    local: Caller,
    /// The session of a client that is served over a connection of its own.
    session: Option<Session>,
    /// What the client subscribed to.
    subscriptions: Arc<Subscriptions>,
}

impl Handler {
    pub(crate) fn new(shown: Arc<Shown>, calls: Arc<Calls>, local: Caller) -> Self {
        Self { shown, calls, local, session: None, subscriptions: Arc::default() }
    }

    /// For a client that has a connection of its own, which is its session.
    pub(crate) fn over(self, session: Session) -> Self {
        Self { session: Some(session), ..self }
    }

    /// What the client says of itself beside the call.
    fn origin(&self, caller: &Caller, context: &mut RequestContext<RoleServer>) -> Origin {
        let mut origin = Origin { session: self.session.clone(), ..Origin::default() };
        if let Some(parts) = context.extensions.get::<Parts>() {
            let header = |name| parts.headers.get(name)?.to_str().ok();
            origin.agent = header(AGENT_ID).map(Arc::from);
            if let Some(bridge) = header(BRIDGE) {
                origin.session = Some(Session::stdio(bridge));
                // Only a bridge on this machine speaks for the environment it runs in, and it proves that it is one by the
                // token of the data directory.
                if caller.may_administer().is_ok() {
                    origin.variables = variables(parts);
                }
            } else if origin.session.is_none() {
                origin.session = header(SESSION_ID).map(Session::new);
            }
        }
        origin.meta = std::mem::take(&mut context.meta.0.0);
        origin.meta.shift_remove("progressToken");
        origin
    }

    /// For one request of another client.
    pub(crate) fn for_request(&self) -> Self {
        Self { subscriptions: Arc::new(Subscriptions::of_one_request()), ..self.clone() }
    }

    /// For the session of another client.
    pub(crate) fn for_session(&self) -> Self {
        Self { subscriptions: Arc::default(), ..self.clone() }
    }

    /// The topics that are shown, if the caller may use them.
    fn topics(&self, parts: Option<&Parts>) -> Result<Option<&Topics>, ErrorData> {
        let Some(topics) = &self.shown.topics else { return Ok(None) };
        let allowed = self.caller(parts)?.may_use_shared(switchboard_tools::BUS);
        allowed.map_err(|denied| refuse(&CallFailure::Denied(denied)))?;
        Ok(Some(topics))
    }

    /// Who calls. A request over HTTP without a caller did not come through the guard.
    fn caller(&self, parts: Option<&Parts>) -> Result<Caller, ErrorData> {
        let Some(parts) = parts else { return Ok(self.local.clone()) };
        parts
            .extensions
            .get::<Caller>()
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("nobody checked who calls", None))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.shown.info.clone()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shown.tools.iter().find(|(_, tool)| tool.name == name).map(|(_, tool)| tool.clone())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "the list of tools has one page: leave `cursor` out",
                None,
            ));
        }
        let caller = self.caller(context.extensions.get())?;
        let mine = self.shown.tools.iter().filter(|(set, _)| caller.may_use_toolset(set).is_ok());
        Ok(ListToolsResult::with_all_items(mine.map(|(_, tool)| tool.clone()).collect()))
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        // The library nests this future in others, moves the whole several times and keeps it while the call waits.
        Box::pin(self.answer(request, context))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let topics = self.topics(context.extensions.get()).unwrap_or_default();
        Ok(ListResourceTemplatesResult::with_all_items(
            topics.map(|_| Topics::template()).into_iter().collect(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let topics = self.topics(context.extensions.get())?;
        let topics = topics.ok_or_else(ErrorData::method_not_found::<ReadResourceRequestMethod>)?;
        topics.read(&request.uri).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let topics = self.topics(context.extensions.get())?;
        let topics = topics.ok_or_else(ErrorData::method_not_found::<SubscribeRequestMethod>)?;
        self.subscriptions.begin(topics, request.uri, context.peer).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.shown.topics.is_none() {
            return Err(ErrorData::method_not_found::<UnsubscribeRequestMethod>());
        }
        self.subscriptions.end(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let topics = self.shown.topics.as_ref()?;
        Some(self.subscriptions.accept(topics, requested))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let topics = self.topics(subscription.request_context().extensions.get())?;
        let topics = topics.ok_or_else(ErrorData::method_not_found::<SubscriptionsListenRequestMethod>)?;
        self.subscriptions.listen(topics, &subscription).await
    }
}

impl Handler {
    async fn answer(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let follower = follower(&context, parts).map(|token| (context.peer.clone(), token));
        let mut call = Context {
            caller: self.caller(parts)?,
            command_id: command_id(&context, parts)?,
            cancelled: context.ct.child_token(),
            progress: Progress::none(),
            origin: Origin::default(),
        };
        call.origin = self.origin(&call.caller, &mut context);
        // The rest of the request need not be kept while the call waits.
        drop(context);
        let arguments = request.arguments.unwrap_or_default();
        let run = |progress| {
            call.progress = progress;
            self.calls.call(&self.shown.view, &request.name, arguments, call)
        };
        let result = match follower {
            None => run(Progress::none()).await,
            Some((peer, token)) => Box::pin(progress::followed(&peer, &token, run)).await,
        };
        result.map(|output| render(output).into()).map_err(|failure| refuse(&failure))
    }
}

/// What a bridge tells of its environment. What makes no sense is passed over.
fn variables(parts: &Parts) -> Variables {
    let mut variables = Variables::default();
    for told in parts.headers.get_all(VARIABLE) {
        let told = std::str::from_utf8(told.as_bytes()).ok();
        if let Some((name, value)) = told.and_then(|told| told.split_once('=')) {
            variables.set(name, value);
        }
    }
    variables
}

/// The id the client gave the call, in its metadata or as HTTP header.
fn command_id(
    context: &RequestContext<RoleServer>,
    parts: Option<&Parts>,
) -> Result<Option<CommandId>, ErrorData> {
    let in_meta = match context.meta.get(COMMAND_ID) {
        None => None,
        Some(serde_json::Value::String(id)) => Some(id.as_str()),
        Some(_) => return Err(bad_command_id(&"it is not a text")),
    };
    let header = || parts?.headers.get("idempotency-key").map(http::HeaderValue::to_str);
    let id = match in_meta {
        Some(id) => Some(id),
        None => header().transpose().map_err(|error| bad_command_id(&error))?,
    };
    id.map(CommandId::new).transpose().map_err(|error| bad_command_id(&error))
}

fn bad_command_id(why: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::invalid_params(
        format!("bad command id (`_meta[\"{COMMAND_ID}\"]` or header Idempotency-Key): {why}"),
        None,
    )
}

/// The token under which the client follows the call, if it can read more than the answer.
fn follower(context: &RequestContext<RoleServer>, parts: Option<&Parts>) -> Option<ProgressToken> {
    if parts.is_some_and(|parts| parts.extensions.get::<Unstreamed>().is_some()) {
        return None;
    }
    context.meta.get_progress_token()
}

fn render(output: Output) -> CallToolResult {
    let content = vec![ContentBlock::text(output.text)];
    let mut result =
        if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = output.structured;
    result
}

fn refuse(failure: &CallFailure) -> ErrorData {
    let code = match failure {
        CallFailure::UnknownTool { .. } => ErrorCode::INVALID_PARAMS,
        CallFailure::Denied(_) => ErrorCode(-32003),
        CallFailure::Busy { .. } | CallFailure::Stopping => ErrorCode(-32000),
        CallFailure::Panicked { .. } => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, failure.to_string(), None)
}
