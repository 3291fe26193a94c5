//! When: durations, times and timings as people write them.
//!
//! | what | written as |
//! |---|---|
//! | a duration | `90s`, `5m`, `1h30m`, `2 days`, `1 week`; also ISO 8601, `PT90S`. A day has 24 hours |
//! | a time | RFC 3339, `2026-03-29T09:00:00+02:00`; the local time of a zone, `2026-03-29 09:00`; `in 20 minutes` |
//! | a zone | a name of the IANA database, `Europe/Berlin` |
//!
//! A local time that a clock skips is taken as much later as the clock is put forward; one that comes twice is the first.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Unit};
use switchboard_schedule::{Timing, Zone};

use crate::input::BadArguments;

/// How a timing is said: exactly one of `at`, `cron` and `every`, and what bounds it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct When<'a> {
    pub(super) at: Option<&'a str>,
    pub(super) cron: Option<&'a str>,
    pub(super) every: Option<&'a str>,
    pub(super) time_zone: Option<&'a str>,
    pub(super) start: Option<&'a str>,
    pub(super) end: Option<&'a str>,
}

/// A timing that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) timing: Timing,
    /// As it was written.
    pub(super) value: String,
    /// Whose clock local times are of.
    pub(super) zone: Zone,
    /// Nothing is due before it, in milliseconds since 1970.
    pub(super) start_ms: Option<i64>,
    /// Nothing is due after it, in milliseconds since 1970.
    pub(super) end_ms: Option<i64>,
    /// What was made of a local time that its clock skips or shows twice.
    pub(super) note: Option<String>,
}

impl When<'_> {
    /// Whether it says when something is due.
    pub(super) fn has_timing(&self) -> bool {
        self.at.is_some() || self.cron.is_some() || self.every.is_some()
    }

    /// Reads it at `now`; local times are of the zone it names, else of `zone`. A time that is over is refused.
    pub(super) fn read_ahead(&self, now: Timestamp, zone: &Zone) -> Result<Read, BadArguments> {
        let read = self.read(now, zone)?;
        if let Timing::Once { at_ms } = read.timing
            && at_ms < now.as_millisecond()
        {
            return Err(BadArguments::invalid("at", over(&read.value, at_ms, now)));
        }
        Ok(read)
    }

    /// The same, and a time may be over: whoever repeats a call says what he said before.
    pub(super) fn read(&self, now: Timestamp, zone: &Zone) -> Result<Read, BadArguments> {
        let zone = self.zone(zone)?;
        let start_ms = bound("start", self.start, now, &zone)?;
        let end_ms = bound("end", self.end, now, &zone)?;
        let read = |timing, value: &str, note| {
            let value = value.trim().to_owned();
            Ok(Read { timing, value, zone: zone.clone(), start_ms, end_ms, note })
        };
        match (self.at, self.cron, self.every) {
            (Some(text), None, None) => {
                let (at, note) = time(text, now, &zone).map_err(|why| BadArguments::invalid("at", why))?;
                read(Timing::once(at.as_millisecond()), text, note)
            }
            (None, Some(text), None) => {
                let timing = Timing::cron(text, zone.clone());
                read(timing.map_err(|why| BadArguments::invalid("cron", why))?, text, None)
            }
            (None, None, Some(text)) => {
                let period_ms = duration_ms(text).map_err(|why| BadArguments::invalid("every", why))?;
                let first = now.as_millisecond().saturating_add_unsigned(period_ms);
                let timing = Timing::every(period_ms, start_ms.unwrap_or(first));
                read(timing.map_err(|why| BadArguments::invalid("every", why))?, text, None)
            }
            (None, None, None) => Err(BadArguments::invalid("at", format_args!("is missing: {ONE_OF}"))),
            _ => Err(BadArguments::invalid("at", format_args!("is not all that was said: {ONE_OF}"))),
        }
    }

    /// The zone it names, else `zone`.
    pub(super) fn zone(&self, zone: &Zone) -> Result<Zone, BadArguments> {
        match self.time_zone {
            None => Ok(zone.clone()),
            Some(name) => Zone::named(name).map_err(|why| BadArguments::invalid("time_zone", why)),
        }
    }
}

const ONE_OF: &str = "say exactly one of at (such as '2026-03-29 09:00' or 'in 20 minutes'), cron (such as '30 9 * * MON-FRI') \
                      and every (such as '5m')";

