//! Topics, and patterns of topics.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What divides a topic into segments.
const DIVIDER: char = '.';

/// The segment of a pattern that stands for any one segment.
const ANY_ONE: &str = "*";

/// The last segment of a pattern that stands for any number of segments, also none.
const ANY_REST: &str = "#";

/// What an event is about, such as `build.finished` or `morning/briefing`.
///
/// 1 to [`Topic::MAX_BYTES`] bytes without control characters. Dots divide it into segments, which matters to patterns
/// only; a topic none of whose segments is `*` or `#` is not a pattern. Cheap to clone.
///
/// ```
/// # use switchboard_bus::Topic;
/// assert!(Topic::new("morning/briefing for C#").is_ok());
/// assert_eq!(Topic::new("build.*").unwrap_err().to_string(), "'build.*' is a pattern: publish to one topic, without '*' and '#' as segments");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Topic(Arc<str>);

/// Why a text is no topic, or no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopic {
    /// It has no characters.
    #[error("a topic must not be empty")]
    Empty,
    /// It is longer than a topic may be.
    #[error("a topic has at most {} bytes, this one has {len}", Topic::MAX_BYTES)]
    TooLong {
        /// How long it is, in bytes.
        len: usize,
    },
    /// It has characters that cannot be shown.
    #[error("a topic must not contain control characters, such as line breaks")]
    ControlCharacter,
    /// It stands for many topics where one is asked for.
    #[error("'{topic}' is a pattern: publish to one topic, without '*' and '#' as segments")]
    Pattern {
        /// The text.
        topic: Arc<str>,
    },
    /// The rest stands before the end.
    #[error("'#' in '{pattern}' must be the last segment: use '*' for one segment in the middle")]
    RestNotLast {
        /// The text.
        pattern: Arc<str>,
    },
    /// A filter has no pattern, or more than it may.
    #[error("name 1 to {} topics, not {count}", Filter::MAX_PATTERNS)]
    HowMany {
        /// How many were named.
        count: usize,
    },
}

fn check(text: &str) -> Result<(), InvalidTopic> {
    match text.len() {
        0 => Err(InvalidTopic::Empty),
        len if len > Topic::MAX_BYTES => Err(InvalidTopic::TooLong { len }),
        _ if text.chars().any(char::is_control) => Err(InvalidTopic::ControlCharacter),
        _ => Ok(()),
    }
}

impl Topic {
    /// The longest topic, and the longest pattern, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks `topic`.
    pub fn new(topic: impl Into<Arc<str>>) -> Result<Self, InvalidTopic> {
        let topic = topic.into();
        check(&topic)?;
        if topic.split(DIVIDER).any(|segment| segment == ANY_ONE || segment == ANY_REST) {
            return Err(InvalidTopic::Pattern { topic });
        }
        Ok(Self(topic))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which topics are meant: a topic, in which the segment `*` stands for any one segment and a last segment `#` for any
/// number of them, also none.
///
/// ```
/// # use switchboard_bus::{Pattern, Topic};
/// let matches = |pattern: &str, topic: &str| Pattern::new(pattern).unwrap().matches(&Topic::new(topic).unwrap());
/// assert!(matches("build.*.done", "build.web.done"));
/// assert!(!matches("build.*", "build.web.done"));
/// assert!(matches("build.#", "build.web.done") && matches("build.#", "build") && matches("#", "build"));
/// assert_eq!(
///     Pattern::new("#.done").unwrap_err().to_string(),
///     "'#' in '#.done' must be the last segment: use '*' for one segment in the middle",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Checks `pattern`.
    pub fn new(pattern: impl Into<Arc<str>>) -> Result<Self, InvalidTopic> {
        let pattern = pattern.into();
        check(&pattern)?;
        let mut segments = pattern.split(DIVIDER);
        segments.next_back();
        if segments.any(|segment| segment == ANY_REST) {
            return Err(InvalidTopic::RestNotLast { pattern });
        }
        Ok(Self(pattern))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `topic` is meant.
    pub fn matches(&self, topic: &Topic) -> bool {
        let mut segments = topic.0.split(DIVIDER);
        for wanted in self.0.split(DIVIDER) {
            if wanted == ANY_REST {
                return true;
            }
            let Some(segment) = segments.next() else { return false };
            if wanted != ANY_ONE && wanted != segment {
                return false;
            }
        }
        segments.next().is_none()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose events are wanted: those that match any of 1 to [`Filter::MAX_PATTERNS`] patterns. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Arc<[Pattern]>);

impl Filter {
    /// The most patterns.
    pub const MAX_PATTERNS: usize = 16;

    /// Events that match any of `patterns`.
    pub fn any_of(patterns: impl Into<Arc<[Pattern]>>) -> Result<Self, InvalidTopic> {
        let patterns = patterns.into();
        if (1..=Self::MAX_PATTERNS).contains(&patterns.len()) {
            Ok(Self(patterns))
        } else {
            Err(InvalidTopic::HowMany { count: patterns.len() })
        }
    }

    /// Whether events of `topic` are wanted.
    pub fn matches(&self, topic: &Topic) -> bool {
        self.0.iter().any(|pattern| pattern.matches(topic))
    }
}

impl From<Pattern> for Filter {
    fn from(pattern: Pattern) -> Self {
        Self(Arc::new([pattern]))
    }
}
