//! The JSON form of an entry and of a snapshot.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Machine;
use crate::command::FirstReply;

/// What one entry says: the events of one append, when they were decided, and the replies to remember.
///
/// ```json
/// {"v":1,"at":"2026-11-21T09:00:00.000001Z","events":[{"type":"agent_registered", …}]}
/// ```
#[derive(Debug, Deserialize)]
pub struct Record<E> {
    /// The version of the machine that wrote it.
    #[serde(default)]
    pub v: u32,
    /// When it was decided. Absent from a redacted entry.
    pub at: Option<Timestamp>,
    /// What happened, in order. Empty in a redacted entry.
    #[serde(default = "Vec::new")]
    pub events: Vec<E>,
    /// First replies to commands that carried an id.
    #[serde(default)]
    pub(crate) replies: Vec<FirstReply>,
}

/// Why the text of an entry or a snapshot means nothing to this machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Illegible {
    #[error("it is of format version {found}, this program reads up to {known}: run a newer switchboard")]
    Newer { found: u32, known: u32 },
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl<E: DeserializeOwned> Record<E> {
    pub(crate) fn parse<M: Machine<Event = E>>(json: &str) -> Result<Self, Illegible> {
        refuse_newer::<M>(json)?;
        Ok(serde_json::from_str(json)?)
    }
}

fn refuse_newer<M: Machine>(json: &str) -> Result<(), Illegible> {
    // Every record and snapshot begins with its version, so that it can be told before the rest is understood.
    let digits = json.strip_prefix(r#"{"v":"#).and_then(|rest| rest.split([',', '}']).next());
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(found) if found > M::VERSION => Err(Illegible::Newer { found, known: M::VERSION }),
        _ => Ok(()),
    }
}

/// Writes a [`Record`] event by event, so that a batch knows its size while it grows.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    json: String,
    events: usize,
    replies: Vec<FirstReply>,
    /// How long the replies are, about.
    reply_bytes: usize,
}

impl RecordWriter {
    pub(crate) fn new(version: u32, at: Timestamp) -> Self {
        let mut json = String::with_capacity(512);
        // Writing to a String cannot fail.
        let _ = write!(json, r#"{{"v":{version},"at":"{at}","events":["#);
        Self { json, events: 0, replies: Vec::new(), reply_bytes: 0 }
    }

    pub(crate) fn event(&mut self, event: &impl Serialize) -> Result<(), serde_json::Error> {
        let before = self.json.len();
        if self.events > 0 {
            self.json.push(',');
        }
        match serde_json::to_string(event) {
            Ok(text) => self.json.push_str(&text),
            Err(error) => {
                self.json.truncate(before);
                return Err(error);
            }
        }
        self.events += 1;
        Ok(())
    }

    pub(crate) fn reply(&mut self, reply: FirstReply) {
        self.reply_bytes += reply.reply.get().len();
        self.replies.push(reply);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.json.len() + self.reply_bytes
    }

    pub(crate) fn finish(mut self) -> Result<(String, Vec<FirstReply>), serde_json::Error> {
        self.json.push(']');
        if !self.replies.is_empty() {
            self.json.push_str(r#","replies":"#);
            self.json.push_str(&serde_json::to_string(&self.replies)?);
        }
        self.json.push('}');
        Ok((self.json, self.replies))
    }
}

/// The JSON form of a snapshot, for writing.
#[derive(Serialize)]
pub(crate) struct SnapshotRef<'a, M> {
    pub(crate) v: u32,
    pub(crate) state: &'a M,
    pub(crate) replies: &'a [crate::replies::Remembered],
}

/// The JSON form of a snapshot, for reading.
#[derive(Deserialize)]
pub(crate) struct SnapshotOwned<M> {
    pub(crate) state: M,
    #[serde(default)]
    pub(crate) replies: Vec<crate::replies::Remembered>,
}

impl<M: Machine> SnapshotOwned<M> {
    pub(crate) fn parse(json: &str) -> Result<Self, Illegible> {
        refuse_newer::<M>(json)?;
        Ok(serde_json::from_str(json)?)
    }
}
