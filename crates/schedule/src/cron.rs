//! Cron expressions, and when they are due in a time zone whose clock jumps.
//!
//! # The dialect
//!
//! Five fields parted by white space: minute (0–59), hour (0–23), day of the month (1–31), month (1–12 or `JAN`–`DEC`), day of
//! the week (0–7 or `SUN`–`SAT`; 0 and 7 are Sunday). A field is a list of `*`, values and ranges parted by commas; `*` and
//! ranges may have a step: `*/15`, `1-30/5`. Names are read in any case. Only ranges of weekdays may wrap around: `FRI-MON`.
//! A day matches if both day fields let it through or, when neither of them is `*`, if either does. In place of the five
//! fields there may stand `@hourly`, `@daily` or `@midnight`, `@weekly`, `@monthly`, `@yearly` or `@annually`.
//!
//! Everything else is refused, since other programs read it in different ways: seconds, years, `@reboot`, `?`, `L`, `W`, `#`,
//! `H`, steps without a range (`5/15`), steps longer than their field, empty items of a list.
//!
//! # When the clock jumps
//!
//! Where the zone's offset changes, local times are left out (a *gap*) or come twice (a *fold*). The rule is that of cron(8)
//! as Vixie cron 4 and cronie have it (section "Daylight Saving Time and other time changes"; in cronie `src/cron.c` and
//! the flags `MIN_STAR` and `HR_STAR` of `src/entry.c`):
//!
//! * An expression whose minute or hour begins with `*` follows the clock. What falls into a gap is left out; what falls into
//!   a fold happens twice.
//! * Any other has *fixed times*, and each of them happens once. What falls into a gap happens at the first instant after it,
//!   several times of one gap together; what falls into a fold happens at its first coming.
//!
//! We differ from cron(8) in two points. It runs a job once for every time of a gap, all at once; here they are one. It takes
//! a jump of three hours or more for a correction of the clock and drops what was left out; the database of time zones has no
//! corrections, and a zone that skips a day (`Pacific/Apia`, 30 December 2011) still owes the fixed times of that day.
//!
//! Parsing and the calendar (which days there are, which of them match) are `croner`'s; it is used without a zone.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use crate::Zone;

/// A cron expression of five fields, or a macro such as `@daily`. Cheap to clone; equal if written alike.
///
/// ```
/// # use switchboard_schedule::{Cron, Zone};
/// let cron = Cron::parse("30 2 * * *")?;
/// let berlin = Zone::named("Europe/Berlin")?;
/// // On 30 March 2025 there is no half past two in Berlin: the clock goes from 02:00 to 03:00.
/// let next = cron.next_after("2025-03-29T12:00:00Z".parse()?, &berlin);
/// assert_eq!(next, Some("2025-03-30T01:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cron(Arc<Pattern>);

struct Pattern {
    text: Box<str>,
    calendar: croner::Cron,
    /// Neither the minute nor the hour begins with `*`.
    fixed_times: bool,
    /// None of the days it asks for is in any calendar, such as the 30th of February.
    never: bool,
}

impl Cron {
    /// The longest expression, in bytes. Every value of every field fits in.
    pub const MAX_BYTES: usize = 512;

    /// How far ahead [`next_after`](Self::next_after) looks, in calendar years.
    ///
    /// The longest pause of any expression is eight years, from 29 February 2096 to 29 February 2104; it doubles where the
    /// clock leaves out just that time.
    pub const HORIZON_YEARS: i16 = 20;

    /// Parses `text`. Surrounding white space does not count.
    ///
    /// Costs a hundred nanoseconds if it is one of the expressions in use, else some ten thousand.
    pub fn parse(text: &str) -> Result<Self, InvalidCron> {
        let text = text.trim_ascii();
        if let Some(known) = known(text) {
            return Ok(known);
        }
        let cron = Self(Arc::new(Pattern::parse(text)?));
        remember(&cron);
        Ok(cron)
    }

    /// The expression as it was given, without surrounding white space.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The first time it is due in `zone` after `after`, which itself does not count. Whole minutes of the zone's clock,
    /// save at the end of a gap.
    ///
    /// None if there is none within [`HORIZON_YEARS`](Self::HORIZON_YEARS), or before the year 5000.
    pub fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        if self.0.never {
            return None;
        }
        let rules = zone.rules();
        let start = after.checked_sub(LOOK_BACK).unwrap_or(Timestamp::MIN);
        let mut changes = rules.following(start).peekable();

        // Where the clock stands at `after`, and how far it has been.
        let mut offset = rules.to_offset(start);
        let mut furthest = DateTime::MIN;
        while let Some(change) = changes.next_if(|change| change.timestamp() <= after) {
            furthest = furthest.max(offset.to_datetime(change.timestamp()));
            offset = change.offset();
        }
        let now = offset.to_datetime(after);
        let horizon = now.year().saturating_add(Self::HORIZON_YEARS).min(LAST_YEAR);
        let first = |from: DateTime, inclusive| {
            let found = self.0.calendar.find_next_occurrence(&from, inclusive).ok()?;
            (found.year() <= horizon).then_some(found)
        };
        // What a fold brings back is over and done with for fixed times.
        let done = self.0.fixed_times && furthest > now;
        let mut local = if done { first(furthest, true)? } else { first(now, false)? };

