//! What a schedule calls: the trait that every kind of target implements.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Message, Retry};

/// Where a wake-up call goes: a kind of target and a destination in that kind's own spelling.
///
/// | kind | destination |
/// |---|---|
/// | `topic` | a topic of the bus |
/// | `letta` | the id of a Letta agent |
/// | `inbox` | `project/session` of a coordinating agent |
/// | `webhook` | an `http` or `https` URL |
/// | `tool` | the name of a tool |
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The kind of target.
    pub kind: Arc<str>,
    /// The destination.
    pub to: Arc<str>,
}

impl Address {
    /// An address of `kind`.
    pub fn new(kind: impl Into<Arc<str>>, to: impl Into<Arc<str>>) -> Self {
        Self { kind: kind.into(), to: to.into() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.to)
    }
}

/// One attempt to deliver an occurrence.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The same on every attempt, whoever makes it: `schedule-93@2025-01-02T09:00:00Z`. A target that can tell repetitions
    /// apart by it takes each occurrence once.
    pub key: Arc<str>,
    /// The number of the schedule.
    pub schedule: u64,
    /// Its name; empty if it has none.
    pub name: Arc<str>,
    /// Where to.
    pub address: Address,
    /// What to say.
    pub message: Message,
    /// When it was due, in milliseconds since 1970.
    pub due_ms: i64,
    /// Which attempt this is; the first is 1.
    pub attempt: u32,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The target has it. The reply is what it said, if it says anything, cut at [`Outcome::MAX_REPLY`] bytes.
    Delivered {
        /// In the target's own words.
        reply: Option<String>,
    },
    /// The target does not have it, or may not have it.
    Failed {
        /// Why, for the one who repairs. Holds no secret.
        error: String,
        /// Trying again is of no use.
        permanent: bool,
        /// When the target asked to be tried again.
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// The longest reply, and the longest error, that is kept, in bytes.
    pub const MAX_REPLY: usize = 1_024;

    /// Delivered without a reply.
    pub const fn delivered() -> Self {
        Self::Delivered { reply: None }
    }

    /// Failed, and to be tried again.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::Failed { error: error.into(), permanent: false, retry_after: None }
    }

    /// Failed for good.
    pub fn refused(error: impl Into<String>) -> Self {
        Self::Failed { error: error.into(), permanent: true, retry_after: None }
    }
}

/// How a kind of target wants to be called.
#[derive(Debug, Clone)]
pub struct Manners {
    /// Deliveries to one destination go one after another, in the order they were due.
    pub ordered: bool,
    /// How many deliveries may be under way at once to all destinations of this kind.
    pub at_once: usize,
    /// How many may be under way at once to one [`group`](Target::group) of destinations.
    pub per_group: usize,
    /// How many deliveries one call of [`deliver`](Target::deliver) takes at most.
    pub batch: usize,
    /// After this long an attempt is over, whatever the target does.
    pub timeout: Duration,
    /// How a failed delivery is tried again, where the schedule does not say.
    pub retry: Retry,
}

/// A kind of target. One file each; registered in [`Targets`].
pub trait Target: Send + Sync + 'static {
    /// The kind, as in [`Address::kind`].
    fn kind(&self) -> &'static str;

    /// How it wants to be called.
    fn manners(&self) -> Manners;

    /// Whether `to` can be a destination, and `message` said to it. The error says what would be right.
    fn check(&self, to: &str, message: &Message) -> Result<(), String>;

    /// What `to` shares its troubles with, such as a host: destinations of one group that do not answer take no place from
    /// others. The destination itself by default.
    fn group<'a>(&self, to: &'a str) -> &'a str {
        to
    }

    /// Delivers `deliveries`, at most [`Manners::batch`] of them and all of one group, and says of each what came of it, in
    /// the same order. Dropping the future gives up.
    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>>;
}

/// The kinds of targets there are. Cheap to clone.
#[derive(Clone, Default)]
pub struct Targets {
    kinds: Arc<HashMap<&'static str, Arc<dyn Target>>>,
}

impl Targets {
    /// These kinds. Of two with the same name the later is taken.
    pub fn new(targets: impl IntoIterator<Item = Arc<dyn Target>>) -> Self {
        Self { kinds: Arc::new(targets.into_iter().map(|target| (target.kind(), target)).collect()) }
    }

    /// The kind called `kind`.
    pub fn get(&self, kind: &str) -> Option<&Arc<dyn Target>> {
        self.kinds.get(kind)
    }

    /// All kinds, by name.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<_> = self.kinds.keys().copied().collect();
        kinds.sort_unstable();
        kinds
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Target>> {
        self.kinds.values()
    }
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds()).finish()
    }
}