fn over(text: &str, at_ms: i64, now: Timestamp) -> String {
    let ago = friendly(now.as_millisecond().abs_diff(at_ms));
    format!("'{text}' is over: that was {ago} ago; 'in 0s' is now")
}

/// Reads a bound; none if it is left out or `none`.
pub(super) fn bound(
    parameter: &str,
    text: Option<&str>,
    now: Timestamp,
    zone: &Zone,
) -> Result<Option<i64>, BadArguments> {
    let text = text.filter(|text| *text != NONE);
    let read = |text| time(text, now, zone).map_err(|why| BadArguments::invalid(parameter, why));
    Ok(text.map(read).transpose()?.map(|(at, _)| at.as_millisecond()))
}

/// What is written for no bound.
pub(super) const NONE: &str = "none";

/// Reads a time, and says what was made of one that its clock skips or shows twice.
pub(super) fn time(text: &str, now: Timestamp, zone: &Zone) -> Result<(Timestamp, Option<String>), String> {
    let text = text.trim();
    if let Some(wait) = text.strip_prefix("in ") {
        let wait = duration_ms(wait)?;
        let wait = SignedDuration::from_millis(i64::try_from(wait).unwrap_or(i64::MAX));
        let at = now.checked_add(wait).map_err(|_| format!("'{text}' is beyond the year 9999"))?;
        return Ok((at, None));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok((at, None));
    }
    let is_date_alone = text.parse::<jiff::civil::Date>().is_ok() && text.len() <= "2026-03-29".len();
    match text.parse::<DateTime>() {
        Ok(_) if is_date_alone => Err(format!("'{text}' says no time of day: add it, as in '{text} 09:00'")),
        Ok(local) => {
            let rules = zone.rules();
            let ambiguous = rules.to_ambiguous_timestamp(local);
            let offset = ambiguous.offset();
            let at =
                ambiguous.compatible().map_err(|_| format!("'{text}' is beyond the calendar of {zone}"))?;
            let note = match offset {
                AmbiguousOffset::Unambiguous { .. } => None,
                AmbiguousOffset::Gap { .. } => {
                    let taken = at.to_zoned(rules.clone()).datetime();
                    Some(format!("the clock of {zone} skips {}: taken as {}", clock(local), clock(taken)))
                }
                AmbiguousOffset::Fold { .. } => {
                    Some(format!("{} comes twice that day in {zone}: this is the first", clock(local)))
                }
            };
            Ok((at, note))
        }
        Err(_) => Err(format!(
            "'{text}' is no time: write it as '2026-03-29T09:00:00Z', as the local time '2026-03-29 09:00', or as 'in 20 \
             minutes'"
        )),
    }
}

/// Reads a duration, in milliseconds.
pub(super) fn duration_ms(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let no_duration = || format!("'{text}' is no duration: write it as '90s', '5m', '1h30m' or '2 days'");
    let span: Span = text.parse().map_err(|_| no_duration())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| {
        format!("'{text}' has months or years, whose length varies: say days, or use a cron expression")
    })?;
    let rest = length.round(Unit::Millisecond).map_err(|_| no_duration())?;
    u64::try_from(rest.as_millis())
        .map_err(|_| format!("'{text}' is negative: say how long it is from now on"))
}

/// A duration in the spelling that [`duration_ms`] reads: `1h 30m`.
pub(super) fn friendly(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    let (days, rest) = (millis / DAY_MS, millis % DAY_MS);
    let rest_text = || format!("{:#}", SignedDuration::from_millis(rest));
    match (days, rest) {
        (0, _) => rest_text(),
        (days, 0) => format!("{days}d"),
        (days, _) => format!("{days}d {}", rest_text()),
    }
}

const DAY_MS: i64 = 86_400_000;

/// The first `count` due times after `now`, and what a change of the clock makes of them.
pub(super) fn upcoming(read: &Read, now: Timestamp, count: usize) -> Vec<Upcoming> {
    let mut after_ms = now.as_millisecond();
    if let Some(start_ms) = read.start_ms {
        after_ms = after_ms.max(start_ms.saturating_sub(1));
    }
    // What is due at this very moment is still to come.
    if matches!(read.timing, Timing::Once { .. }) {
        after_ms = after_ms.saturating_sub(1);
    }
    let mut found = Vec::new();
    while found.len() < count
        && let Some(due_ms) = read.timing.next_after(after_ms)
        && read.end_ms.is_none_or(|end_ms| due_ms <= end_ms)
        && let Ok(due) = Timestamp::from_millisecond(due_ms)
    {
        found.push(Upcoming::new(read, due));
        after_ms = due_ms;
    }
    found
}