        for change in changes {
            if let Some(due) = before(local, offset, change.timestamp()) {
                return Some(due);
            }
            // The clock came to the end of this offset before it came to `local`.
            let resumes = change.offset().to_datetime(change.timestamp());
            let in_gap = local < resumes;
            if in_gap && self.0.fixed_times {
                return Some(change.timestamp());
            }
            let in_fold = resumes < offset.to_datetime(change.timestamp());
            if in_gap || (in_fold && !self.0.fixed_times) {
                local = first(resumes, true)?;
            }
            offset = change.offset();
        }
        offset.to_timestamp(local).ok()
    }
}

/// The last year of `croner`'s calendar that is whole.
const LAST_YEAR: i16 = 4_999;

/// How far back a change of the clock may still matter: longer than any fold. The longest in the database are of 24 hours.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(48);

/// The instant at which a clock with `offset` shows `local`, if that comes before `end`.
fn before(local: DateTime, offset: Offset, end: Timestamp) -> Option<Timestamp> {
    offset.to_timestamp(local).ok().filter(|instant| *instant < end)
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({self})")
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Cron {}

impl FromStr for Cron {
    type Err = InvalidCron;

    fn from_str(text: &str) -> Result<Self, InvalidCron> {
        Self::parse(text)
    }
}

/// Patterns by their text: a pattern takes `croner` a hundred times longer to parse than to ask, and 6 kB.
///
/// A schedule keeps the text alone, so this is what bounds the memory that patterns take.
static KNOWN: LazyLock<RwLock<HashMap<Box<str>, Cron>>> = LazyLock::new(RwLock::default);

const KNOWN_MAX: usize = 256;

fn known(text: &str) -> Option<Cron> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(text).cloned()
}

fn remember(cron: &Cron) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= KNOWN_MAX {
        // Which one goes makes no difference to what is answered; the first the table yields costs nothing to find.
        let gone = known.keys().next().cloned();
        gone.and_then(|gone| known.remove(&gone));
    }
    known.insert(cron.as_str().into(), cron.clone());
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, InvalidCron> {
        if text.len() > Cron::MAX_BYTES {
            return Err(InvalidCron::TooLong { len: text.len() });
        }
        let given: Vec<&str> = expand_macro(text)?.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = given[..] else {
            return Err(InvalidCron::FieldCount { fields: given.len() });
        };
        let fields = [
            Field::parse(&MINUTE, minute)?,
            Field::parse(&HOUR, hour)?,
            Field::parse(&DAY, day)?,
            Field::parse(&MONTH, month)?,
            Field::parse(&WEEKDAY, weekday)?,
        ];
        let [_, _, days, months, weekdays] = &fields;
        let never = weekdays.all && !months.values().any(|month| days.has_up_to(longest(month)));
        let canonical = fields.each_ref().map(ToString::to_string).join(" ");
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let calendar = parser.parse(&canonical).map_err(|cause| InvalidCron::Calendar(cause.to_string()))?;
        let fixed_times = !minute.starts_with('*') && !hour.starts_with('*');
        Ok(Self { text: text.into(), calendar, fixed_times, never })
    }
}

fn expand_macro(text: &str) -> Result<&str, InvalidCron> {
    if !text.starts_with('@') {
        return Ok(text);
    }
    match text.to_ascii_lowercase().as_str() {
        "@hourly" => Ok("0 * * * *"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@monthly" => Ok("0 0 1 * *"),
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        _ => Err(InvalidCron::UnknownMacro { given: text.to_owned() }),
    }
}

/// How many days `month` can have.
fn longest(month: u8) -> u8 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What may stand in one of the five fields.
struct Kind {
    name: &'static str,
    first: u8,
    last: u8,
    /// Names of the values from `first` on.
    names: &'static [&'static str],
    /// How many values there are before the field begins anew, if its ranges may wrap around.
    wraps_after: Option<u8>,
}

const MINUTE: Kind = Kind { name: "minute", first: 0, last: 59, names: &[], wraps_after: None };
const HOUR: Kind = Kind { name: "hour", first: 0, last: 23, names: &[], wraps_after: None };
const DAY: Kind = Kind { name: "day of month", first: 1, last: 31, names: &[], wraps_after: None };
const MONTH: Kind = Kind {
    name: "month",
    first: 1,
    last: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    wraps_after: None,
};
const WEEKDAY: Kind = Kind {
    name: "day of week",
    first: 0,
    last: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    wraps_after: Some(7),
};

impl Kind {
    fn refuse(&self, item: &str, why: impl Into<String>) -> InvalidCron {
        InvalidCron::Field { field: self.name, item: item.to_owned(), why: why.into() }
    }

    /// The number `text` is or stands for.
    fn value(&self, item: &str, text: &str) -> Result<u8, InvalidCron> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        if let Some(value) = named.and_then(|at| u8::try_from(at).ok()) {
            return Ok(self.first + value);
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Digits that are no u8 are too many.
        let number = digits.then(|| text.parse().unwrap_or(u8::MAX));
        number.filter(|value| (self.first..=self.last).contains(value)).ok_or_else(|| {
            let names = match self.names {
                [first, .., last] => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            self.refuse(item, format!("it takes {} to {}{names}", self.first, self.last))
        })
    }

    fn step(&self, item: &str, text: &str) -> Result<u8, InvalidCron> {
        let size = self.wraps_after.unwrap_or(self.last - self.first + 1);
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let step = digits.then(|| text.parse().ok()).flatten();
        step.filter(|step| (1..=size).contains(step))
            .ok_or_else(|| self.refuse(item, format!("the step after '/' is a number from 1 to {size}")))
    }
}

/// The values a field lets through. Written as `*` or as a list of numbers.
#[derive(Default)]
struct Field {
    /// One bit for each value.
    bits: u64,
    /// Lets everything through by a `*`.
    all: bool,
}

impl Field {
    fn parse(kind: &Kind, text: &str) -> Result<Self, InvalidCron> {
        let mut field = Self::default();
        for item in text.split(',') {
            field.add(kind, item)?;
        }
        Ok(field)
    }

