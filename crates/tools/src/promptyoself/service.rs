//! What the tools of this catalogue work on.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_exchange::Timestamp;
use switchboard_letta::Letta;
use switchboard_schedule::Schedules;

use super::scopes::Scopes;
use crate::Variables;

/// What a [`PromptYoSelf`] is made with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whose prompts they are if a call does not say.
    pub agents: DefaultAgents,
    /// Whether and how prompts are delivered by themselves.
    pub executor: Executor,
    /// Where schedules are kept, as `health` shows it.
    pub storage: String,
}

/// Whose prompts they are if a call does not say: by the variables of the process, empty for one that is not set.
#[derive(Debug, Clone, Default)]
pub struct DefaultAgents {
    /// `PROMPTYOSELF_DEFAULT_AGENT_ID`.
    pub promptyoself_default: String,
    /// `LETTA_AGENT_ID`.
    pub letta: String,
    /// `LETTA_DEFAULT_AGENT_ID`.
    pub letta_default: String,
    /// If there is no other way to tell, it is the only agent that Letta has (`PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK`).
    pub single_agent_fallback: bool,
}

impl DefaultAgents {
    /// The names of the variables, in the order in which they are asked, and what they are set to.
    pub(super) fn variables(&self) -> [(&'static str, &str); 3] {
        let [promptyoself_default, letta, letta_default] = Variables::NAMES;
        [
            (promptyoself_default, self.promptyoself_default.trim()),
            (letta, self.letta.trim()),
            (letta_default, self.letta_default.trim()),
        ]
    }
}

/// Whether and how prompts are delivered by themselves. Only to be shown: the schedules were told already.
#[derive(Debug, Clone, Copy)]
pub struct Executor {
    /// They are delivered when they are due, without `promptyoself_execute`.
    pub is_on: bool,
    /// How many seconds pass until a failed delivery is tried again; none if what was configured is no number.
    pub interval_seconds: Option<u64>,
}

impl Default for Executor {
    fn default() -> Self {
        Self { is_on: true, interval_seconds: Some(60) }
    }
}

/// PromptYoSelf: prompts for Letta agents. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct PromptYoSelf {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    schedules: Schedules,
    letta: Letta,
    options: Options,
    /// Set by a tool for the whole process.
    default_agent: Mutex<Option<Arc<str>>>,
    /// Set by a tool for a session.
    scopes: Mutex<Scopes>,
    /// How many calls deliver in a loop.
    loops: AtomicUsize,
}

impl PromptYoSelf {
    /// Prompts that are kept in `schedules`, for agents of `letta`.
    pub fn new(schedules: Schedules, letta: Letta, options: Options) -> Self {
        Self {
            inner: Arc::new(Inner {
                schedules,
                letta,
                options,
                default_agent: Mutex::default(),
                scopes: Mutex::default(),
                loops: AtomicUsize::new(0),
            }),
        }
    }

    pub(super) fn schedules(&self) -> &Schedules {
        &self.inner.schedules
    }

    pub(super) fn letta(&self) -> &Letta {
        &self.inner.letta
    }

    pub(super) fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(super) fn now(&self) -> Timestamp {
        self.schedules().exchange().clock().now()
    }

    pub(super) fn default_agent(&self) -> Option<Arc<str>> {
        self.default_agent_slot().clone()
    }

    pub(super) fn set_default_agent(&self, agent: Arc<str>) {
        *self.default_agent_slot() = Some(agent);
    }

    fn default_agent_slot(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.inner.default_agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn scopes(&self) -> MutexGuard<'_, Scopes> {
        // Every critical section leaves it whole.
        self.inner.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether prompts are delivered by themselves, or by a call that does so in a loop.
    pub(super) fn is_executing(&self) -> bool {
        self.options().executor.is_on || self.inner.loops.load(Relaxed) > 0
    }

    /// A call that delivers in a loop, until it is dropped.
    pub(super) fn begin_loop(&self) -> RunningLoop {
        self.inner.loops.fetch_add(1, Relaxed);
        RunningLoop(self.inner.clone())
    }
}

/// A call that delivers in a loop.
pub(super) struct RunningLoop(Arc<Inner>);

impl Drop for RunningLoop {
    fn drop(&mut self) {
        self.0.loops.fetch_sub(1, Relaxed);
    }
}
