//! The options: what there is, what each is set to, and where that comes from.
//!
//! [`Config`] is the one list of options. Their names in the file, in the environment and on the command line, the help
//! texts and the page `docs/configuration.md` are all made from it. An option is taken from the first of these that sets
//! it: a flag, a `SWITCHBOARD_…` variable, a variable of a replaced system, the file, the default.

mod layers;
mod spec;
mod values;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use layers::{Inputs, Resolved, Source, config_file, environment};
pub(crate) use spec::{Flags, GlobalFlags, Kind, OptionSpec, ServerFlags, specs};
pub(crate) use values::{ByteSize, Duration, HttpUrl, JournalUrl, Listen, LogFilter, LogFormat, ZoneName};

/// Every option. The doc comment of a field is its description; `x-` attributes are read by [`spec`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Addresses to listen on, each with the tools that its `/mcp` shows: `ADDRESS[=VIEW]`, where VIEW is `all`, a toolset,
    /// or several joined by `+`. Port 0 takes a free port. Repeatable. An address that is not loopback is refused until a
    /// key exists.
    #[schemars(extend("x-value" = "ADDRESS[=VIEW]"))]
    pub(crate) listen: Vec<Listen>,
    /// Also listen where the systems replaced are documented to be: 127.0.0.1:5000 for A2AMCP, 127.0.0.1:8000 for
    /// PromptYoSelf, 127.0.0.1:4102 for agtOS's REST.
    pub(crate) compat: bool,
    /// The directory that holds everything: the journal, the keys, and how to reach the running server.
    /// One server uses it at a time. Default: `$XDG_DATA_HOME/switchboard`.
    #[schemars(extend("x-value" = "DIR", "x-everywhere" = true))]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where the journal is kept: `sqlite:` in the data directory, or `memory:`, which forgets everything at the end.
    #[schemars(extend("x-value" = "URL"))]
    pub(crate) journal: JournalUrl,
    /// Ask for a key on loopback addresses, too.
    pub(crate) require_key: bool,
    /// Further names by which clients may address the server (`Host` header), such as `box.lan`. Repeatable. Names of the
    /// own machine and the addresses listened on are always allowed.
    #[schemars(extend("x-value" = "NAME", "x-flag" = "allowed-host"))]
    pub(crate) allowed_hosts: Vec<String>,
    /// Further origins whose web pages may call the server (`Origin` header), such as `https://box.lan`. Repeatable.
    #[schemars(extend("x-value" = "ORIGIN", "x-flag" = "allowed-origin"))]
    pub(crate) allowed_origins: Vec<String>,
    /// The largest size of the journal. Reaching it is like a full disk: nothing is written, reading goes on.
    #[schemars(extend("x-value" = "SIZE"))]
    pub(crate) journal_max_bytes: Option<ByteSize>,
    /// Serve the fixtures of MCP's conformance suite at `/mcp/conformance`. For tests of the server only.
    pub(crate) test_toolset: bool,
    /// Bounds; reaching one is an error that names it.
    pub(crate) limits: Limits,
    /// What is logged. Logs go to stderr.
    pub(crate) log: Log,
    /// The catalogue `a2amcp`, and the agents of every project.
    pub(crate) a2amcp: A2amcp,
    /// The bus: how much of what is published is kept. An event is forgotten once any of these says so.
    pub(crate) bus: Bus,
    /// Schedules: on whose clock their times are, and how what is due is delivered.
    pub(crate) schedule: Schedule,
    /// The catalogue `promptyoself`, and the Letta server whose agents are prompted.
    pub(crate) promptyoself: PromptYoSelf,
    /// How commands such as `call` reach a server that does not run on the data directory.
    pub(crate) client: Client,
}

/// Bounds; reaching one is an error that names it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// The largest request body.
    #[schemars(extend("x-value" = "SIZE"))]
    pub(crate) body_bytes: ByteSize,
    /// How deeply JSON may be nested.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) json_depth: u32,
    /// How many calls one JSON-RPC batch may hold.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) batch: u32,
    /// How many header lines a request may have.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) headers: u32,
    /// How long all header lines of a request may be together.
    #[schemars(extend("x-value" = "SIZE"))]
    pub(crate) header_bytes: ByteSize,
    /// How long a connection may take to send the headers of its next request, so also how long it may be idle.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) header_timeout: Duration,
    /// How long a request may take to send its body.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) body_timeout: Duration,
    /// How many connections one listener holds open.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) connections: u32,
    /// How many requests one listener answers at a time.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) requests: u32,
    /// How many tool calls run or wait at a time.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) calls: u32,
    /// How many MCP sessions are open at a time.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) sessions: u32,
    /// How long an MCP session lives without a request.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) session_idle: Duration,
    /// How many clients of MCP's deprecated SSE transport are connected at a time.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) sse_sessions: u32,
    /// How many clients follow `/api/events`, and how many resources MCP clients subscribe to, at a time.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) watchers: u32,
    /// How long stopping may take. Calls that wait are answered within it.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) stop_timeout: Duration,
}

