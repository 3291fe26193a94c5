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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cron(expression: &str, zone: &str) -> Timing {
        Timing::cron(expression, Zone::named(zone).unwrap()).unwrap()
    }

    #[test]
    fn timings_are_kept_in_their_documented_form() {
        for (timing, json) in [
            (Timing::once(1_767_225_600_000), r#"{"once":{"at_ms":1767225600000}}"#),
            (
                cron("30 9 * * MON-FRI", "Europe/Berlin"),
                r#"{"cron":{"expression":"30 9 * * MON-FRI","zone":"Europe/Berlin"}}"#,
            ),
            (
                Timing::every(90_000, 1_767_225_600_000).unwrap(),
                r#"{"every":{"period_ms":90000,"anchor_ms":1767225600000}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&timing).unwrap(), json);
            assert_eq!(serde_json::from_str::<Timing>(json).unwrap(), timing);
        }
    }

    #[test]
    fn once_is_due_before_it_and_never_after() {
        let timing = Timing::once(5_000);
        assert_eq!(timing.next_after(4_999), Some(5_000));
        assert_eq!(timing.next_after(5_000), None);
        assert_eq!(timing.skip_count(5_000, 9_000), Counted { count: 1, or_more: false, last_ms: 5_000 });
    }

    #[test]
    fn periods_are_counted_from_their_anchor() {
        let timing = Timing::every(1_000, 500).unwrap();
        assert_eq!(timing.next_after(-9_999), Some(500));
        assert_eq!(timing.next_after(499), Some(500));
        assert_eq!(timing.next_after(500), Some(1_500));
        assert_eq!(timing.next_after(1_499), Some(1_500));
        let counted = |before_ms| {
            let Counted { count, or_more, last_ms } = timing.skip_count(1_500, before_ms);
            assert!(!or_more);
            (count, last_ms)
        };
        assert_eq!(counted(1_500), (0, 1_500));
        assert_eq!(counted(1_501), (1, 1_500));
        assert_eq!(counted(2_500), (1, 1_500));
        assert_eq!(counted(2_501), (2, 2_500));
    }

    #[test]
    fn periods_have_bounds() {
        assert!(Timing::every(1, 0).is_ok() && Timing::every(Timing::PERIOD_MS_MAX, 0).is_ok());
        assert_eq!(
            Timing::every(0, 0).unwrap_err().to_string(),
            "a period of 0 ms is not from 1 ms to 315360000000 ms (10 years of 365 days)"
        );
        assert!(Timing::every(Timing::PERIOD_MS_MAX + 1, 0).is_err());
        // Read back from elsewhere, it does no harm.
        assert_eq!(Timing::Every { period_ms: 0, anchor_ms: 0 }.next_after(7), Some(8));
    }

    #[test]
    fn a_cron_expression_is_due_by_its_zone() {
        let timing = cron("30 9 * * *", "Asia/Kolkata");
        assert_eq!(timing.next_after(0), Some(4 * 3_600_000));
        assert_eq!(timing.next_after(4 * 3_600_000 - 1), Some(4 * 3_600_000));
        assert_eq!(timing.next_after(4 * 3_600_000), Some(28 * 3_600_000));
        let broken = Timing::Cron { expression: "every day".into(), zone: Zone::UTC };
        assert_eq!(broken.next_after(0), None);
        assert!(Timing::cron("every day", Zone::UTC).is_err());
    }

    #[test]
    fn times_of_a_cron_expression_are_counted_up_to_a_limit_and_the_last_is_exact() {
        const MINUTE_MS: i64 = 60_000;
        let timing = cron("* * * * *", "Europe/Berlin");
        let counted = |before_ms| timing.skip_count(0, before_ms);
        assert_eq!(counted(1), Counted { count: 1, or_more: false, last_ms: 0 });
        assert_eq!(counted(MINUTE_MS), Counted { count: 1, or_more: false, last_ms: 0 });
        assert_eq!(counted(MINUTE_MS + 1), Counted { count: 2, or_more: false, last_ms: MINUTE_MS });
        let most = 10_000 * MINUTE_MS;
        assert_eq!(counted(most), Counted { count: 10_000, or_more: false, last_ms: most - MINUTE_MS });
        assert_eq!(counted(most + 1), Counted { count: 10_000, or_more: true, last_ms: most });
        let much = 30_000_000 * MINUTE_MS;
        assert_eq!(counted(much - 1), Counted { count: 10_000, or_more: true, last_ms: much - MINUTE_MS });
        // A burst once a year: the last is found although most of the span is empty.
        let burst = cron("* * 1 1 *", "UTC");
        let in_2030 = 1_893_456_000_000;
        let counted = burst.skip_count(0, in_2030 + 300 * 24 * 60 * MINUTE_MS);
        assert_eq!(counted, Counted { count: 10_000, or_more: true, last_ms: in_2030 + 1_439 * MINUTE_MS });
    }

    proptest! {
        #[test]
        fn any_number_is_a_time(after_ms: i64, anchor_ms: i64, period_ms in 1..=Timing::PERIOD_MS_MAX) {
            let every = Timing::every(period_ms, anchor_ms).unwrap();
            let due = every.next_after(after_ms);
            prop_assert!(due.is_none_or(|due| due > after_ms && due >= anchor_ms));
            prop_assert!(cron("0 9 * * *", "Pacific/Apia").next_after(after_ms).is_none_or(|due| due > after_ms));
            prop_assert_eq!(Timing::once(anchor_ms).next_after(after_ms), (anchor_ms > after_ms).then_some(anchor_ms));
        }

        #[test]
        fn the_next_period_is_the_first_after(
            anchor_ms in -10_000_i64..10_000, period_ms in 1_u64..500, after_ms in -20_000_i64..20_000,
        ) {
            let found = Timing::every(period_ms, anchor_ms).unwrap().next_after(after_ms);
            let step = usize::try_from(period_ms).unwrap();
            prop_assert_eq!(found, (anchor_ms..).step_by(step).find(|due| *due > after_ms));
        }

        #[test]
        fn counting_is_stepping(
            timing in prop_oneof![
                (1_u64..50_000_000, any::<i32>()).prop_map(|(period_ms, anchor_ms)| Timing::every(period_ms, anchor_ms.into()).unwrap()),
                Just(cron("*/7 * * * *", "Europe/Berlin")),
                Just(cron("30 1,2,3 * * *", "Europe/Berlin")),
                any::<i32>().prop_map(|at_ms| Timing::once(at_ms.into())),
            ],
            after_ms in -2_000_000_000_000_i64..2_000_000_000_000,
            span_ms in 0_i64..400_000_000,
        ) {
            let Some(from_ms) = timing.next_after(after_ms) else { return Ok(()) };
            let before_ms = from_ms + span_ms;
            let due = std::iter::successors(Some(from_ms), |due| timing.next_after(*due));
            let due: Vec<i64> = due.take_while(|due| *due < before_ms).take(2_000).collect();
            prop_assume!(due.len() < 2_000);
            let expected = Counted { count: due.len() as u64, or_more: false, last_ms: due.last().copied().unwrap_or(from_ms) };
            prop_assert_eq!(timing.skip_count(from_ms, before_ms), expected);
        }

        #[test]
        fn counting_takes_any_numbers(from_ms: i64, before_ms: i64, period_ms in 1..=Timing::PERIOD_MS_MAX) {
            let counted = Timing::every(period_ms, from_ms).unwrap().skip_count(from_ms, before_ms);
            prop_assert!(counted.count == 0 || (from_ms..before_ms).contains(&counted.last_ms));
        }
    }
}
