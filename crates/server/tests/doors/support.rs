//! A server with a few tools of its own on a free port, and a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Map, Value, json};
use switchboard_access::Access;
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, ServiceOptions, Settings};
use switchboard_exchange::{Exchange, SystemClock};
use switchboard_journal::Journal;
use switchboard_schedule::{NodeId, Schedules, Targets, Zone};
use switchboard_server::{App, Listener, Options, Parts, ServeError, serve};
use switchboard_targets::BusTarget;
use switchboard_tools::{
    Annotations, CallError, Context, Definition, Handler, Output, Registry, Tool, Toolset,
};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::journal::FullJournal;

/// How long a test waits for what should come at once.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) const OWNER: &str = "the-owner's-token";

/// What the tools tell the test, and the test tells the tools.
#[derive(Clone)]
pub(crate) struct Signals {
    /// One permit for every call of `wait` that began.
    pub(crate) began: Arc<Semaphore>,
    /// One permit lets one call of `wait` go on.
    pub(crate) go: Arc<Semaphore>,
    /// One permit for every call of `wait` that saw its cancellation.
    pub(crate) cancelled: Arc<Semaphore>,
}

impl Default for Signals {
    fn default() -> Self {
        let none = || Arc::new(Semaphore::new(0));
        Self { began: none(), go: none(), cancelled: none() }
    }
}

/// Takes the next permit, or fails the test.
pub(crate) async fn soon(signal: &Semaphore) {
    tokio::time::timeout(SOON, signal.acquire())
        .await
        .expect("the signal should have come")
        .expect("signals are never closed")
        .forget();
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) a2amcp: SocketAddr,
    pub(crate) access: Access,
    pub(crate) coordination: Coordination,
    pub(crate) bus: Bus,
    pub(crate) journal: Arc<FullJournal>,
    pub(crate) signals: Signals,
    pub(crate) stop: CancellationToken,
    pub(crate) client: Client,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        Self::listening(options, |listener| listener).await
    }

    pub(crate) async fn listening(mut options: Options, listen: impl Fn(Listener) -> Listener) -> Self {
        options.owner_token = Some(OWNER.into());
        let signals = Signals::default();
        let journal = Arc::new(FullJournal::new());
        let exchange = Exchange::new(
            journal.clone() as Arc<dyn Journal>,
            Arc::new(SystemClock),
            (),
            switchboard_exchange::Options::default(),
        );
        let access = Access::open(exchange).await.unwrap();
        let projects = Exchange::new(
            journal.clone() as Arc<dyn Journal>,
            Arc::new(SystemClock),
            Settings::default(),
            switchboard_exchange::Options::default(),
        );
        let coordination = Coordination::new(projects, ServiceOptions { status_dir: None });
        let bus = Bus::new(journal.clone(), Arc::new(SystemClock), Retention::default());
        let schedules = schedules(&journal, &bus);
        schedules.start().await.unwrap();
        let parts = Parts {
            registry: Arc::new(registry(&signals)),
            access: access.clone(),
            coordination: coordination.clone(),
            bus: bus.clone(),
            schedules: schedules.clone(),
            zone: Zone::UTC,
            journal: journal.clone(),
        };
        let app = App::new(parts, options);
        let listener = listen(Listener::bind(([127, 0, 0, 1], 0).into()).unwrap());
        let compat = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap().showing(app.view("a2amcp").unwrap());
        let (address, a2amcp) = (listener.address(), compat.address());
        let stop = CancellationToken::new();
        let serving = tokio::spawn({
            let (app, stop) = (app.clone(), stop.clone());
            async move { serve(&app, vec![listener, compat], stop).await }
        });
        let client = Client::builder().no_proxy().build().unwrap();
        Self { address, a2amcp, access, coordination, bus, journal, signals, stop, client, serving }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    /// Posts JSON as a bare client does: without `Accept`.
    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, path).json(body)
    }

    /// Posts JSON as MCP's own clients do.
    pub(crate) fn mcp(&self, path: &str, body: &Value) -> RequestBuilder {
        self.post(path, body).header("accept", "application/json, text/event-stream")
    }

    pub(crate) async fn stopped(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.serving).await.expect("it stops").unwrap().unwrap();
    }
}