/// What is logged.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or directives such as `warn,switchboard_exchange=debug`.
    #[schemars(extend("x-value" = "LEVEL", "x-everywhere" = true, "x-also" = "FASTMCP_LOG_LEVEL LOG_LEVEL PROMPTYOSELF_LOG_LEVEL"))]
    pub(crate) level: LogFilter,
    /// `text`, or `json` for one object per line.
    #[schemars(extend("x-value" = "FORMAT", "x-everywhere" = true))]
    pub(crate) format: LogFormat,
}

/// The catalogue `a2amcp`, and the agents of every project.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct A2amcp {
    /// An agent that was not heard of for so long is taken off the list, and its locks are free.
    #[schemars(extend("x-value" = "DURATION", "x-also" = "HEARTBEAT_TIMEOUT"))]
    pub(crate) heartbeat_timeout: Duration,
    /// Refuse heartbeats and message checks that come more often than documented, instead of serving them.
    #[schemars(extend("x-also" = "A2AMCP_STRICT_RATE_LIMITS"))]
    pub(crate) strict_rate_limits: bool,
    /// Put events such as `agent_joined` into the agents' message queues.
    #[schemars(extend("x-also" = "A2AMCP_EVENTS"))]
    pub(crate) events: bool,
    /// How long a lock that became free waits for the next in line to claim it before it passes on.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) claim_window: Duration,
    /// Where `mark_task_completed` writes `SESSION.status`.
    #[schemars(extend("x-value" = "DIR", "x-also" = "SPLITMIND_STATUS_DIR"))]
    pub(crate) status_dir: PathBuf,
}

/// The bus: how much of what is published is kept. An event is forgotten once any of these says so.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Bus {
    /// How long published events are kept. They are forgotten a little later: with the next thousand or so entries of the
    /// journal, or when nothing was published for ten minutes.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) retention: Duration,
    /// How much of what was published last is kept, in bytes of topics and data.
    #[schemars(extend("x-value" = "SIZE"))]
    pub(crate) max_bytes: ByteSize,
    /// How many of the events published last are kept.
    #[schemars(extend("x-value" = "COUNT"))]
    pub(crate) max_events: u32,
}

/// Schedules: on whose clock their times are, and how what is due is delivered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Schedule {
    /// The time zone of schedules that name none, such as `Europe/Berlin`. PromptYoSelf's are always in UTC. Default: this
    /// machine's.
    #[schemars(extend("x-value" = "ZONE"))]
    pub(crate) time_zone: Option<ZoneName>,
    /// How long it is kept what became of due times.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) history: Duration,
    /// Hosts that webhooks may call although their address is not public: a name or an address, alone or with a port, such as
    /// `localhost:3000`. Repeatable.
    #[schemars(extend("x-value" = "HOST[:PORT]", "x-flag" = "webhook-host"))]
    pub(crate) webhook_hosts: Vec<String>,
    /// Webhooks may call any address, also of this machine and of private networks. Whoever may make a schedule can then reach
    /// what only this machine reaches.
    pub(crate) webhook_private: bool,
    /// How long one attempt to call a webhook may take.
    #[schemars(extend("x-value" = "DURATION"))]
    pub(crate) webhook_timeout: Duration,
}

/// The catalogue `promptyoself`, and the Letta server whose agents are prompted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PromptYoSelf {
    /// The Letta server: `http` or `https`, with or without a path.
    #[schemars(extend("x-value" = "URL", "x-also" = "LETTA_BASE_URL"))]
    pub(crate) letta_base_url: HttpUrl,
    /// The key to send to Letta. Better set as variable than as flag, which others on the machine can read.
    #[schemars(extend("x-value" = "KEY", "x-also" = "LETTA_API_KEY", "x-secret" = true))]
    pub(crate) letta_api_key: Option<String>,
    /// The password of the Letta server, which is sent if there is no key. Better set as variable than as flag.
    #[schemars(extend("x-value" = "PASSWORD", "x-also" = "LETTA_SERVER_PASSWORD", "x-secret" = true))]
    pub(crate) letta_server_password: Option<String>,
    /// The project of the Letta server that requests are made for.
    #[schemars(extend("x-value" = "NAME", "x-also" = "LETTA_PROJECT"))]
    pub(crate) letta_project: Option<String>,
    /// The agent of prompts that name none.
    #[schemars(extend("x-value" = "AGENT", "x-also" = "PROMPTYOSELF_DEFAULT_AGENT_ID"))]
    pub(crate) default_agent_id: Option<String>,
    /// The same, if `default_agent_id` is not set.
    #[schemars(extend("x-value" = "AGENT", "x-also" = "LETTA_AGENT_ID"))]
    pub(crate) letta_agent_id: Option<String>,
    /// The same, if neither is set.
    #[schemars(extend("x-value" = "AGENT", "x-also" = "LETTA_DEFAULT_AGENT_ID"))]
    pub(crate) letta_default_agent_id: Option<String>,
    /// Take the only agent that Letta has for prompts that name none, if nothing else tells.
    #[schemars(extend("x-also" = "PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK", "x-also-yes" = "1 true yes"))]
    pub(crate) single_agent_fallback: bool,
    /// Deliver prompts when they are due. Otherwise they wait for `promptyoself_execute`.
    #[schemars(extend("x-also" = "PROMPTYOSELF_EXECUTOR_AUTOSTART", "x-also-yes" = "1 true yes"))]
    pub(crate) executor_autostart: bool,
    /// How long after a failed delivery a prompt is tried again; at least a second.
    #[schemars(extend(
        "x-value" = "DURATION",
        "x-also" = "PROMPTYOSELF_EXECUTOR_INTERVAL",
        "x-also-or-none" = true
    ))]
    pub(crate) executor_interval: Option<Duration>,
}

