//! Points in time, as people and programs write them.
//!
//! | form | meaning |
//! |---|---|
//! | `2025-08-31T09:50:22Z`, `…+02:00`, `…+0530`, `…-05` | the offset it says |
//! | `2025-08-31 09:50:22 UTC`, ` GMT`, in any case | UTC |
//! | `2025-08-31T09:50:22.5`, `2025-08-31 09:50`, `2025-08-31` | UTC; a day is its beginning |
//! | `Sun, 31 Aug 2025 09:50:22 +0200` (RFC 2822), `August 31, 2025 09:50:22` | as above; UTC without a zone |
//!
//! Nothing here knows the time zone of the machine.

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::Offset;
use switchboard_exchange::Timestamp;

/// The point in time that `text` spells; none for anything else and for dates that do not exist.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let (local, offset) = split_offset(text);
    let datetime = iso(local).or_else(|| english(local)).or_else(|| rfc_2822(local));
    match datetime {
        Some(datetime) => offset.unwrap_or(Offset::UTC).to_timestamp(datetime).ok(),
        // With a zone that only this standard knows, such as `EST`.
        None => RFC_2822.parse_timestamp(text).ok(),
    }
}

/// Splits off the zone at the end: `Z`, `UTC`, `GMT`, `+02:00`, `+0200` or `+02`. None if there is none.
fn split_offset(text: &str) -> (&str, Option<Offset>) {
    for name in ["utc", "gmt", "z"] {
        let Some(at) = text.len().checked_sub(name.len()) else { continue };
        if let Some((local, zone)) = text.split_at_checked(at)
            && zone.eq_ignore_ascii_case(name)
            && local.ends_with(|last: char| last.is_ascii_digit() || last == ' ')
        {
            return (local.trim_end(), Some(Offset::UTC));
        }
    }
    // A date has hyphens too: only what comes after the minutes is an offset.
    let after_time = text.find(':').and_then(|colon| Some(colon + text[colon..].find(['+', '-'])?));
    match after_time.and_then(|at| Some((text[..at].trim_end(), offset(&text[at..])?))) {
        Some((local, offset)) => (local, Some(offset)),
        None => (text, None),
    }
}

/// `+02:00`, `+0200` or `+02`.
fn offset(text: &str) -> Option<Offset> {
    let (sign, digits) = (text.get(..1)?, text.get(1..)?);
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => (digits.get(..2)?, digits.get(2..)?),
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let seconds = number::<i32>(hours, 23)? * 3_600 + number::<i32>(minutes, 59)? * 60;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

/// `2025-08-31T09:50:22.5` and what it may leave out.
fn iso(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let date = Date::new(number(year, 9_999)?, number(month, 12)?, number(day, 31)?).ok()?;
    if time.is_empty() {
        return Some(date.to_datetime(Time::midnight()));
    }
    Some(date.to_datetime(clock(time.strip_prefix(['T', 't', ' '])?)?))
}

/// `December 25, 2025 10:00:00` and what it may leave out: the comma, the seconds, the time.
fn english(text: &str) -> Option<DateTime> {
    let mut words = text.split_ascii_whitespace();
    let month = month(words.next()?)?;
    let day = words.next()?;
    let day = number(day.strip_suffix(',').unwrap_or(day), 31)?;
    let year = words.next()?;
    let year = year.strip_suffix(',').unwrap_or(year);
    let date = Date::new(number(year, 9_999).filter(|_| year.len() == 4)?, month, day).ok()?;
    let time = words.next().map_or(Some(Time::midnight()), clock)?;
    words.next().is_none().then(|| date.to_datetime(time))
}

/// The number of the month called `name` in English, whole or by its first three letters.
fn month(name: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let fits = |month: &&str| **month == name || (name.len() == 3 && month.starts_with(&name));
    (1..).zip(MONTHS).find(|(_, month)| fits(month)).map(|(number, _)| number)
}

/// `09:50`, `09:50:22` or `09:50:22.5`.
fn clock(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let mut parts = whole.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next();
    let has_fraction = whole.len() < text.len();
    if parts.next().is_some() || (has_fraction && second.is_none()) || !(1..=2).contains(&hour.len()) {
        return None;
    }
    if minute.len() != 2 || second.is_some_and(|second| second.len() != 2) {
        return None;
    }
    let nanosecond = nanoseconds(fraction)?;
    Time::new(number(hour, 23)?, number(minute, 59)?, number(second.unwrap_or("0"), 59)?, nanosecond).ok()
}

/// The digits after the point, as nanoseconds. What is finer is cut off.
fn nanoseconds(fraction: &str) -> Option<i32> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{:0<9}", &fraction[..fraction.len().min(9)]).parse().ok()
}

