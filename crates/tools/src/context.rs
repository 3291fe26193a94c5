//! What a tool knows of the call beside its arguments.

use std::fmt;
use std::sync::Arc;

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
}

impl Context {
    /// A call by `caller` that nobody withdraws and that nobody follows.
    pub fn new(caller: Caller) -> Self {
        Self { caller, command_id: None, cancelled: CancellationToken::new(), progress: Progress::none() }
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