    fn add(&mut self, kind: &Kind, item: &str) -> Result<(), InvalidCron> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(kind.step(item, step)?)),
            None => (item, None),
        };
        let (first, last) = if range == "*" {
            self.all |= step.is_none_or(|step| step == 1);
            // The second Sunday would be one step too many.
            (kind.first, kind.wraps_after.map_or(kind.last, |size| size - 1))
        } else if let Some((first, last)) = range.split_once('-') {
            (kind.value(item, first)?, kind.value(item, last)?)
        } else if let Some(step) = step {
            let why = match range {
                "" => format!("write '*/{step}'"),
                first => format!("a step goes with '*' or a range; write '{first}-{}/{step}'", kind.last),
            };
            return Err(kind.refuse(item, why));
        } else {
            let value = kind.value(item, range)?;
            (value, value)
        };
        let last = match kind.wraps_after {
            Some(size) if first > last => last + size,
            None if first > last => {
                return Err(kind.refuse(
                    item,
                    format!("the range runs backwards; write '{first}-{},{}-{last}'", kind.last, kind.first),
                ));
            }
            _ => last,
        };
        for value in (first..=last).step_by(usize::from(step.unwrap_or(1))) {
            self.bits |= 1 << kind.wraps_after.map_or(value, |size| value % size);
        }
        Ok(())
    }

    fn values(&self) -> impl Iterator<Item = u8> {
        (0..64).filter(|value| self.bits & (1 << value) != 0)
    }

    /// Whether any value up to `last` gets through.
    fn has_up_to(&self, last: u8) -> bool {
        self.values().any(|value| value <= last)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.all {
            return f.write_str("*");
        }
        let values: Vec<String> = self.values().map(|value| value.to_string()).collect();
        f.write_str(&values.join(","))
    }
}

