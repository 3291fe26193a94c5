//! The one way from any door to a tool: bounded, counted, stopped with the server, and safe from a tool that panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use serde_json::{Map, Value};
use switchboard_access::Denied;
use switchboard_tools::{CallError, Context, Output, Registry, View};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::metrics::{CallOutcome, Metrics};

/// How long a call may take to answer once it was told that the server stops.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a call has no answer of the tool's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error("Unknown tool: {name}")]
    UnknownTool { name: String },
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(
        "{limit} calls are running or waiting, the most this server takes (limits.calls): call again in a moment"
    )]
    Busy { limit: usize },
    #[error("the server is shutting down: call again when it is back")]
    Stopping,
    #[error("the tool '{tool}' failed: this is a fault of the server, which its log describes")]
    Panicked { tool: &'static str },
}

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::UnknownTool { name } => Self::UnknownTool { name },
            CallError::Denied(denied) => Self::Denied(denied),
        }
    }
}

impl CallFailure {
    fn outcome(&self) -> CallOutcome {
        match self {
            Self::UnknownTool { .. } => CallOutcome::Unknown,
            Self::Denied(_) => CallOutcome::Denied,
            Self::Busy { .. } | Self::Stopping => CallOutcome::Refused,
            Self::Panicked { .. } => CallOutcome::Panicked,
        }
    }
}

/// Calls tools for all doors.
#[derive(Debug)]
pub(crate) struct Calls {
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
    running: Semaphore,
    limit: usize,
    stop: CancellationToken,
}

impl Calls {
    /// Calls through `registry`, at most `limit` at a time, until `stop`.
    pub(crate) fn new(
        registry: Arc<Registry>,
        metrics: Arc<Metrics>,
        limit: usize,
        stop: CancellationToken,
    ) -> Self {
        Self { registry, metrics, running: Semaphore::new(limit), limit, stop }
    }

    /// Calls the tool called `name` of `view`. Dropping the future abandons the call.
    pub(crate) async fn call(
        &self,
        view: &View,
        name: &str,
        arguments: Map<String, Value>,
        context: Context,
    ) -> Result<Output, CallFailure> {
        let begun = Instant::now();
        let tool = self.registry.tool(view, name).map(|tool| tool.definition.name);
        let result = self.run(view, name, tool, arguments, context).await;
        let outcome = match &result {
            Ok(output) if output.is_error => CallOutcome::Error,
            Ok(_) => CallOutcome::Ok,
            Err(failure) => failure.outcome(),
        };
        self.metrics.called(tool.unwrap_or("(unknown)"), outcome, begun.elapsed());
        result
    }

    async fn run(
        &self,
        view: &View,
        name: &str,
        tool: Option<&'static str>,
        arguments: Map<String, Value>,
        context: Context,
    ) -> Result<Output, CallFailure> {
        let Ok(_running) = self.running.try_acquire() else {
            return Err(CallFailure::Busy { limit: self.limit });
        };
        if self.stop.is_cancelled() {
            return Err(CallFailure::Stopping);
        }
        let cancelled = context.cancelled.clone();
        let call = AssertUnwindSafe(self.registry.call(view, name, arguments, context)).catch_unwind();
        let mut call = std::pin::pin!(call);
        let finished = tokio::select! {
            biased;
            finished = &mut call => finished,
            () = self.stop.cancelled() => {
                // A tool that waits can still say what came of it, such as a handle to wait on with.
                cancelled.cancel();
                match tokio::time::timeout(LAST_WORDS, call).await {
                    Ok(finished) => finished,
                    Err(_) => return Err(CallFailure::Stopping),
                }
            }
        };
        match finished {
            Ok(answer) => Ok(answer?),
            Err(_panic) => Err(CallFailure::Panicked { tool: tool.unwrap_or("(unknown)") }),
        }
    }

    /// How many calls run or wait.
    pub(crate) fn running(&self) -> usize {
        self.limit - self.running.available_permits()
    }
}
