//! Events, and what they are made of.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Topic;

/// The number of a published event, over all topics: 1, 2, 3 … As a place to go on after, 0 stands for the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(u64);

impl Position {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The position with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `count` events later.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// How many events lie after `earlier` up to and including this one; 0 if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text cannot be part of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEvent {
    /// The data are larger than an event carries.
    #[error(
        "an event carries at most {} bytes of JSON, not {len}: publish where the data are",
        Data::MAX_BYTES
    )]
    DataTooLarge {
        /// How large they are, in bytes of JSON.
        len: usize,
    },
    /// The data are not JSON.
    #[error("the data of an event must be JSON: {why}")]
    NotJson {
        /// Where and why.
        why: Arc<str>,
    },
    /// A key or a source is empty or too long.
    #[error("{what} has 1 to {max} bytes, this one has {len}")]
    Length {
        /// `a key` or `a source`.
        what: &'static str,
        /// How long it may be, in bytes.
        max: usize,
        /// How long it is, in bytes.
        len: usize,
    },
}

/// What an event carries: one JSON value of at most [`Data::MAX_BYTES`] bytes, kept as its text. Cheap to clone.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Data(Arc<RawValue>);

impl Data {
    /// The largest data, in bytes of JSON text (256 KiB).
    pub const MAX_BYTES: usize = 256 << 10;

    /// The JSON form of `value`.
    pub fn of(value: &impl Serialize) -> Result<Self, InvalidEvent> {
        let raw = serde_json::value::to_raw_value(value)
            .map_err(|error| InvalidEvent::NotJson { why: error.to_string().into() })?;
        Self::checked(raw)
    }

    /// A text that is one JSON value. Line breaks between its parts become spaces.
    pub fn json(text: impl Into<String>) -> Result<Self, InvalidEvent> {
        let mut text = text.into();
        if text.contains(['\n', '\r']) {
            // Within a JSON string they are written as escapes, so these stand between the parts.
            text = text.replace(['\n', '\r'], " ");
        }
        let raw = RawValue::from_string(text)
            .map_err(|error| InvalidEvent::NotJson { why: error.to_string().into() })?;
        Self::checked(raw)
    }

    fn checked(raw: Box<RawValue>) -> Result<Self, InvalidEvent> {
        match raw.get().len() {
            len if len > Self::MAX_BYTES => Err(InvalidEvent::DataTooLarge { len }),
            _ => Ok(Self(raw.into())),
        }
    }

    /// The JSON text, in one line.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Data {}

/// What tells repetitions of one publication apart from new ones, such as `schedule-93@2026-01-02T09:00:00Z`.
///
/// 1 to [`Key::MAX_BYTES`] bytes. One name space for the whole bus: begin it with what is yours.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(Arc<str>);

impl Key {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks `key`.
    pub fn new(key: impl Into<Arc<str>>) -> Result<Self, InvalidEvent> {
        bounded("a key", Self::MAX_BYTES, key.into()).map(Self)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who published an event, such as `schedule` or the name of a caller's key. 1 to [`Source::MAX_BYTES`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Source(Arc<str>);

impl Source {
    /// The longest source, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks `source`.
    pub fn new(source: impl Into<Arc<str>>) -> Result<Self, InvalidEvent> {
        bounded("a source", Self::MAX_BYTES, source.into()).map(Self)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn bounded(what: &'static str, max: usize, text: Arc<str>) -> Result<Arc<str>, InvalidEvent> {
    match text.len() {
        len if (1..=max).contains(&len) => Ok(text),
        len => Err(InvalidEvent::Length { what, max, len }),
    }
}

/// An event to publish. Also its form in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEvent {
    /// What it is about.
    pub topic: Topic,
    /// What it carries.
    pub data: Data,
    /// What it is known by if it is published again; see [`Publish`](crate::Publish).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Who publishes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

impl NewEvent {
    /// An event without key and source.
    pub const fn new(topic: Topic, data: Data) -> Self {
        Self { topic, data, key: None, source: None }
    }

    /// The same, known by `key`.
    #[must_use]
    pub fn keyed(self, key: Key) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The same, published by `source`.
    #[must_use]
    pub fn from(self, source: Source) -> Self {
        Self { source: Some(source), ..self }
    }

    /// What it counts for in the size that is kept: the bytes of its texts.
    pub(crate) fn bytes(&self) -> u64 {
        let key = self.key.as_ref().map_or(0, |key| key.as_str().len());
        let source = self.source.as_ref().map_or(0, |source| source.as_str().len());
        (self.topic.as_str().len() + self.data.get().len() + key + source) as u64
    }
}

/// An event that was published. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub position: Position,
    /// What it is about.
    pub topic: Topic,
    /// What it carries.
    pub data: Data,
    /// Who published it.
    pub source: Option<Source>,
    /// When it was published, in whole milliseconds. Never earlier than the event before it.
    pub at: Timestamp,
}