/// Why a text is no cron expression. Each says what would be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    /// There are not five fields.
    #[error(
        "a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', \
         not {fields}"
    )]
    FieldCount {
        /// How many there are.
        fields: usize,
    },
    /// A field holds something else than values, ranges and steps.
    #[error("'{item}' is no {field} of a cron expression: {why}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// The item of its list.
        item: String,
        /// What would be right.
        why: String,
    },
    /// It begins with `@` and is none of the macros.
    #[error("'{given}' is none of @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually")]
    UnknownMacro {
        /// The expression.
        given: String,
    },
    /// It is longer than [`Cron::MAX_BYTES`].
    #[error("a cron expression of {len} bytes exceeds the limit of {} bytes", Cron::MAX_BYTES)]
    TooLong {
        /// How long it is, in bytes.
        len: usize,
    },
    /// The library that knows the calendar refuses what the checks before it let through.
    #[error("the calendar cannot take this cron expression: {0}")]
    Calendar(String),
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::iter;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::named(name).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn times<'a>(cron: &'a Cron, after: Timestamp, zone: &'a Zone) -> impl Iterator<Item = Timestamp> + 'a {
        iter::successors(cron.next_after(after, zone), |due| cron.next_after(*due, zone))
    }

    /// The times of each expression after `after` and before `until`, as the clock of the zone shows them.
    fn check_times(zone_name: &str, after: &str, until: &str, expressions: &[&str], expected: Expect) {
        let zone = zone(zone_name);
        let mut table = String::new();
        for expression in expressions {
            let cron = Cron::parse(expression).unwrap();
            let due = times(&cron, at(after), &zone).take_while(|due| *due < at(until));
            let shown: Vec<_> = due
                .map(|due| {
                    let offset = zone.rules().to_offset(due);
                    let hours = f64::from(offset.seconds()) / 3_600.0;
                    format!("{}{hours:+}", offset.to_datetime(due).strftime("%d %H:%M"))
                })
                .collect();
            writeln!(table, "{expression}: {}", shown.join(", ")).unwrap();
        }
        expected.assert_eq(&table);
    }

    /// Every way in which an expression may meet a jump at two o'clock.
    const AROUND_TWO: &[&str] = &[
        "30 2 * * *",
        "0 2 * * *",
        "0 3 * * *",
        "0,15,45 2,3 * * *",
        "*/20 2 * * *",
        "30 * * * *",
        "30 1-3 * * *",
    ];

    #[test]
    fn berlin_leaves_out_an_hour() {
        check_times(
            "Europe/Berlin",
            "2025-03-29T22:30:00Z",
            "2025-03-30T02:59:00Z",
            AROUND_TWO,
            expect![[r"
            30 2 * * *: 30 03:00+2
            0 2 * * *: 30 03:00+2
            0 3 * * *: 30 03:00+2
            0,15,45 2,3 * * *: 30 03:00+2, 30 03:15+2, 30 03:45+2
            */20 2 * * *: 
            30 * * * *: 30 00:30+1, 30 01:30+1, 30 03:30+2, 30 04:30+2
            30 1-3 * * *: 30 01:30+1, 30 03:00+2, 30 03:30+2
        "]],
        );
    }

    #[test]
    fn berlin_repeats_an_hour() {
        check_times(
            "Europe/Berlin",
            "2025-10-25T22:30:00Z",
            "2025-10-26T03:59:00Z",
            AROUND_TWO,
            expect![[r"
            30 2 * * *: 26 02:30+2
            0 2 * * *: 26 02:00+2
            0 3 * * *: 26 03:00+1
            0,15,45 2,3 * * *: 26 02:00+2, 26 02:15+2, 26 02:45+2, 26 03:00+1, 26 03:15+1, 26 03:45+1
            */20 2 * * *: 26 02:00+2, 26 02:20+2, 26 02:40+2, 26 02:00+1, 26 02:20+1, 26 02:40+1
            30 * * * *: 26 01:30+2, 26 02:30+2, 26 02:30+1, 26 03:30+1, 26 04:30+1
            30 1-3 * * *: 26 01:30+2, 26 02:30+2, 26 03:30+1
        "]],
        );
    }

    #[test]
    fn new_york_leaves_out_an_hour() {
        check_times(
            "America/New_York",
            "2025-03-09T05:30:00Z",
            "2025-03-09T08:59:00Z",
            AROUND_TWO,
            expect![[r"
                30 2 * * *: 09 03:00-4
                0 2 * * *: 09 03:00-4
                0 3 * * *: 09 03:00-4
                0,15,45 2,3 * * *: 09 03:00-4, 09 03:15-4, 09 03:45-4
                */20 2 * * *: 
                30 * * * *: 09 01:30-5, 09 03:30-4, 09 04:30-4
                30 1-3 * * *: 09 01:30-5, 09 03:00-4, 09 03:30-4
            "]],
        );
    }

    #[test]
    fn new_york_repeats_an_hour() {
        let around_one = &["30 1 * * *", "0 2 * * *", "*/20 1 * * *", "30 * * * *", "0,30 0-2 * * *"];
        check_times(
            "America/New_York",
            "2025-11-02T03:30:00Z",
            "2025-11-02T08:31:00Z",
            around_one,
            expect![[r"
                30 1 * * *: 02 01:30-4
                0 2 * * *: 02 02:00-5
                */20 1 * * *: 02 01:00-4, 02 01:20-4, 02 01:40-4, 02 01:00-5, 02 01:20-5, 02 01:40-5
                30 * * * *: 02 00:30-4, 02 01:30-4, 02 01:30-5, 02 02:30-5, 02 03:30-5
                0,30 0-2 * * *: 02 00:00-4, 02 00:30-4, 02 01:00-4, 02 01:30-4, 02 02:00-5, 02 02:30-5
            "]],
        );
    }

    #[test]
    fn lord_howe_leaves_out_half_an_hour() {
        let (after, until) = ("2025-10-04T13:00:00Z", "2025-10-04T17:00:00Z");
        let expressions = &["0,10,20,30 2 * * *", "15 2 * * *", "45 2 * * *", "*/10 2 * * *", "15 * * * *"];
        check_times(
            "Australia/Lord_Howe",
            after,
            until,
            expressions,
            expect![[r"
            0,10,20,30 2 * * *: 05 02:30+11
            15 2 * * *: 05 02:30+11
            45 2 * * *: 05 02:45+11
            */10 2 * * *: 05 02:30+11, 05 02:40+11, 05 02:50+11
            15 * * * *: 05 00:15+10.5, 05 01:15+10.5, 05 03:15+11
        "]],
        );
    }

    #[test]
    fn lord_howe_repeats_half_an_hour() {
        let (after, until) = ("2025-04-05T13:30:00Z", "2025-04-05T16:31:00Z");
        let expressions = &["45 1 * * *", "0 2 * * *", "15 1 * * *", "*/10 1 * * *", "45 * * * *"];
        check_times(
            "Australia/Lord_Howe",
            after,
            until,
            expressions,
            expect![[r"
            45 1 * * *: 06 01:45+11
            0 2 * * *: 06 02:00+10.5
            15 1 * * *: 06 01:15+11
            */10 1 * * *: 06 01:00+11, 06 01:10+11, 06 01:20+11, 06 01:30+11, 06 01:40+11, 06 01:50+11, 06 01:30+10.5, 06 01:40+10.5, 06 01:50+10.5
            45 * * * *: 06 00:45+11, 06 01:45+11, 06 01:45+10.5, 06 02:45+10.5
        "]],
        );
    }

    #[test]
    fn troll_leaves_out_two_hours() {
        let (after, until) = ("2025-03-30T00:00:00Z", "2025-03-30T02:31:00Z");
        let expressions = &["30 1 * * *", "0 1,2 * * *", "0 3 * * *", "*/30 1,2 * * *", "0 * * * *"];
        check_times(
            "Antarctica/Troll",
            after,
            until,
            expressions,
            expect![[r"
            30 1 * * *: 30 03:00+2
            0 1,2 * * *: 30 03:00+2
            0 3 * * *: 30 03:00+2
            */30 1,2 * * *: 
            0 * * * *: 30 03:00+2, 30 04:00+2
        "]],
        );
    }

    #[test]
    fn troll_repeats_two_hours() {
        let (after, until) = ("2025-10-25T22:00:00Z", "2025-10-26T03:31:00Z");
        let expressions = &["30 1 * * *", "0 1,2 * * *", "0 3 * * *", "*/30 1 * * *", "0 * * * *"];
        check_times(
            "Antarctica/Troll",
            after,
            until,
            expressions,
            expect![[r"
            30 1 * * *: 26 01:30+2
            0 1,2 * * *: 26 01:00+2, 26 02:00+2
            0 3 * * *: 26 03:00+0
            */30 1 * * *: 26 01:00+2, 26 01:30+2, 26 01:00+0, 26 01:30+0
            0 * * * *: 26 01:00+2, 26 02:00+2, 26 01:00+0, 26 02:00+0, 26 03:00+0
        "]],
        );
    }

    #[test]
    fn casablanca_turns_its_clock_the_other_way_round() {
        let expressions = &["30 2 * * *", "*/30 2 * * *"];
        // Ramadan of 2026: back at 03:00 on 15 February, forward at 02:00 on 22 March.
        check_times(
            "Africa/Casablanca",
            "2026-02-14T12:00:00Z",
            "2026-02-15T12:00:00Z",
            expressions,
            expect![[r"
                30 2 * * *: 15 02:30+1
                */30 2 * * *: 15 02:00+1, 15 02:30+1, 15 02:00+0, 15 02:30+0
            "]],
        );
        check_times(
            "Africa/Casablanca",
            "2026-03-21T12:00:00Z",
            "2026-03-22T12:00:00Z",
            expressions,
            expect![[r"
                30 2 * * *: 22 03:00+1
                */30 2 * * *: 
            "]],
        );
    }

    #[test]
    fn apia_leaves_out_a_day_and_owes_its_fixed_times() {
        let expressions = &["0 9 * * *", "0 9,12 * * FRI", "0 */12 * * *", "0 9 30 12 *", "0 9 30 * SUN"];
        check_times(
            "Pacific/Apia",
            "2011-12-29T18:00:00Z",
            "2012-01-01T00:00:00Z",
            expressions,
            expect![[r"
            0 9 * * *: 29 09:00-10, 31 00:00+14, 31 09:00+14, 01 09:00+14
            0 9,12 * * FRI: 31 00:00+14
            0 */12 * * *: 29 12:00-10, 31 00:00+14, 31 12:00+14, 01 00:00+14, 01 12:00+14
            0 9 30 12 *: 31 00:00+14
            0 9 30 * SUN: 31 00:00+14, 01 09:00+14
        "]],
        );
    }

    #[test]
    fn kwajalein_repeats_a_day() {
        check_times(
            "Pacific/Kwajalein",
            "1969-09-29T13:00:00Z",
            "1969-10-01T13:00:00Z",
            &["30 12 * * *", "0 */12 * * *"],
            expect![[r"
                30 12 * * *: 30 12:30+11
                0 */12 * * *: 30 12:00+11, 30 12:00-12, 01 00:00-12
            "]],
        );
    }

    #[test]
    fn a_clock_of_odd_seconds_is_followed() {
        // Local mean time, 5 hours, 53 minutes and 28 seconds ahead of UTC.
        check_times(
            "Asia/Kolkata",
            "1853-12-31T00:00:00Z",
            "1854-01-02T00:00:00Z",
            &["0 12 * * *"],
            expect![[r"
                0 12 * * *: 31 12:00+5.891111111111111, 01 12:00+5.891111111111111
            "]],
        );
    }

    #[test]
    fn what_a_fold_repeats_is_over_wherever_the_search_begins() {
        let zone = zone("Europe/Berlin");
        let fixed = Cron::parse("30 2 * * *").unwrap();
        let first = at("2025-10-26T00:30:00Z");
        assert_eq!(fixed.next_after(at("2025-10-26T00:29:59Z"), &zone), Some(first));
        for inside in
            ["2025-10-26T00:30:00Z", "2025-10-26T01:00:00Z", "2025-10-26T01:10:00Z", "2025-10-26T01:30:00Z"]
        {
            assert_eq!(fixed.next_after(at(inside), &zone), Some(at("2025-10-27T01:30:00Z")), "{inside}");
        }
    }

    #[test]
    fn fractions_of_a_second_count() {
        let cron = Cron::parse("* * * * *").unwrap();
        assert_eq!(
            cron.next_after(at("2025-01-01T00:00:59.999Z"), &Zone::UTC),
            Some(at("2025-01-01T00:01:00Z"))
        );
        assert_eq!(cron.next_after(at("2025-01-01T00:01:00Z"), &Zone::UTC), Some(at("2025-01-01T00:02:00Z")));
        assert_eq!(
            cron.next_after(at("2025-01-01T00:01:00.001Z"), &Zone::UTC),
            Some(at("2025-01-01T00:02:00Z"))
        );
        assert_eq!(
            cron.next_after(at("1969-12-31T23:58:59.5Z"), &Zone::UTC),
            Some(at("1969-12-31T23:59:00Z"))
        );
    }

    /// What `croner` is handed for each expression.
    fn check_accepted(expressions: &[&str], expected: Expect) {
        let mut table = String::new();
        for expression in expressions {
            let cron = Cron::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
            writeln!(table, "{expression} → {}", cron.0.calendar.pattern.as_str()).unwrap();
        }
        expected.assert_eq(&table);
    }

    #[test]
    fn the_dialect_is_accepted() {
        check_accepted(
            &[
                "* * * * *",
                "  */15\t9-17  * * MON-FRI  ",
                "1-30/5 0 1,15 * *",
                "5,10-12,*/20 * * * *",
                "*,5 */1 * * *",
                "00 09 01 jan Sun",
                "0 0 * mar-May,DEC 0,7",
                "0 0 * * FRI-MON",
                "0 0 * * FRI-MON/2",
                "0 0 * * 5-7",
                "0 0 * * 7-2",
                "0 0 * * sat-SUN",
                "0 0 * * 0-7",
                "0 0 * * */2",
                "0 0 * * */7",
                "59 23 31 12 6",
                "*/60 */24 */31 */12 *",
                "0 0 1-31 * *",
                "@hourly",
                "@Daily",
                "@midnight",
                "@weekly",
                "@monthly",
                "@yearly",
                "@ANNUALLY",
            ],
            expect![[r"
                * * * * * → * * * * *
                  */15	9-17  * * MON-FRI   → 0,15,30,45 9,10,11,12,13,14,15,16,17 * * 1,2,3,4,5
                1-30/5 0 1,15 * * → 1,6,11,16,21,26 0 1,15 * *
                5,10-12,*/20 * * * * → 0,5,10,11,12,20,40 * * * *
                *,5 */1 * * * → * * * * *
                00 09 01 jan Sun → 0 9 1 1 0
                0 0 * mar-May,DEC 0,7 → 0 0 * 3,4,5,12 0
                0 0 * * FRI-MON → 0 0 * * 0,1,5,6
                0 0 * * FRI-MON/2 → 0 0 * * 0,5
                0 0 * * 5-7 → 0 0 * * 0,5,6
                0 0 * * 7-2 → 0 0 * * 0,1,2
                0 0 * * sat-SUN → 0 0 * * 0,6
                0 0 * * 0-7 → 0 0 * * 0,1,2,3,4,5,6
                0 0 * * */2 → 0 0 * * 0,2,4,6
                0 0 * * */7 → 0 0 * * 0
                59 23 31 12 6 → 59 23 31 12 6
                */60 */24 */31 */12 * → 0 0 1 1 *
                0 0 1-31 * * → 0 0 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31 * *
                @hourly → 0 * * * *
                @Daily → 0 0 * * *
                @midnight → 0 0 * * *
                @weekly → 0 0 * * 0
                @monthly → 0 0 1 * *
                @yearly → 0 0 1 1 *
                @ANNUALLY → 0 0 1 1 *
            "]],
        );
    }

    fn check_refused(expressions: &[&str], expected: Expect) {
        let mut table = String::new();
        for expression in expressions {
            let error = Cron::parse(expression).expect_err(expression);
            writeln!(table, "{expression:?}: {error}").unwrap();
        }
        expected.assert_eq(&table);
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn everything_else_is_refused() {
        check_refused(
            &[
                "",
                "* * * *",
                "* * * * * *",
                "0 * * * * * *",
                "@reboot",
                "@daily 5",
                "5 @daily",
                "0 0 ? * *",
                "0 0 L * *",
                "0 0 LW * *",
                "0 0 15W * *",
                "0 0 * * 5L",
                "0 0 * * MON#2",
                "0 0 * * +MON",
                "H * * * *",
                "60 * * * *",
                "0 24 * * *",
                "0 0 0 * *",
                "0 0 32 * *",
                "0 0 1 13 *",
                "0 0 * * 8",
                "-1 * * * *",
                "5/15 * * * *",
                "/15 * * * *",
                "*/0 * * * *",
                "*/61 * * * *",
                "*/ * * * *",
                "*/+5 * * * *",
                "*/5/2 * * * *",
                "1,,2 * * * *",
                ",1 * * * *",
                "1, * * * *",
                "50-10 * * * *",
                "0 22-2 * * *",
                "0 0 * NOV-FEB *",
                "1-2-3 * * * *",
                "1- * * * *",
                "*-5 * * * *",
                "** * * * *",
                "MON * * * *",
                "0 0 * MON *",
                "0 0 * * JAN",
                "0 0 * JANFEB *",
                "0 0 * * MONDAY",
                "0 0 * 1MAR *",
                "٣ * * * *",
                "0\u{a0}0 * * *",
                "9999999999 * * * *",
            ],
            expect![[r#"
                "": a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', not 0
                "* * * *": a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', not 4
                "* * * * * *": a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', not 6
                "0 * * * * * *": a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', not 7
                "@reboot": '@reboot' is none of @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually
                "@daily 5": '@daily 5' is none of @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually
                "5 @daily": a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', not 2
                "0 0 ? * *": '?' is no day of month of a cron expression: it takes 1 to 31
                "0 0 L * *": 'L' is no day of month of a cron expression: it takes 1 to 31
                "0 0 LW * *": 'LW' is no day of month of a cron expression: it takes 1 to 31
                "0 0 15W * *": '15W' is no day of month of a cron expression: it takes 1 to 31
                "0 0 * * 5L": '5L' is no day of week of a cron expression: it takes 0 to 7, or SUN to SAT
                "0 0 * * MON#2": 'MON#2' is no day of week of a cron expression: it takes 0 to 7, or SUN to SAT
                "0 0 * * +MON": '+MON' is no day of week of a cron expression: it takes 0 to 7, or SUN to SAT
                "H * * * *": 'H' is no minute of a cron expression: it takes 0 to 59
                "60 * * * *": '60' is no minute of a cron expression: it takes 0 to 59
                "0 24 * * *": '24' is no hour of a cron expression: it takes 0 to 23
                "0 0 0 * *": '0' is no day of month of a cron expression: it takes 1 to 31
                "0 0 32 * *": '32' is no day of month of a cron expression: it takes 1 to 31
                "0 0 1 13 *": '13' is no month of a cron expression: it takes 1 to 12, or JAN to DEC
                "0 0 * * 8": '8' is no day of week of a cron expression: it takes 0 to 7, or SUN to SAT
                "-1 * * * *": '-1' is no minute of a cron expression: it takes 0 to 59
                "5/15 * * * *": '5/15' is no minute of a cron expression: a step goes with '*' or a range; write '5-59/15'
                "/15 * * * *": '/15' is no minute of a cron expression: write '*/15'
                "*/0 * * * *": '*/0' is no minute of a cron expression: the step after '/' is a number from 1 to 60
                "*/61 * * * *": '*/61' is no minute of a cron expression: the step after '/' is a number from 1 to 60
                "*/ * * * *": '*/' is no minute of a cron expression: the step after '/' is a number from 1 to 60
                "*/+5 * * * *": '*/+5' is no minute of a cron expression: the step after '/' is a number from 1 to 60
                "*/5/2 * * * *": '*/5/2' is no minute of a cron expression: the step after '/' is a number from 1 to 60
                "1,,2 * * * *": '' is no minute of a cron expression: it takes 0 to 59
                ",1 * * * *": '' is no minute of a cron expression: it takes 0 to 59
                "1, * * * *": '' is no minute of a cron expression: it takes 0 to 59
                "50-10 * * * *": '50-10' is no minute of a cron expression: the range runs backwards; write '50-59,0-10'
                "0 22-2 * * *": '22-2' is no hour of a cron expression: the range runs backwards; write '22-23,0-2'
                "0 0 * NOV-FEB *": 'NOV-FEB' is no month of a cron expression: the range runs backwards; write '11-12,1-2'
                "1-2-3 * * * *": '1-2-3' is no minute of a cron expression: it takes 0 to 59
                "1- * * * *": '1-' is no minute of a cron expression: it takes 0 to 59
                "*-5 * * * *": '*-5' is no minute of a cron expression: it takes 0 to 59
                "** * * * *": '**' is no minute of a cron expression: it takes 0 to 59
                "MON * * * *": 'MON' is no minute of a cron expression: it takes 0 to 59
                "0 0 * MON *": 'MON' is no month of a cron expression: it takes 1 to 12, or JAN to DEC
                "0 0 * * JAN": 'JAN' is no day of week of a cron expression: it takes 0 to 7, or SUN to SAT
                "0 0 * JANFEB *": 'JANFEB' is no month of a cron expression: it takes 1 to 12, or JAN to DEC
                "0 0 * * MONDAY": 'MONDAY' is no day of week of a cron expression: it takes 0 to 7, or SUN to SAT
                "0 0 * 1MAR *": '1MAR' is no month of a cron expression: it takes 1 to 12, or JAN to DEC
                "٣ * * * *": '٣' is no minute of a cron expression: it takes 0 to 59
                "0\u{a0}0 * * *": a cron expression has 5 fields (minute, hour, day of month, month, day of week), such as '30 9 * * MON-FRI', not 4
                "9999999999 * * * *": '9999999999' is no minute of a cron expression: it takes 0 to 59
            "#]],
        );
        let long = format!("0 0 * * {}", "1,".repeat(300));
        assert_eq!(
            Cron::parse(&long).unwrap_err().to_string(),
            "a cron expression of 608 bytes exceeds the limit of 512 bytes"
        );
    }

    #[test]
    fn every_value_of_every_field_fits_into_the_longest_expression() {
        let list = |values: std::ops::RangeInclusive<u8>| {
            values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
        };
        let fields =
            [list(0..=59), list(0..=23), list(1..=31), MONTH.names.join(","), WEEKDAY.names.join(",")];
        assert!(Cron::parse(&fields.join(" ")).is_ok());
    }

    #[test]
    fn either_day_field_will_do_unless_one_is_a_star() {
        check_times(
            "UTC",
            "2025-06-01T00:00:00Z",
            "2025-06-20T00:00:00Z",
            &["0 9 13 * FRI", "0 9 13 * *", "0 9 * * FRI", "0 9 */10 * MON", "0 9 13 * */1"],
            expect![[r"
                0 9 13 * FRI: 06 09:00+0, 13 09:00+0
                0 9 13 * *: 13 09:00+0
                0 9 * * FRI: 06 09:00+0, 13 09:00+0
                0 9 */10 * MON: 01 09:00+0, 02 09:00+0, 09 09:00+0, 11 09:00+0, 16 09:00+0
                0 9 13 * */1: 13 09:00+0
            "]],
        );
    }

    #[test]
    fn leap_days_are_found_across_a_century_without_one() {
        let cron = Cron::parse("0 12 29 2 *").unwrap();
        let years: Vec<_> = times(&cron, at("2091-01-01T00:00:00Z"), &zone("Europe/Berlin"))
            .take(4)
            .map(|due| due.strftime("%F").to_string())
            .collect();
        assert_eq!(years, ["2092-02-29", "2096-02-29", "2104-02-29", "2108-02-29"]);
    }

    #[test]
    fn days_that_never_come_are_never_due() {
        let zone = zone("Europe/Berlin");
        for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * 30-31 FEB *"] {
            assert_eq!(
                Cron::parse(never).unwrap().next_after(at("2025-01-01T00:00:00Z"), &zone),
                None,
                "{never}"
            );
        }
        // A weekday comes all the same.
        let either = Cron::parse("0 0 30 2 MON").unwrap();
        assert_eq!(
            either.next_after(at("2025-01-01T00:00:00Z"), &Zone::UTC),
            Some(at("2025-02-03T00:00:00Z"))
        );
    }

    #[test]
    fn the_search_ends_at_the_horizon() {
        let daily = Cron::parse("@daily").unwrap();
        assert_eq!(daily.next_after(at("4999-12-31T00:00:00Z"), &Zone::UTC), None);
        assert_eq!(daily.next_after(Timestamp::MAX, &zone("Pacific/Apia")), None);
        // The calendar begins with the year 1.
        assert_eq!(daily.next_after(Timestamp::MIN, &zone("Pacific/Apia")), None);
        assert_eq!(
            daily.next_after(at("-000018-06-01T00:00:00Z"), &Zone::UTC),
            Some(at("0001-01-01T00:00:00Z"))
        );
        assert_eq!(daily.next_after(at("-000020-06-01T00:00:00Z"), &Zone::UTC), None);
    }

    #[test]
    fn more_expressions_than_are_remembered_stay_right() {
        for turn in 0..3 {
            for minute in 0..60 {
                for hour in 0..10 {
                    let cron = Cron::parse(&format!("{minute} {hour} * * *")).unwrap();
                    let due = cron.next_after(at("2025-01-01T12:00:00Z"), &Zone::UTC).unwrap();
                    assert_eq!(
                        due.strftime("%F %k:%M").to_string(),
                        format!("2025-01-02 {hour:2}:{minute:02}"),
                        "{turn}"
                    );
                }
            }
        }
        assert!(KNOWN.read().unwrap().len() <= KNOWN_MAX);
    }

    /// Any second of 1900 to 2100, most often one close to a change of the clock.
    fn instant() -> impl Strategy<Value = (Zone, Timestamp)> {
        let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        let zones = prop::sample::select(names).prop_filter_map("a zone", |name| Zone::named(&name).ok());
        (zones, -2_208_988_800_i64..4_102_444_800, prop::option::weighted(0.9, -9_000_i64..9_000)).prop_map(
            |(zone, second, near)| {
                let anywhere = Timestamp::from_second(second).unwrap();
                let change =
                    zone.rules().following(anywhere).next().map(|change| change.timestamp().as_second());
                let second = near.zip(change).map_or(second, |(near, change)| change + near);
                (zone, Timestamp::from_second(second).unwrap())
            },
        )
    }

    /// Expressions that are due often enough to be looked for second by second, some of them at `hour` or the next.
    fn expression(hour: u8) -> impl Strategy<Value = String> {
        let minute = prop_oneof![
            Just("*".to_owned()),
            Just("*/20".to_owned()),
            (0..60_u8).prop_map(|m| m.to_string()),
            (0..30, 30..60).prop_map(|(a, b)| format!("{a},{b}"))
        ];
        let hour = prop_oneof![
            Just("*".to_owned()),
            Just("*/2".to_owned()),
            (0..24_u8).prop_map(|h| h.to_string()),
            (0..2_u8).prop_map(move |h| ((hour + h) % 24).to_string()),
            (0..12, 12..24).prop_map(|(a, b)| format!("{a}-{b}/3"))
        ];
        let days = prop::sample::select(vec!["* * *", "* * MON-FRI", "*/2 * *", "1,15 * SUN"]);
        (minute, hour, days).prop_map(|(minute, hour, days)| format!("{minute} {hour} {days}"))
    }

    fn question() -> impl Strategy<Value = (Zone, Timestamp, String)> {
        instant().prop_flat_map(|(zone, after)| {
            let hour = zone.rules().to_datetime(after).hour().unsigned_abs();
            (Just(zone), Just(after), expression(hour))
        })
    }

    /// The rule of the module's documentation, second by second: what the clock of a zone shows, and nothing of offsets.
    fn by_the_rule(cron: &Cron, zone: &Zone, after: Timestamp, seconds: i64) -> Option<Timestamp> {
        let matches =
            |local: DateTime| local.second() == 0 && cron.0.calendar.is_time_matching(&local).unwrap();
        let start = after - SignedDuration::from_hours(30);
        let mut furthest = zone.rules().to_datetime(start);
        for second in start.as_second() + 1..=after.as_second() + seconds {
            let now = Timestamp::from_second(second).unwrap();
            let local = zone.rules().to_datetime(now);
            let due = if cron.0.fixed_times {
                // What the clock has newly passed, one by one.
                let mut passed = false;
                while furthest < local {
                    furthest += SignedDuration::from_secs(1);
                    passed |= matches(furthest);
                }
                passed
            } else {
                matches(local)
            };
            if due && now > after {
                return Some(now);
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_next_time_is_what_the_rule_says((zone, after, expression) in question()) {
            let cron = Cron::parse(&expression).unwrap();
            let within = 40 * 3_600;
            let expected = by_the_rule(&cron, &zone, after, within);
            let found = cron.next_after(after, &zone);
            let found = found.filter(|due| due.as_second() <= after.as_second() + within);
            prop_assert_eq!(found, expected, "{} in {} after {}", expression, zone, after);
        }

        #[test]
        fn any_text_is_an_expression_or_an_error(text in "[ *,/0-9A-Za-z@#?+-]{0,24}|\\PC{0,20}") {
            if let Ok(cron) = Cron::parse(&text) {
                prop_assert!(cron.next_after(Timestamp::UNIX_EPOCH, &Zone::UTC).is_none_or(|due| due > Timestamp::UNIX_EPOCH));
            }
        }

        #[test]
        fn any_instant_is_taken(second in Timestamp::MIN.as_second()..=Timestamp::MAX.as_second(), (zone, _, expression) in question()) {
            let after = Timestamp::from_second(second).unwrap();
            let cron = Cron::parse(&expression).unwrap();
            prop_assert!(cron.next_after(after, &zone).is_none_or(|due| due > after));
        }
    }
}
