//! What a tool knows of the call beside its arguments.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_access::Caller;
use switchboard_exchange::CommandId;
use tokio_util::sync::CancellationToken;

/// What a tool knows of the call beside its arguments.
#[derive(Debug, Clone)]
pub struct Context {
    /// Who calls.
    pub caller: Caller,
    /// The client's name for this call: repeating the call with it has no second effect.
    pub command_id: Option<CommandId>,
    /// Cancelled when the client withdraws the call or is gone.
    pub cancelled: CancellationToken,
    /// Tells the client that a call that waits is still alive.
    pub progress: Progress,
    /// What came with the call that is not about the tool.
    pub origin: Origin,
}

impl Context {
    /// A call by `caller` that nobody withdraws and that nobody follows.
    pub fn new(caller: Caller) -> Self {
        Self {
            caller,
            command_id: None,
            cancelled: CancellationToken::new(),
            progress: Progress::none(),
            origin: Origin::default(),
        }
    }

    /// The same without what most tools do not ask for, so that a call that waits need not keep it.
    #[must_use]
    pub fn without_origin(self) -> Self {
        Self { origin: Origin::default(), ..self }
    }
}

/// What a client says of itself beside each call. None of it is proven: it is for convenience, never for access.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The call's metadata (MCP's `_meta`), as it was sent.
    pub meta: Map<String, Value>,
    /// For which agent a client calls that has several (the HTTP header `X-Agent-Id`).
    pub agent: Option<Arc<str>>,
    /// The session that the call is part of; none if each call stands alone.
    pub session: Option<Session>,
    /// Variables of the client's own process, for a client that has a process of its own.
    pub variables: Variables,
}

/// Variables of a client's own process, of those that name an agent. None is empty, or has white space around it.
#[derive(Debug, Clone, Default)]
pub struct Variables(Vec<(&'static str, Arc<str>)>);

impl Variables {
    /// Which variables name an agent, in the order in which they are asked.
    pub const NAMES: [&str; 3] =
        ["PROMPTYOSELF_DEFAULT_AGENT_ID", "LETTA_AGENT_ID", "LETTA_DEFAULT_AGENT_ID"];

    /// How long a value is at most, in bytes. A longer one counts as not set.
    pub const MAX_VALUE: usize = 256;

    /// Takes in that `name` is set to `value`, if that tells anything. The first value of a name counts.
    pub fn set(&mut self, name: &str, value: &str) {
        let value = value.trim();
        let Some(name) = Self::NAMES.into_iter().find(|known| *known == name) else { return };
        if !value.is_empty() && value.len() <= Self::MAX_VALUE && self.get(name).is_none() {
            self.0.push((name, value.into()));
        }
    }

    /// What `name` is set to.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(set, _)| *set == name).map(|(_, value)| &**value)
    }

    /// The variables that are set, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, &**value))
    }
}

/// A session of a client: several calls over one connection, or under one id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// What tells it from all others, also from earlier ones.
    pub id: Arc<str>,
    /// What it is called. Those over standard streams are all called `stdio`, others are called by their id.
    pub name: Arc<str>,
}

impl Session {
    /// A session that is called by its id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        Self { name: id.clone(), id }
    }

    /// A session over the standard streams of a process, of which `id` tells it from others.
    pub fn stdio(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), name: "stdio".into() }
    }
}

type Report = dyn Fn(f64, Option<f64>, &str) + Send + Sync;

/// Where a waiting tool reports how far it is. Reporting never blocks and never fails.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Report>>);

impl Progress {
    /// Nobody follows.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Reports `(done, total, message)` to `report`.
    pub fn to(report: impl Fn(f64, Option<f64>, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Whether anybody follows.
    pub fn is_followed(&self) -> bool {
        self.0.is_some()
    }

    /// Says that `done` of `total` is over. `done` must grow with each report of a call.
    pub fn report(&self, done: f64, total: Option<f64>, message: &str) {
        if let Some(report) = &self.0 {
            report(done, total, message);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.is_followed()).finish()
    }
}
