//! How a failed delivery is tried again.

use serde::{Deserialize, Serialize};

/// How a failed delivery is tried again: after `first_ms`, then `factor` times as long after each further failure, at most
/// `max_ms`, each time up to a quarter longer so that what failed together does not come back together.
///
/// The first three pauses with `first_ms` 1,000 and `factor` 2: 1.0–1.25 s, 2.0–2.5 s, 4.0–5.0 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The pause after the first failure, in milliseconds.
    pub first_ms: u32,
    /// How many times longer each next pause is; 1 for an even pace.
    pub factor: u8,
    /// The longest pause, in milliseconds.
    pub max_ms: u32,
    /// How many attempts there are in all; none for no end.
    pub attempts: Option<u32>,
}
