//! What a state machine is.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The state of one stream, and the rules of its kind.
///
/// A machine is pure: what it decides follows from its state, the command and `now`; [`apply`](Machine::apply) cannot
/// fail and decides nothing, so that replaying the journal gives the same state on every node and after every restart.
///
/// Its serialised form is the stream's snapshot. Fields that are not part of what the journal says (**soft** state: who
/// was seen when, calls per minute) are left out of it with `#[serde(skip)]`, may be lost at any time, and must never
/// decide whether something acknowledged is kept.
pub trait Machine: Serialize + DeserializeOwned + Send + Sync + Sized + 'static {
    /// The version of the events and of the snapshot. A journal written by a newer version is refused.
    const VERSION: u32;

    /// What the rules take from configuration. Not part of the state: it may differ after a restart.
    type Settings: Clone + Send + Sync + 'static;

    /// What happened. Kept in the journal for ever, so every later version reads it.
    type Event: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// Why a command changes nothing.
    type Rejection: std::error::Error + Send + 'static;

    /// The state of a stream without entries.
    fn new() -> Self;

    /// Takes the settings. Called before anything is decided, also after a snapshot was loaded.
    fn configure(&mut self, settings: &Self::Settings);

    /// Makes `event` part of the state.
    fn apply(&mut self, event: &Self::Event);

    /// The earliest instant at which [`tick`](Machine::tick) may have something to say. Called for every batch of
    /// commands: it must cost no more than a look at a field.
    fn next_deadline(&self) -> Option<Timestamp>;

    /// Decides what the passing of time means at `now`. Called before any command that comes at or after the deadline,
    /// so no command sees a state that time has overtaken.
    fn tick(&self, now: Timestamp) -> Vec<Self::Event>;

    /// Called after the events of a `tick` at `now` were applied, to work out the next deadline anew. Soft state only.
    fn ticked(&mut self, now: Timestamp);

    /// Called once after the state was loaded at `now`, before the first command. Soft state only.
    fn resume(&mut self, now: Timestamp);

    /// What is over because the process that served this stream is gone: calls that waited. Asked after `resume`, and
    /// only where no other node can be serving the same stream.
    fn abandon(&self, now: Timestamp) -> Vec<Self::Event>;

    /// Takes over the soft state of `stale`, which served this stream on this node until now and is dropped because its
    /// durable part ran ahead of the journal.
    fn adopt(&mut self, stale: Self);
}

/// A machine that knows the command `C`.
pub trait Decide<C>: Machine {
    /// What the caller is told. Serialised only to answer a repeated [`CommandId`](crate::CommandId).
    type Reply: Serialize + DeserializeOwned + Send + 'static;

    /// The command's name in the journal and in traces, such as `lock_acquire`.
    const NAME: &'static str;

    /// Decides what `command` means at `now`. Changes nothing.
    fn decide(
        &self,
        now: Timestamp,
        command: &C,
    ) -> Result<Decision<Self::Event, Self::Reply>, Self::Rejection>;

    /// Notes in soft state that `command` came at `now`, after it was decided. Called once per call, also for one that
    /// was rejected. The event it may return is journalled with the decision and changes no rule's outcome now.
    fn observe(&mut self, now: Timestamp, command: &C, accepted: bool) -> Option<Self::Event> {
        let _ = (now, command, accepted);
        None
    }
}

/// What a command means: what happens, and what the caller is told once that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<E, R> {
    /// What happens, in order. Empty for a question about the state.
    pub events: Vec<E>,
    /// What the caller is told.
    pub reply: R,
}

impl<E, R> Decision<E, R> {
    /// Nothing happens.
    pub const fn unchanged(reply: R) -> Self {
        Self { events: Vec::new(), reply }
    }

    /// `events` happen.
    pub fn events(events: impl Into<Vec<E>>, reply: R) -> Self {
        Self { events: events.into(), reply }
    }

    /// One thing happens.
    pub fn event(event: E, reply: R) -> Self {
        Self { events: vec![event], reply }
    }
}
