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
        let horizon = now.year().saturating_add(Self::HORIZON_YEARS);
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
        } else if step.is_some() {
            return Err(kind.refuse(
                item,
                format!("a step needs '*' or a range before it, such as '{range}-{}'", kind.last),
            ));
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
