//! A command on its way through an exchange: its id, its outcome, and the job that carries both.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_journal::{BackendError, ReadError, StreamId};
use tokio::sync::oneshot;

use crate::{Decide, Machine};

/// A name that a client gives a call, so that repeating the call has no second effect.
///
/// 1 to 128 bytes. Within [`Options::reply_window`](crate::Options::reply_window) a repeated id gets the first reply.
/// Unique per stream: clients use a UUID or their session name and a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(Arc<str>);

/// A text that is no command id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a command id has 1 to {} bytes, this one has {len}", CommandId::MAX_BYTES)]
pub struct InvalidCommandId {
    len: usize,
}

impl CommandId {
    /// The longest id, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Checks `id`.
    pub fn new(id: impl Into<Arc<str>>) -> Result<Self, InvalidCommandId> {
        let id = id.into();
        if (1..=Self::MAX_BYTES).contains(&id.len()) {
            Ok(Self(id))
        } else {
            Err(InvalidCommandId { len: id.len() })
        }
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a command got no reply. Nothing happened, except where a variant says otherwise.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError<R> {
    /// The rules say no.
    #[error(transparent)]
    Rejected(R),
    /// The journal takes no writes now. Repeat the call once the cause is mended.
    #[error("nothing was changed: the journal takes no writes: {0}")]
    Unavailable(#[source] BackendError),
    /// The stream's past cannot be read.
    #[error("nothing was changed: {0}")]
    Unreadable(#[source] ReadError),
    /// The stream's past can be read but not understood.
    #[error("nothing was changed: entry {entry} of stream '{stream}' cannot be understood: {why}")]
    Damaged {
        /// The stream.
        stream: StreamId,
        /// The entry, or the snapshot after it.
        entry: u64,
        /// What is wrong with it.
        why: Arc<str>,
    },
    /// It is not known whether the command took effect. Repeat it with the same command id.
    #[error("it is not known whether the call took effect: repeat it with the same command id ({0})")]
    Unknown(#[source] BackendError),
    /// The stream has as many commands waiting as it may have. Repeat the call a little later.
    #[error("stream '{stream}' has {waiting} calls waiting, the most it takes: call again in a moment")]
    Busy {
        /// The stream.
        stream: StreamId,
        /// How many wait.
        waiting: usize,
    },
    /// The server is shutting down. Repeat the call when it is back.
    #[error("the server is shutting down: call again when it is back")]
    Stopping,
    /// The id belongs to another call.
    #[error("command id '{id}' was used for '{first}' and cannot be used for '{now}'")]
    IdReused {
        /// The id.
        id: CommandId,
        /// The command that first came with it.
        first: Arc<str>,
        /// The command that came with it now.
        now: &'static str,
    },
    /// The decision is larger than one entry may be.
    #[error("nothing was changed: {0}")]
    TooLarge(#[source] switchboard_journal::PayloadTooLarge),
}

/// A fault that is the same for every command of a batch, whatever it would have been rejected with.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    Unavailable(BackendError),
    Unreadable(ReadError),
    Damaged { stream: StreamId, entry: u64, why: Arc<str> },
    Unknown(BackendError),
    Busy { stream: StreamId, waiting: usize },
    Stopping,
    TooLarge(switchboard_journal::PayloadTooLarge),
}

impl<R> From<Fault> for CommandError<R> {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unavailable(cause) => Self::Unavailable(cause),
            Fault::Unreadable(cause) => Self::Unreadable(cause),
            Fault::Damaged { stream, entry, why } => Self::Damaged { stream, entry, why },
            Fault::Unknown(cause) => Self::Unknown(cause),
            Fault::Busy { stream, waiting } => Self::Busy { stream, waiting },
            Fault::Stopping => Self::Stopping,
            Fault::TooLarge(cause) => Self::TooLarge(cause),
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}

/// The first reply to a command that came with an id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FirstReply {
    pub(crate) id: CommandId,
    pub(crate) command: Arc<str>,
    pub(crate) reply: Arc<RawValue>,
}

/// A command with its type erased, so that one queue takes all commands of a machine.
pub(crate) trait Job<M: Machine>: Send {
    fn id(&self) -> Option<&CommandId>;
    /// Decides the command and keeps the outcome until `finish`.
    fn decide(&mut self, machine: &M, now: Timestamp) -> Vec<M::Event>;
    /// Notes the call in soft state, the first time it is called.
    fn observe(&mut self, machine: &mut M, now: Timestamp) -> Option<M::Event>;
    /// What to remember under the command's id; none if there is no id, or nothing happened.
    fn first_reply(&self) -> Option<Result<FirstReply, serde_json::Error>>;
    /// Takes the outcome of an earlier call with the same id.
    fn repeat(&mut self, first: &FirstReply);
    /// Tells the caller the outcome. Its decision must be durable.
    fn finish(self: Box<Self>);
    /// Tells the caller that there is no outcome.
    fn fail(self: Box<Self>, fault: Fault);
}

type Outcome<M, C> = Result<<M as Decide<C>>::Reply, CommandError<<M as Machine>::Rejection>>;

/// A command of type `C` and whoever waits for its reply.
pub(crate) struct Call<M: Decide<C>, C> {
    command: C,
    id: Option<CommandId>,
    outcome: Option<Outcome<M, C>>,
    observed: bool,
    caller: oneshot::Sender<Outcome<M, C>>,
}

impl<M: Decide<C>, C> Call<M, C> {
    pub(crate) fn new(command: C, id: Option<CommandId>) -> (Self, oneshot::Receiver<Outcome<M, C>>) {
        let (caller, reply) = oneshot::channel();
        (Self { command, id, outcome: None, observed: false, caller }, reply)
    }
}

impl<M: Decide<C>, C: Send> Job<M> for Call<M, C> {
    fn id(&self) -> Option<&CommandId> {
        self.id.as_ref()
    }

    fn decide(&mut self, machine: &M, now: Timestamp) -> Vec<M::Event> {
        let (events, outcome) = match machine.decide(now, &self.command) {
            Ok(decision) => (decision.events, Ok(decision.reply)),
            Err(rejection) => (Vec::new(), Err(CommandError::Rejected(rejection))),
        };
        self.outcome = Some(outcome);
        events
    }

    fn observe(&mut self, machine: &mut M, now: Timestamp) -> Option<M::Event> {
        if std::mem::replace(&mut self.observed, true) {
            return None;
        }
        machine.observe(now, &self.command, matches!(self.outcome, Some(Ok(_))))
    }

    fn first_reply(&self) -> Option<Result<FirstReply, serde_json::Error>> {
        let (Some(id), Some(Ok(reply))) = (&self.id, &self.outcome) else { return None };
        Some(serde_json::value::to_raw_value(reply).map(|reply| FirstReply {
            id: id.clone(),
            command: M::NAME.into(),
            reply: reply.into(),
        }))
    }

    fn repeat(&mut self, first: &FirstReply) {
        let understood =
            (*first.command == *M::NAME).then(|| serde_json::from_str(first.reply.get()).ok()).flatten();
        self.outcome = Some(understood.ok_or_else(|| CommandError::IdReused {
            id: first.id.clone(),
            first: first.command.clone(),
            now: M::NAME,
        }));
    }

    fn finish(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            // The caller may have left; what it asked for is done all the same.
            let _ = self.caller.send(outcome);
        }
    }

    fn fail(self: Box<Self>, fault: Fault) {
        let _ = self.caller.send(Err(fault.into()));
    }
}
