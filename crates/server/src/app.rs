//! What all doors share.

use std::fmt;
use std::sync::Arc;

use switchboard_access::Access;
use switchboard_bus::Bus;
use switchboard_coordination::Coordination;
use switchboard_journal::Journal;
use switchboard_schedule::{Schedules, Zone};
use switchboard_tools::agtos::Tasks;
use switchboard_tools::schedule::Scheduling;
use switchboard_tools::{Registry, View, ViewError};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::guard::Allowed;
use crate::limits::Limits;
use crate::mcp::{Mcp, SseSessions, Topics};
use crate::metrics::Metrics;

/// What may be said about the doors beside where they are.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names under which this server may be reached beside localhost and its own addresses, with or without a port.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use this server beside those of allowed hosts, such as `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// The token by which the owner of the data directory is known.
    pub owner_token: Option<Arc<str>>,
    /// Whether `/mcp/conformance` serves the fixtures of MCP's conformance suite. For tests only.
    pub test_toolset: bool,
    /// The bounds.
    pub limits: Limits,
}

/// Everything the doors need of the rest of the program.
pub struct Parts {
    /// The tools.
    pub registry: Arc<Registry>,
    /// Who may come in.
    pub access: Access,
    /// Where the streams are that `/api/events` follows.
    pub journal: Arc<dyn Journal>,
    /// The projects.
    pub coordination: Coordination,
    /// Published events.
    pub bus: Bus,
    /// Wake-up calls.
    pub schedules: Schedules,
    /// On whose clock the times of schedules are read, unless they name another zone.
    pub zone: Zone,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// What all doors share. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct App {
    pub(crate) core: Arc<Core>,
}

/// What an [`App`] is made of.
pub(crate) struct Core {
    pub(crate) registry: Arc<Registry>,
    pub(crate) access: Access,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) coordination: Coordination,
    pub(crate) bus: Bus,
    pub(crate) scheduling: Scheduling,
    pub(crate) tasks: Tasks,
    pub(crate) watchers: Arc<Semaphore>,
    pub(crate) options: Options,
    pub(crate) allowed: Arc<Allowed>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) mcp: Mcp,
    pub(crate) sse: SseSessions,
    /// No new calls; those that wait are answered.
    pub(crate) stop: CancellationToken,
    /// What still streams ends.
    pub(crate) close: CancellationToken,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("options", &self.core.options).finish_non_exhaustive()
    }
}

impl App {
    /// Puts the doors together. Nothing listens yet; see [`serve`](crate::serve) and [`serve_stdio`](crate::serve_stdio).
    pub fn new(parts: Parts, options: Options) -> Self {
        let (stop, close) = (CancellationToken::new(), CancellationToken::new());
        let metrics = Arc::new(Metrics::new(&parts.coordination, &parts.bus, &parts.schedules));
        let registry = Arc::downgrade(&parts.registry);
        let scheduling = Scheduling::new(parts.schedules.clone(), parts.zone.clone(), registry.clone());
        let tasks = Tasks::new(parts.schedules, parts.zone, registry);
        let calls =
            Arc::new(Calls::new(parts.registry.clone(), metrics.clone(), options.limits.calls, stop.clone()));
        let watchers = Arc::new(Semaphore::new(options.limits.watchers));
        let topics = Topics::new(
            parts.bus.clone(),
            watchers.clone(),
            options.limits.watchers,
            &metrics.gauges().watchers,
        );
        let mcp = Mcp::new(parts.registry.clone(), calls.clone(), topics, &options, close.clone());
        let allowed = Arc::new(Allowed::new(&options.allowed_hosts, &options.allowed_origins));
        Self {
            core: Arc::new(Core {
                registry: parts.registry,
                access: parts.access,
                journal: parts.journal,
                coordination: parts.coordination,
                bus: parts.bus,
                scheduling,
                tasks,
                watchers,
                options,
                allowed,
                metrics,
                calls,
                mcp,
                sse: SseSessions::default(),
                stop,
                close,
            }),
        }
    }

    /// The view called `name`, for a listener: `all`, a toolset, or several joined by `+`.
    pub fn view(&self, name: &str) -> Result<View, ViewError> {
        self.core.registry.view(name)
    }
}
