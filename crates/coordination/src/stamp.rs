//! Numbers that tell apart what came in the same microsecond, and the ids made of them.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Name;

/// The instant at which something came, in microseconds since 1970, moved on where the instant was taken: unique in a
/// project, and growing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(i64);

impl Stamp {
    /// After every other.
    pub(crate) const MAX: Self = Self(i64::MAX);

    /// The first free stamp at `now`, given the last one used.
    pub(crate) fn next(now: Timestamp, last: Self) -> Self {
        Self(now.as_microsecond().max(last.0 + 1))
    }

    /// Reads `seconds.microseconds`, as [`Display`](fmt::Display) writes it; nothing else.
    fn parse(text: &str) -> Option<Self> {
        let (seconds, micros) = text.split_once('.')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if micros.len() != 6 || !digits(micros) || seconds.is_empty() || !digits(seconds) {
            return None;
        }
        let (seconds, micros) = (seconds.parse::<i64>().ok()?, micros.parse::<i64>().ok()?);
        Some(Self(seconds.checked_mul(1_000_000)?.checked_add(micros)?))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000))
    }
}

/// The id of a todo: `todo-1705320600.123456`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TodoId(pub(crate) Stamp);

impl TodoId {
    /// Reads an id; none if the text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        Stamp::parse(text.strip_prefix("todo-")?).map(Self)
    }
}

impl fmt::Display for TodoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "todo-{}", self.0)
    }
}

/// The id of a message: `task-001-1705320600.789000`, the sender and a stamp.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId {
    pub(crate) from: Name,
    pub(crate) stamp: Stamp,
}

impl MessageId {
    /// Reads an id; none if the text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, stamp) = text.rsplit_once('-')?;
        Some(Self { from: Name::new(from).ok()?, stamp: Stamp::parse(stamp)? })
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.stamp)
    }
}

/// A place in the line for a lock: `ticket-1705320600.789000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TicketId(pub(crate) Stamp);

impl TicketId {
    /// Reads an id; none if the text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        Stamp::parse(text.strip_prefix("ticket-")?).map(Self)
    }
}

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ticket-{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_within_one_microsecond_and_when_the_clock_goes_back() {
        let now = Timestamp::from_microsecond(1_705_320_600_123_456).unwrap();
        let first = Stamp::next(now, Stamp::default());
        let second = Stamp::next(now, first);
        let third = Stamp::next(Timestamp::UNIX_EPOCH, second);
        assert_eq!(
            [first, second, third].map(|stamp| TodoId(stamp).to_string()),
            ["todo-1705320600.123456", "todo-1705320600.123457", "todo-1705320600.123458"]
        );
    }

    #[test]
    fn an_id_is_read_back_only_in_its_own_spelling() {
        let id = "task-001-1705320600.000789";
        assert_eq!(MessageId::parse(id).unwrap().to_string(), id);
        for odd in ["", "todo-", "todo-1.5", "todo-1705320600.12345 ", "todo--1.000000", "todo-+1.000000"] {
            assert_eq!(TodoId::parse(odd), None, "{odd:?}");
        }
    }
}
