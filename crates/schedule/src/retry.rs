//! How a failed delivery is tried again.

use serde::{Deserialize, Serialize};

use crate::OccurrenceId;
use crate::id::scatter;

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

impl Default for Retry {
    /// Ten attempts within about ten minutes: 1 s, 2 s, 4 s … at most 2 minutes apart.
    fn default() -> Self {
        Self { first_ms: 1_000, factor: 2, max_ms: 120_000, attempts: Some(10) }
    }
}

impl Retry {
    /// The pause after attempt number `attempt` failed, in milliseconds; none if it was the last. The first is 1.
    pub(crate) fn pause_ms(&self, occurrence: OccurrenceId, attempt: u32) -> Option<i64> {
        if self.attempts.is_some_and(|attempts| attempt >= attempts) {
            return None;
        }
        let factor = u64::from(self.factor.max(1)).saturating_pow(attempt.saturating_sub(1));
        let pause = u64::from(self.first_ms).saturating_mul(factor).min(u64::from(self.max_ms));
        let parts = [occurrence.schedule.get(), occurrence.due_ms.cast_unsigned(), u64::from(attempt)];
        let spread = scatter(parts) % (pause / 4 + 1);
        // At most five billion.
        Some((pause + spread).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScheduleId;

    #[test]
    fn pauses_grow_to_their_bound_and_end_with_the_last_attempt() {
        let retry = Retry { first_ms: 1_000, factor: 2, max_ms: 5_000, attempts: Some(6) };
        let occurrence = OccurrenceId { due_ms: 0, schedule: ScheduleId::new(7) };
        for (attempt, base) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 5_000), (5, 5_000)] {
            let pause = retry.pause_ms(occurrence, attempt).unwrap();
            assert!((base..=base + base / 4).contains(&pause), "{attempt}: {pause}");
        }
        assert_eq!(retry.pause_ms(occurrence, 6), None);
        let endless = Retry { attempts: None, ..retry };
        assert!(endless.pause_ms(occurrence, u32::MAX).is_some());
    }
}