/// Schedules that publish.
fn schedules(journal: &Arc<FullJournal>, bus: &Bus) -> Schedules {
    let publishes: Arc<dyn switchboard_schedule::Target> = Arc::new(BusTarget::new(bus.clone()));
    let targets = Targets::new([publishes]);
    let settings = switchboard_schedule::Settings::of(&targets, &[]);
    let journal: Arc<dyn Journal> = journal.clone();
    let options = switchboard_exchange::Options::default();
    let exchange = Exchange::new(journal, Arc::new(SystemClock), settings, options);
    Schedules::new(exchange, targets, NodeId("test".into()))
}

pub(crate) async fn json_of(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let json =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status} is not JSON ({error}): {text}"));
    (status, json)
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

/// The messages in a text of server-sent events.
pub(crate) fn events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

fn toolset(name: &'static str, server_name: &'static str, server_version: &'static str) -> Toolset {
    Toolset {
        name,
        summary: "For tests.",
        instructions: "Test away.",
        server_name,
        server_version,
        sessions: true,
    }
}

fn tool<F, Fut>(toolset: &'static str, name: &'static str, call: F) -> Tool
where
    F: Fn(Map<String, Value>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Output, CallError>> + Send + 'static,
{
    let Value::Object(schema) = json!({"type": "object", "properties": {}}) else { unreachable!() };
    Tool {
        definition: Definition {
            name,
            title: name,
            description: "A tool for tests.",
            input_schema: Arc::new(schema),
            output_schema: None,
            annotations: Annotations::READS,
        },
        toolset,
        handler: Handler::new(call),
    }
}

fn registry(signals: &Signals) -> Registry {
    let waiting = signals.clone();
    Registry::new(
        [
            toolset("a2amcp", "splitmind-coordination", "1.0.0"),
            toolset("play", "play", "9"),
            toolset("bus", "bus", "1"),
        ],
        [
            tool("a2amcp", "list_active_agents", |_, _| async {
                Ok(Output::json_text(&json!({"agents": []})))
            }),
            tool("play", "echo", |arguments, _| async { Ok(Output::structured(Value::Object(arguments))) }),
            tool("play", "fail", |_, _| async { Ok(Output::text("no").error()) }),
            tool("play", "panic", |_, _| async { panic!("as it should") }),
            tool("play", "whoami", |_, context| async move {
                Ok(Output::structured(json!({
                    "caller": &*context.caller.name,
                    "command": context.command_id.map(|id| id.to_string()),
                    "followed": context.progress.is_followed(),
                })))
            }),
            tool("play", "count", |_, context| async move {
                for done in 1..=3_u32 {
                    context.progress.report(f64::from(done), Some(3.0), &format!("step {done}"));
                    tokio::task::yield_now().await;
                }
                Ok(Output::text("counted"))
            }),
            tool("play", "wait", move |_, context| {
                let signals = waiting.clone();
                async move {
                    signals.began.add_permits(1);
                    tokio::select! {
                        go = signals.go.acquire() => { go.unwrap().forget(); Ok(Output::text("done")) }
                        () = context.cancelled.cancelled() => {
                            signals.cancelled.add_permits(1);
                            Ok(Output::text("a handle to wait on with"))
                        }
                    }
                }
            }),
        ],
    )
    .unwrap()
}

/// A stream of server-sent events, event by event.
pub(crate) struct Events {
    response: Response,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream", "{:?}", response.status());
        Self { response, text: String::new() }
    }

    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .unwrap_or_default()
                        .trim()
                        .to_owned()
                };
                return Some(Event { kind: field("event:"), id: field("id:"), data: field("data:") });
            }
            let chunk = tokio::time::timeout(SOON, self.response.chunk()).await;
            self.text += std::str::from_utf8(&chunk.expect("an event should have come").unwrap()?).unwrap();
        }
    }
}