const RFC_2822: DateTimeParser = DateTimeParser::new();

/// `Sun, 31 Aug 2025 09:50:22`, to which the standard wants a zone.
fn rfc_2822(text: &str) -> Option<DateTime> {
    let read = RFC_2822.parse_timestamp(format!("{text} +0000")).ok()?;
    Some(Offset::UTC.to_datetime(read))
}

/// The decimal number `text`, at most `most`; no sign.
fn number<N: std::str::FromStr + PartialOrd>(text: &str, most: N) -> Option<N> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= most)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn read(texts: &[&str]) -> String {
        let lines = texts.iter().map(|text| match parse(text) {
            Some(at) => format!("{text:?} {at}"),
            None => format!("{text:?} -"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let texts = [
            "2025-08-31T09:50:22Z",
            "2025-08-31T09:50:22z",
            "2025-08-31T09:50:22+00:00",
            "2025-08-31T09:50:22-05:00",
            "2025-08-31T09:50:22+0530",
            "2025-08-31T09:50:22+02",
            "2025-08-31 09:50:22 +02:00",
            "2025-08-31 09:50:22 UTC",
            "2025-08-31 09:50:22 utc",
            "2025-08-31T09:50:22 Gmt",
            "2025-08-31T09:50:22",
            " 2025-08-31 09:50 ",
            "2025-08-31t09:50:22.125Z",
            "2025-08-31T09:50:22.1234567891Z",
            "2025-08-31",
            "2025-08-31Z",
            "2024-02-29T23:59:59Z",
        ];
        expect![[r#"
            "2025-08-31T09:50:22Z" 2025-08-31T09:50:22Z
            "2025-08-31T09:50:22z" 2025-08-31T09:50:22Z
            "2025-08-31T09:50:22+00:00" 2025-08-31T09:50:22Z
            "2025-08-31T09:50:22-05:00" 2025-08-31T14:50:22Z
            "2025-08-31T09:50:22+0530" 2025-08-31T04:20:22Z
            "2025-08-31T09:50:22+02" 2025-08-31T07:50:22Z
            "2025-08-31 09:50:22 +02:00" 2025-08-31T07:50:22Z
            "2025-08-31 09:50:22 UTC" 2025-08-31T09:50:22Z
            "2025-08-31 09:50:22 utc" 2025-08-31T09:50:22Z
            "2025-08-31T09:50:22 Gmt" 2025-08-31T09:50:22Z
            "2025-08-31T09:50:22" 2025-08-31T09:50:22Z
            " 2025-08-31 09:50 " 2025-08-31T09:50:00Z
            "2025-08-31t09:50:22.125Z" 2025-08-31T09:50:22.125Z
            "2025-08-31T09:50:22.1234567891Z" 2025-08-31T09:50:22.123456789Z
            "2025-08-31" 2025-08-31T00:00:00Z
            "2025-08-31Z" 2025-08-31T00:00:00Z
            "2024-02-29T23:59:59Z" 2024-02-29T23:59:59Z"#]]
        .assert_eq(&read(&texts));
    }

    #[test]
    fn other_spellings_are_those_of_mails_and_of_english() {
        let texts = [
            "Sun, 31 Aug 2025 09:50:22 +0200",
            "Sun, 31 Aug 2025 09:50:22 GMT",
            "Sun, 31 Aug 2025 09:50:22 EST",
            "Sun, 31 Aug 2025 09:50:22",
            "31 Aug 2025 09:50 -0500",
            "December 25, 2025 10:00:00",
            "December 25, 2025 10:00:00 UTC",
            "december 25 2025 10:00 -05:00",
            "Dec 25, 2025",
            "Sept 1, 2025",
        ];
        expect![[r#"
            "Sun, 31 Aug 2025 09:50:22 +0200" 2025-08-31T07:50:22Z
            "Sun, 31 Aug 2025 09:50:22 GMT" 2025-08-31T09:50:22Z
            "Sun, 31 Aug 2025 09:50:22 EST" 2025-08-31T14:50:22Z
            "Sun, 31 Aug 2025 09:50:22" 2025-08-31T09:50:22Z
            "31 Aug 2025 09:50 -0500" 2025-08-31T14:50:00Z
            "December 25, 2025 10:00:00" 2025-12-25T10:00:00Z
            "December 25, 2025 10:00:00 UTC" 2025-12-25T10:00:00Z
            "december 25 2025 10:00 -05:00" 2025-12-25T15:00:00Z
            "Dec 25, 2025" 2025-12-25T00:00:00Z
            "Sept 1, 2025" -"#]]
        .assert_eq(&read(&texts));
    }

    #[test]
    fn anything_else_is_no_time() {
        let texts = [
            "",
            "tomorrow",
            "in 5 minutes",
            "1735120800",
            "2099-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-08-31T24:00:00Z",
            "2025-08-31T09:50:60Z",
            "2025-08-31T09:50:22+25:00",
            "2025-08-31T09:50:22+02:60",
            "2025-08-31T09:50:22 CEST",
            "2025-08-31T",
            "2025-08-31T09",
            "2025-08-31T9:5",
            "2025-8-31",
            "25-08-31",
            "20250831T095022Z",
            "+2025-08-31",
            "2025-08-31 09:50:22.Z",
            "2025-08-31T09:50.5Z",
            "Mon, 31 Aug 2025 09:50:22 +0200",
            "December 32, 2025 10:00:00",
            "Smarch 1, 2025",
            "31/08/2025",
            "2025-08-31T09:50:22Z and more",
            "9999-12-31T23:59:59-12:00",
            "２０２５-08-31",
        ];
        expect![[r#"
            "" -
            "tomorrow" -
            "in 5 minutes" -
            "1735120800" -
            "2099-13-01T00:00:00Z" -
            "2025-02-29T00:00:00Z" -
            "2025-08-31T24:00:00Z" -
            "2025-08-31T09:50:60Z" -
            "2025-08-31T09:50:22+25:00" -
            "2025-08-31T09:50:22+02:60" -
            "2025-08-31T09:50:22 CEST" -
            "2025-08-31T" -
            "2025-08-31T09" -
            "2025-08-31T9:5" -
            "2025-8-31" -
            "25-08-31" -
            "20250831T095022Z" -
            "+2025-08-31" -
            "2025-08-31 09:50:22.Z" -
            "2025-08-31T09:50.5Z" -
            "Mon, 31 Aug 2025 09:50:22 +0200" -
            "December 32, 2025 10:00:00" -
            "Smarch 1, 2025" -
            "31/08/2025" -
            "2025-08-31T09:50:22Z and more" -
            "9999-12-31T23:59:59-12:00" -
            "２０２５-08-31" -"#]]
        .assert_eq(&read(&texts));
    }

    proptest! {
        #[test]
        fn every_text_is_a_time_or_none(
            text in "\\PC{0,40}|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]?[0-9:.,]{0,12} ?([+-][0-9:]{0,6}|[A-Za-z]{0,4})|\
                     [A-Z][a-z]{2,8},? [0-9]{1,2},? [0-9]{2,4} [0-9:]{0,9} ?[A-Z+0-9-]{0,5}",
        ) {
            let _ = parse(&text);
        }

        #[test]
        fn a_time_survives_being_written(seconds in -62_167_219_200_i64..253_402_207_200, hours in -23_i32..=23) {
            let at = Timestamp::from_second(seconds).unwrap();
            let offset = Offset::from_seconds(hours * 3_600).unwrap();
            prop_assume!((0..=9_999).contains(&offset.to_datetime(at).year()));
            prop_assert_eq!(parse(&at.display_with_offset(offset).to_string()), Some(at));
        }
    }
}