/// A due time to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upcoming {
    pub(super) at: Timestamp,
    /// As the clock of its zone shows it.
    pub(super) local: String,
    /// What a change of the clock makes of it.
    pub(super) note: Option<String>,
}

impl Upcoming {
    fn new(read: &Read, at: Timestamp) -> Self {
        let rules = read.zone.rules();
        let local = at.to_zoned(rules.clone());
        let note = match &read.timing {
            Timing::Cron { expression, .. } => note_of_cron(expression, at, rules),
            Timing::Once { .. } => read.note.clone(),
            Timing::Every { .. } => None,
        };
        Self { at, local: local.to_string(), note }
    }
}

fn note_of_cron(expression: &str, at: Timestamp, rules: &TimeZone) -> Option<String> {
    let local = rules.to_datetime(at);
    // On a clock that never changes the expression says which local times are meant.
    let meant = Timing::cron(expression, Zone::UTC).ok()?;
    let as_if_utc = |local: DateTime| TimeZone::UTC.to_timestamp(local).ok().map(Timestamp::as_millisecond);
    let local_ms = as_if_utc(local)?;
    if meant.next_after(local_ms - 1) != Some(local_ms) {
        let before = rules.to_offset(at.checked_sub(SignedDuration::from_nanos(1)).ok()?);
        let gap_ms = as_if_utc(before.to_datetime(at))?;
        let skipped = Timestamp::from_millisecond(meant.next_after(gap_ms - 1)?).ok()?;
        let skipped = TimeZone::UTC.to_datetime(skipped);
        return Some(format!("the clock skips {}: at the end of the gap instead", clock(skipped)));
    }
    match rules.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { before, .. } => {
            let which = if rules.to_offset(at) == before { "first" } else { "second" };
            Some(format!("{} comes twice that day: this is the {which}", clock(local)))
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => None,
    }
}