/// How commands such as `call` reach a server that does not run on the data directory.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Client {
    /// The server, such as `http://box.lan:4100`.
    #[schemars(extend("x-value" = "URL", "x-everywhere" = true, "x-flag" = "url", "x-env" = "SWITCHBOARD_URL"))]
    pub(crate) url: Option<String>,
    /// The key to send. Better set as variable than as flag, which others on the machine can read.
    #[schemars(extend(
        "x-value" = "KEY",
        "x-everywhere" = true,
        "x-flag" = "key",
        "x-env" = "SWITCHBOARD_KEY",
        "x-secret" = true
    ))]
    pub(crate) key: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![Listen::loopback(4100, "all"), Listen::loopback(8080, "all")],
            compat: false,
            data_dir: None,
            journal: JournalUrl::Sqlite,
            require_key: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            journal_max_bytes: None,
            test_toolset: false,
            limits: Limits::default(),
            log: Log::default(),
            a2amcp: A2amcp::default(),
            bus: Bus::default(),
            schedule: Schedule::default(),
            promptyoself: PromptYoSelf::default(),
            client: Client::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: ByteSize::mebibytes(8),
            json_depth: 64,
            batch: 100,
            headers: 64,
            header_bytes: ByteSize::kibibytes(32),
            header_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(60),
            connections: 16_384,
            requests: 4_096,
            calls: 4_096,
            sessions: 4_096,
            session_idle: Duration::from_secs(3_600),
            sse_sessions: 1_024,
            watchers: 1_024,
            stop_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for A2amcp {
    fn default() -> Self {
        Self {
            heartbeat_timeout: Duration::from_secs(120),
            strict_rate_limits: false,
            events: false,
            claim_window: Duration::from_secs(60),
            status_dir: "/tmp/splitmind-status".into(),
        }
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            time_zone: None,
            history: Duration::from_secs(7 * 86_400),
            webhook_hosts: Vec::new(),
            webhook_private: false,
            webhook_timeout: Duration::from_secs(15),
        }
    }
}

impl Default for PromptYoSelf {
    fn default() -> Self {
        Self {
            letta_base_url: HttpUrl::default(),
            letta_api_key: None,
            letta_server_password: None,
            letta_project: None,
            default_agent_id: None,
            letta_agent_id: None,
            letta_default_agent_id: None,
            single_agent_fallback: false,
            executor_autostart: true,
            executor_interval: Some(Duration::from_secs(60)),
        }
    }
}

impl Default for Bus {
    fn default() -> Self {
        Self {
            retention: Duration::from_secs(24 * 3_600),
            max_bytes: ByteSize::mebibytes(64),
            max_events: 1_000_000,
        }
    }
}

impl Config {
    /// The data directory: the option's, or the usual place.
    pub(crate) fn data_dir(&self) -> Result<PathBuf, crate::Failure> {
        self.data_dir.clone().or_else(default_data_dir).ok_or_else(|| {
            crate::Failure::config("there is no place for data: neither HOME nor XDG_DATA_HOME is set")
                .hint("say where with `--data-dir DIR`, or set SWITCHBOARD_DATA_DIR")
        })
    }
}

fn default_data_dir() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "switchboard").map(|dirs| dirs.data_dir().to_owned())
}

/// Where the file is, unless `--config` or `SWITCHBOARD_CONFIG` says otherwise.
fn default_config_file() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "switchboard").map(|dirs| dirs.config_dir().join("config.toml"))
}

/// `~/…` for a path below the home directory.
pub(crate) fn friendly(path: &Path) -> String {
    let home = directories::BaseDirs::new();
    let below = home.as_ref().and_then(|dirs| path.strip_prefix(dirs.home_dir()).ok());
    below.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()))
}
