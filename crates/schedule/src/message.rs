//! What a wake-up call says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a wake-up call says: a text, or a JSON value for targets that take one. At most [`Message::MAX_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// A text, such as a prompt.
    Text(Arc<str>),
    /// The text of a JSON value, such as the payload of an event or the arguments of a tool.
    Json(Arc<str>),
}

impl Message {
    /// The longest message, in bytes.
    pub const MAX_BYTES: usize = 256 << 10;

    /// A message that is a JSON value.
    pub fn json(value: &serde_json::Value) -> Self {
        Self::Json(value.to_string().into())
    }

    /// Its text, as it was given.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }

    /// As a JSON value: a text is a JSON string.
    pub fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => serde_json::Value::String(text.to_string()),
            // It was made from a value.
            Self::Json(json) => serde_json::from_str(json).unwrap_or_default(),
        }
    }
}
