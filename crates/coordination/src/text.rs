//! Names and texts within their bounds (rule 12 of the A2AMCP contract).

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    /// It has no characters.
    #[error("must not be empty")]
    Empty,
    /// It has too many characters for a name.
    #[error("must be at most {} characters, has {characters}", Name::MAX_CHARACTERS)]
    NameTooLong {
        /// How many it has.
        characters: usize,
    },
    /// It has too many bytes for a text.
    #[error("must be at most {} bytes, has {bytes}", Text::MAX_BYTES)]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
}

/// A name: of a session, a project, a task, an interface. 1 to 1,024 characters of any kind. Cheap to clone.
///
/// ```
/// # use switchboard_coordination::Name;
/// assert_eq!(Name::new("task-001")?.as_str(), "task-001");
/// assert_eq!(Name::new("").unwrap_err().to_string(), "must not be empty");
/// # Ok::<(), switchboard_coordination::InvalidText>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

impl Name {
    /// The most characters a name has.
    pub const MAX_CHARACTERS: usize = 1_024;

    /// Checks `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidText> {
        let text = text.into();
        if text.is_empty() {
            return Err(InvalidText::Empty);
        }
        // Bytes are at least characters, so most names need no counting.
        if text.len() > Self::MAX_CHARACTERS {
            let characters = text.chars().count();
            if characters > Self::MAX_CHARACTERS {
                return Err(InvalidText::NameTooLong { characters });
            }
        }
        Ok(Self(text))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A free text: a message, a todo, a definition. At most 1 MiB, may be empty. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(Arc<str>);

impl Text {
    /// The most bytes a text has (1 MiB).
    pub const MAX_BYTES: usize = 1 << 20;

    /// Checks `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidText> {
        let text = text.into();
        if text.len() > Self::MAX_BYTES {
            Err(InvalidText::TooLong { bytes: text.len() })
        } else {
            Ok(Self(text))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
