//! When a schedule is due.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Cron, InvalidCron, Zone};

/// When a schedule is due. All times are milliseconds since 1970.
///
/// Kept and sent as one of
///
/// ```json
/// {"once": {"at_ms": 1767225600000}}
/// {"cron": {"expression": "30 9 * * MON-FRI", "zone": "Europe/Berlin"}}
/// {"every": {"period_ms": 90000, "anchor_ms": 1767225600000}}
/// ```
///
/// What is read back is not checked again. An expression that is none is never due.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// At one instant.
    Once {
        /// That instant.
        at_ms: i64,
    },
    /// Whenever the clock of a zone matches an expression; see [`Cron`].
    Cron {
        /// The expression, as it was given.
        expression: Arc<str>,
        /// Whose clock.
        zone: Zone,
    },
    /// At an even pace, whatever the clocks do.
    Every {
        /// From one time to the next.
        period_ms: u64,
        /// The first time.
        anchor_ms: i64,
    },
}

/// How often a schedule was due in a span of time, and when for the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// How often; at most [`Timing::COUNT_MAX`] for a cron expression.
    pub count: u64,
    /// It was due more often than that.
    pub or_more: bool,
    /// The last time, in milliseconds since 1970. Exact even where the count is not.
    pub last_ms: i64,
}

impl Timing {
    /// The shortest period: one millisecond.
    pub const PERIOD_MS_MIN: u64 = 1;
    /// The longest period: 3,650 days, which are ten years.
    pub const PERIOD_MS_MAX: u64 = 3_650 * 24 * 60 * 60 * 1_000;
    /// How far the times of a cron expression are counted.
    pub const COUNT_MAX: u64 = 10_000;

    /// At `at_ms`, once.
    pub const fn once(at_ms: i64) -> Self {
        Self::Once { at_ms }
    }

    /// By a cron expression on the clock of `zone`.
    pub fn cron(expression: &str, zone: Zone) -> Result<Self, InvalidCron> {
        let cron = Cron::parse(expression)?;
        Ok(Self::Cron { expression: cron.as_str().into(), zone })
    }

    /// At `anchor_ms`, and every `period_ms` after it.
    pub fn every(period_ms: u64, anchor_ms: i64) -> Result<Self, InvalidPeriod> {
        if !(Self::PERIOD_MS_MIN..=Self::PERIOD_MS_MAX).contains(&period_ms) {
            return Err(InvalidPeriod { period_ms });
        }
        Ok(Self::Every { period_ms, anchor_ms })
    }

    /// The first time it is due after `after_ms`, which itself does not count; none if it is never due again.
    ///
    /// Any number is a time here: what lies beyond the calendar, the years -9999 to 9999, is before or after all that is due.
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        match self {
            Self::Once { at_ms } => Some(*at_ms).filter(|at_ms| *at_ms > after_ms),
            Self::Cron { expression, zone } => next_cron(&Cron::parse(expression).ok()?, zone, after_ms),
            Self::Every { period_ms, anchor_ms } => next_every(*period_ms, *anchor_ms, after_ms),
        }
    }

    /// Counts the times it is due from `from_ms`, which is one of them, until just before `before_ms`.
    ///
    /// Takes the same time for any span, save for a cron expression: up to [`COUNT_MAX`](Self::COUNT_MAX) steps of half a
    /// microsecond. For an empty span the count is 0 and the last time `from_ms`.
    pub fn skip_count(&self, from_ms: i64, before_ms: i64) -> Counted {
        if from_ms >= before_ms {
            return Counted { count: 0, or_more: false, last_ms: from_ms };
        }
        match self {
            Self::Once { .. } => Counted::once(from_ms),
            Self::Cron { expression, zone } => match Cron::parse(expression) {
                Ok(cron) => count_cron(&cron, zone, from_ms, before_ms),
                Err(_) => Counted::once(from_ms),
            },
            Self::Every { period_ms, .. } => count_every(*period_ms, from_ms, before_ms),
        }
    }
}

impl Counted {
    const fn once(at_ms: i64) -> Self {
        Self { count: 1, or_more: false, last_ms: at_ms }
    }
}

fn next_cron(cron: &Cron, zone: &Zone, after_ms: i64) -> Option<i64> {
    let after_ms = after_ms.max(Timestamp::MIN.as_millisecond());
    let after = Timestamp::from_millisecond(after_ms).ok()?;
    cron.next_after(after, zone).map(Timestamp::as_millisecond)
}

fn next_every(period_ms: u64, anchor_ms: i64, after_ms: i64) -> Option<i64> {
    if after_ms < anchor_ms {
        return Some(anchor_ms);
    }
    let period_ms = period_ms.max(1);
    let passed = after_ms.abs_diff(anchor_ms) / period_ms;
    let since_anchor = passed.checked_add(1)?.checked_mul(period_ms)?;
    anchor_ms.checked_add_unsigned(since_anchor)
}

fn count_every(period_ms: u64, from_ms: i64, before_ms: i64) -> Counted {
    let period_ms = period_ms.max(1);
    let after_first = (before_ms.abs_diff(from_ms) - 1) / period_ms;
    // No farther from `from_ms` than `before_ms` is.
    let last_ms = from_ms.saturating_add_unsigned(after_first * period_ms);
    Counted { count: after_first.saturating_add(1), or_more: false, last_ms }
}

fn count_cron(cron: &Cron, zone: &Zone, from_ms: i64, before_ms: i64) -> Counted {
    let next = |after_ms| next_cron(cron, zone, after_ms).filter(|due_ms| *due_ms < before_ms);
    let mut counted = Counted::once(from_ms);
    while let Some(due_ms) = next(counted.last_ms) {
        if counted.count == Timing::COUNT_MAX {
            counted.or_more = true;
            counted.last_ms = last(next, due_ms, before_ms);
            break;
        }
        counted.count += 1;
        counted.last_ms = due_ms;
    }
    counted
}

/// The last time before `before_ms` that `next` yields, found by halving the span that begins at `due_ms`, one of those times.
fn last(next: impl Fn(i64) -> Option<i64>, mut due_ms: i64, before_ms: i64) -> i64 {
    // After this there is none. Times are whole seconds, so none is missed in the last millisecond.
    let mut none_ms = before_ms;
    while due_ms.abs_diff(none_ms) > 1 {
        let middle_ms = i64::midpoint(due_ms, none_ms);
        match next(middle_ms) {
            Some(later_ms) => due_ms = later_ms,
            None => none_ms = middle_ms,
        }
    }
    due_ms
}

/// A period is too short or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a period of {period_ms} ms is not from {} ms to {} ms (10 years of 365 days)",
    Timing::PERIOD_MS_MIN,
    Timing::PERIOD_MS_MAX
)]
pub struct InvalidPeriod {
    /// The period, in milliseconds.
    pub period_ms: u64,
}