/// `02:30`, with seconds if there are any.
fn clock(local: DateTime) -> impl fmt::Display {
    let time = local.time();
    if time.second() == 0 {
        time.strftime("%H:%M").to_string()
    } else {
        time.strftime("%H:%M:%S").to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const NOW: &str = "2026-03-01T12:00:00Z";

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    fn check<T: fmt::Display>(texts: &[&str], read: impl Fn(&str) -> Result<T, String>, expected: &Expect) {
        use fmt::Write as _;
        let mut lines = String::new();
        for text in texts {
            match read(text) {
                Ok(read) => writeln!(lines, "{text:?} = {read}").unwrap(),
                Err(why) => writeln!(lines, "{text:?}: {why}").unwrap(),
            }
        }
        expected.assert_eq(&lines);
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        check(
            &[
                "90s", "5m", "1h30m", "1h 30m", "2 days", "1 week", "500ms", "1.5h", "PT90S", "0s", "", "5",
                "5x", "-5m", "1 month", "1y", "soon",
            ],
            |text| duration_ms(text).map(friendly),
            &expect![[r#"
                "90s" = 1m 30s
                "5m" = 5m
                "1h30m" = 1h 30m
                "1h 30m" = 1h 30m
                "2 days" = 2d
                "1 week" = 7d
                "500ms" = 500ms
                "1.5h" = 1h 30m
                "PT90S" = 1m 30s
                "0s" = 0s
                "": '' is no duration: write it as '90s', '5m', '1h30m' or '2 days'
                "5": '5' is no duration: write it as '90s', '5m', '1h30m' or '2 days'
                "5x": '5x' is no duration: write it as '90s', '5m', '1h30m' or '2 days'
                "-5m": '-5m' is negative: say how long it is from now on
                "1 month": '1 month' has months or years, whose length varies: say days, or use a cron expression
                "1y": '1y' has months or years, whose length varies: say days, or use a cron expression
                "soon": 'soon' is no duration: write it as '90s', '5m', '1h30m' or '2 days'
            "#]],
        );
    }

    #[test]
    fn times_are_read_in_their_zone() {
        check(
            &[
                "2026-03-29T09:00:00Z",
                "2026-03-29T09:00:00+02:00",
                "2026-03-29 09:00",
                "2026-03-29T09:00:30",
                "2026-03-29 02:30",
                "2026-10-25 02:30",
                "in 20 minutes",
                "in 0s",
                "2026-03-29",
                "09:00",
                "tomorrow",
                "in a while",
                "2026-02-30 09:00",
            ],
            |text| {
                let (at, note) = time(text, NOW.parse().unwrap(), &berlin())?;
                Ok(format!("{at}{}", note.map(|note| format!(" ({note})")).unwrap_or_default()))
            },
            &expect![[r#"
                "2026-03-29T09:00:00Z" = 2026-03-29T09:00:00Z
                "2026-03-29T09:00:00+02:00" = 2026-03-29T07:00:00Z
                "2026-03-29 09:00" = 2026-03-29T07:00:00Z
                "2026-03-29T09:00:30" = 2026-03-29T07:00:30Z
                "2026-03-29 02:30" = 2026-03-29T01:30:00Z (the clock of Europe/Berlin skips 02:30: taken as 03:30)
                "2026-10-25 02:30" = 2026-10-25T00:30:00Z (02:30 comes twice that day in Europe/Berlin: this is the first)
                "in 20 minutes" = 2026-03-01T12:20:00Z
                "in 0s" = 2026-03-01T12:00:00Z
                "2026-03-29": '2026-03-29' says no time of day: add it, as in '2026-03-29 09:00'
                "09:00": '09:00' is no time: write it as '2026-03-29T09:00:00Z', as the local time '2026-03-29 09:00', or as 'in 20 minutes'
                "tomorrow": 'tomorrow' is no time: write it as '2026-03-29T09:00:00Z', as the local time '2026-03-29 09:00', or as 'in 20 minutes'
                "in a while": 'a while' is no duration: write it as '90s', '5m', '1h30m' or '2 days'
                "2026-02-30 09:00": '2026-02-30 09:00' is no time: write it as '2026-03-29T09:00:00Z', as the local time '2026-03-29 09:00', or as 'in 20 minutes'
            "#]],
        );
    }

    #[test]
    fn exactly_one_timing_is_said() {
        let read = |when: When<'_>| {
            let read = when.read_ahead(NOW.parse().unwrap(), &berlin());
            read.map_or_else(|bad| bad.to_string(), |read| serde_json::to_string(&read.timing).unwrap())
        };
        let when = When::default();
        for (when, expected) in [
            (
                when,
                expect![
                    "Invalid value for at: is missing: say exactly one of at (such as '2026-03-29 09:00' or 'in 20 minutes'), cron (such as '30 9 * * MON-FRI') and every (such as '5m')"
                ],
            ),
            (
                When { at: Some("in 5m"), every: Some("5m"), ..when },
                expect![
                    "Invalid value for at: is not all that was said: say exactly one of at (such as '2026-03-29 09:00' or 'in 20 minutes'), cron (such as '30 9 * * MON-FRI') and every (such as '5m')"
                ],
            ),
            (When { at: Some("in 5m"), ..when }, expect![[r#"{"once":{"at_ms":1772366700000}}"#]]),
            (
                When { at: Some("2026-03-01 12:30"), ..when },
                expect!["Invalid value for at: '2026-03-01 12:30' is over: that was 30m ago; 'in 0s' is now"],
            ),
            (
                When { every: Some("5m"), ..when },
                expect![[r#"{"every":{"period_ms":300000,"anchor_ms":1772366700000}}"#]],
            ),
            (
                When { every: Some("5m"), start: Some("2026-03-02 00:00"), ..when },
                expect![[r#"{"every":{"period_ms":300000,"anchor_ms":1772406000000}}"#]],
            ),
            (
                When { every: Some("0s"), ..when },
                expect![
                    "Invalid value for every: a period of 0 ms is not from 1 ms to 315360000000 ms (10 years of 365 days)"
                ],
            ),
            (
                When { cron: Some("0 9 * * *"), ..when },
                expect![[r#"{"cron":{"expression":"0 9 * * *","zone":"Europe/Berlin"}}"#]],
            ),
            (
                When { cron: Some("0 9 * * *"), time_zone: Some("America/New_York"), ..when },
                expect![[r#"{"cron":{"expression":"0 9 * * *","zone":"America/New_York"}}"#]],
            ),
            (
                When { cron: Some("0 9 * * *"), time_zone: Some("Berlin"), ..when },
                expect![
                    "Invalid value for time_zone: there is no time zone 'Berlin' in the IANA database; did you mean 'Europe/Berlin'?"
                ],
            ),
            (
                When { cron: Some("61 9 * * *"), ..when },
                expect!["Invalid value for cron: '61' is no minute of a cron expression: it takes 0 to 59"],
            ),
        ] {
            expected.assert_eq(&read(when));
        }
    }

    fn check_upcoming(when: When<'_>, now: &str, count: usize, expected: &Expect) {
        use fmt::Write as _;
        let now = now.parse().unwrap();
        let mut lines = String::new();
        for due in upcoming(&when.read_ahead(now, &berlin()).unwrap(), now, count) {
            let note = due.note.map(|note| format!(" ({note})")).unwrap_or_default();
            writeln!(lines, "{} {}{note}", due.at, due.local).unwrap();
        }
        expected.assert_eq(&lines);
    }

    #[test]
    fn a_preview_says_where_the_clock_skips_or_repeats_a_time() {
        let cron = |cron| When { cron: Some(cron), ..When::default() };
        check_upcoming(
            cron("30 2 * * *"),
            "2026-03-28T00:00:00Z",
            3,
            &expect![[r"
            2026-03-28T01:30:00Z 2026-03-28T02:30:00+01:00[Europe/Berlin]
            2026-03-29T01:00:00Z 2026-03-29T03:00:00+02:00[Europe/Berlin] (the clock skips 02:30: at the end of the gap instead)
            2026-03-30T00:30:00Z 2026-03-30T02:30:00+02:00[Europe/Berlin]
        "]],
        );
        check_upcoming(
            cron("30 2 * * *"),
            "2026-10-24T00:00:00Z",
            3,
            &expect![[r"
            2026-10-24T00:30:00Z 2026-10-24T02:30:00+02:00[Europe/Berlin]
            2026-10-25T00:30:00Z 2026-10-25T02:30:00+02:00[Europe/Berlin] (02:30 comes twice that day: this is the first)
            2026-10-26T01:30:00Z 2026-10-26T02:30:00+01:00[Europe/Berlin]
        "]],
        );
        check_upcoming(
            cron("*/30 2 * * *"),
            "2026-10-25T00:00:00Z",
            5,
            &expect![[r"
            2026-10-25T00:30:00Z 2026-10-25T02:30:00+02:00[Europe/Berlin] (02:30 comes twice that day: this is the first)
            2026-10-25T01:00:00Z 2026-10-25T02:00:00+01:00[Europe/Berlin] (02:00 comes twice that day: this is the second)
            2026-10-25T01:30:00Z 2026-10-25T02:30:00+01:00[Europe/Berlin] (02:30 comes twice that day: this is the second)
            2026-10-26T01:00:00Z 2026-10-26T02:00:00+01:00[Europe/Berlin]
            2026-10-26T01:30:00Z 2026-10-26T02:30:00+01:00[Europe/Berlin]
        "]],
        );
        let at = When { at: Some("2026-03-29 02:30"), ..When::default() };
        check_upcoming(
            at,
            "2026-03-28T00:00:00Z",
            3,
            &expect![[r"
            2026-03-29T01:30:00Z 2026-03-29T03:30:00+02:00[Europe/Berlin] (the clock of Europe/Berlin skips 02:30: taken as 03:30)
        "]],
        );
    }

    #[test]
    fn a_preview_ends_with_the_schedule() {
        let every = When { every: Some("1h"), ..When::default() };
        let bounded = When { start: Some("2026-03-02 00:30"), end: Some("2026-03-02 02:30"), ..every };
        check_upcoming(
            bounded,
            NOW,
            10,
            &expect![[r"
            2026-03-01T23:30:00Z 2026-03-02T00:30:00+01:00[Europe/Berlin]
            2026-03-02T00:30:00Z 2026-03-02T01:30:00+01:00[Europe/Berlin]
            2026-03-02T01:30:00Z 2026-03-02T02:30:00+01:00[Europe/Berlin]
        "]],
        );
        check_upcoming(
            every,
            NOW,
            2,
            &expect![[r"
            2026-03-01T13:00:00Z 2026-03-01T14:00:00+01:00[Europe/Berlin]
            2026-03-01T14:00:00Z 2026-03-01T15:00:00+01:00[Europe/Berlin]
        "]],
        );
        check_upcoming(
            When { at: Some("in 0s"), ..When::default() },
            NOW,
            2,
            &expect![[r"
            2026-03-01T12:00:00Z 2026-03-01T13:00:00+01:00[Europe/Berlin]
        "]],
        );
    }
}
