//! The number of a schedule, and the stream it lives in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use switchboard_journal::StreamId;

/// The number of a schedule: never used again, and greater than that of every schedule made before it on the same node.
///
/// Its last six bits name the stream that holds the schedule, so that whoever has the number finds it without a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScheduleId(u64);

impl ScheduleId {
    /// The number `id`.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(crate) const fn compose(count: u64, shard: Shard) -> Self {
        Self(count << Shard::BITS | shard.0 as u64)
    }

    /// How many schedules of its stream come before it, at least.
    pub(crate) const fn count(self) -> u64 {
        self.0 >> Shard::BITS
    }

    pub(crate) const fn shard(self) -> Shard {
        Shard::nth(self.0)
    }
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ScheduleId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Which of the streams `schedules/00` … `schedules/63` holds a schedule.
///
/// One stream for all would have to stand still while its snapshot is written: with a hundred thousand schedules for
/// longer than a wake-up call may be late. All schedules that call one ordered destination share a stream, since their
/// order is a rule of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shard(u8);

impl Shard {
    const BITS: u32 = 6;
    /// How many there are. Part of every number, so it never changes.
    pub const COUNT: usize = 1 << Self::BITS;
    const MASK: u8 = (1 << Self::BITS) - 1;
    /// What the names of all their streams begin with.
    pub const PREFIX: &'static str = "schedules/";

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=Self::MASK).map(Self)
    }

    /// The one for whatever `text` stands for: always the same for the same text.
    pub(crate) fn of(text: &str) -> Self {
        Self::nth(stable_hash(text.as_bytes()))
    }

    pub(crate) const fn nth(number: u64) -> Self {
        Self(number.to_le_bytes()[0] & Self::MASK)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The name of its stream.
    #[expect(clippy::missing_panics_doc, reason = "it cannot: see the reason below")]
    pub fn stream(self) -> StreamId {
        #[expect(clippy::expect_used, reason = "a constant and two digits, shorter than a name may be")]
        StreamId::new(format!("{}{:02}", Self::PREFIX, self.0)).expect("the name of the stream is valid")
    }

    /// The one whose stream is called `stream`.
    pub(crate) fn of_stream(stream: &StreamId) -> Option<Self> {
        Self::all().find(|shard| shard.stream() == *stream)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:02}", Self::PREFIX, self.0)
    }
}

/// FNV-1a, 64 bits: the same on every machine and in every version, which hashes of the standard library are not.
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// A number that looks random and follows from `parts` alone.
pub(crate) fn scatter(parts: [u64; 3]) -> u64 {
    let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
        part.to_le_bytes()
            .iter()
            .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
    });
    // FNV's low bits follow the last byte too closely to be used alone.
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_stream() {
        let id = ScheduleId::compose(7, Shard(42));
        assert_eq!((id.count(), id.shard(), id.shard().stream().as_str()), (7, Shard(42), "schedules/42"));
        assert_eq!(Shard::of_stream(&Shard(9).stream()), Some(Shard(9)));
        assert_eq!(Shard::all().count(), Shard::COUNT);
    }

    #[test]
    fn the_stream_of_a_destination_never_changes() {
        // What is in journals already depends on it.
        assert_eq!(Shard::of("letta:agent-1"), Shard(28));
        assert_eq!(stable_hash(b"letta:agent-1"), 2_098_474_419_080_144_796);
    }
}
