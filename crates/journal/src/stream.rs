//! What a journal holds: stream names, positions, entries and snapshots.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a stream, such as `project/shop` or `schedules`.
///
/// 1 to [`StreamId::MAX_BYTES`] bytes of UTF-8. Cheap to clone.
///
/// ```
/// # use switchboard_journal::StreamId;
/// assert_eq!(StreamId::new("project/shop")?.as_str(), "project/shop");
/// assert_eq!(StreamId::new("").unwrap_err().to_string(), "a stream name must not be empty");
/// # Ok::<(), switchboard_journal::InvalidStreamId>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StreamId(Arc<str>);

/// Why a text is not a stream name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStreamId {
    /// The text has no characters.
    #[error("a stream name must not be empty")]
    Empty,
    /// The text is longer than a name may be.
    #[error("a stream name of {len} bytes exceeds the limit of {} bytes", StreamId::MAX_BYTES)]
    TooLong {
        /// How long it is, in bytes.
        len: usize,
    },
}

impl StreamId {
    /// The longest name, in bytes: a kind, a slash, and 1,024 characters of up to four bytes.
    pub const MAX_BYTES: usize = 4_200;

    /// Checks `name` and makes it a stream name.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidStreamId> {
        let name = name.into();
        match name.len() {
            0 => Err(InvalidStreamId::Empty),
            len if len > Self::MAX_BYTES => Err(InvalidStreamId::TooLong { len }),
            _ => Ok(Self(name)),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A position in a stream: the number of an entry, or 0 for the beginning, before the first entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// Before the first entry.
    pub const START: Self = Self(0);

    /// The position with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position of the entry that follows.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// How many entries lie after `earlier` up to and including this one; 0 if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an entry holds: one JSON text, at most [`Payload::MAX_BYTES`] bytes. Cheap to clone.
///
/// The journal does not read it. A redacted entry holds [`Payload::redacted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload(Arc<str>);

/// An entry that is larger than a journal takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an entry of {len} bytes exceeds the limit of {} bytes", Payload::MAX_BYTES)]
pub struct PayloadTooLarge {
    /// How long it is, in bytes.
    pub len: usize,
}

impl Payload {
    /// The longest payload, in bytes (64 MiB).
    pub const MAX_BYTES: usize = 64 << 20;

    /// What stands in the place of a redacted payload.
    pub const REDACTED: &'static str = r#"{"redacted":true}"#;

    /// Takes a JSON text as payload. Only its length is checked.
    pub fn new(json: impl Into<Arc<str>>) -> Result<Self, PayloadTooLarge> {
        let json = json.into();
        if json.len() > Self::MAX_BYTES { Err(PayloadTooLarge { len: json.len() }) } else { Ok(Self(json)) }
    }

    /// The payload of a redacted entry.
    pub fn redacted() -> Self {
        Self(Self::REDACTED.into())
    }

    /// Whether the entry was redacted.
    pub fn is_redacted(&self) -> bool {
        &*self.0 == Self::REDACTED
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the stream.
    pub seq: Seq,
    /// What was appended.
    pub payload: Payload,
}

/// A machine's state after the entry `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last entry that the state includes.
    pub seq: Seq,
    /// The state, as a JSON text of the machine's own.
    pub state: Arc<str>,
}

/// A stream and where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamHead {
    /// The stream.
    pub stream: StreamId,
    /// Its last entry.
    pub head: Seq,
}
