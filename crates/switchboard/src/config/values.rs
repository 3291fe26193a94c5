//! The types of options: each is written as text, and says what it takes when a text is wrong.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_schedule::Zone;

/// Serialises a type by `Display` and `FromStr`, and says to the list of options that it is written as text.
macro_rules! written_as_text {
    ($($type:ty),*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Text::deserialize(deserializer)?;
                text.0.parse().map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    )* };
}

written_as_text!(Listen, JournalUrl, HttpUrl, ZoneName, Duration, ByteSize, LogFilter, LogFormat);

/// A text, or a number that is written without quotes.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(D::Error::custom(format!("expected a text, found {other}"))),
        }
    }
}

/// An address to listen on and the name of the view that its `/mcp` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) address: SocketAddr,
    pub(crate) view: String,
}

impl Listen {
    pub(crate) fn loopback(port: u16, view: &str) -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, port).into(), view: view.to_owned() }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.address, self.view)
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, view) = text.split_once('=').unwrap_or((text, "all"));
        if view.is_empty() {
            return Err(format!("'{text}' names no view after '=': write `all`, or the name of a toolset"));
        }
        let address = parse_address(address).ok_or_else(|| {
            format!("'{address}' is no address: write IP:PORT such as 127.0.0.1:4100 or [::1]:4100, or just a port")
        })?;
        Ok(Self { address, view: view.to_owned() })
    }
}

fn parse_address(text: &str) -> Option<SocketAddr> {
    let loopback = |port: u16| SocketAddr::from((IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    port.parse().map(loopback).ok().or_else(|| text.parse().ok())
}

/// Where the journal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalUrl {
    /// A SQLite file in the data directory.
    Sqlite,
    /// Nowhere: everything is forgotten at the end.
    Memory,
}

impl fmt::Display for JournalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite:",
            Self::Memory => "memory:",
        })
    }
}

impl FromStr for JournalUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite:" => Ok(Self::Sqlite),
            "memory:" => Ok(Self::Memory),
            _ => Err(format!(
                "'{text}' is no journal that this program can use: write `sqlite:` for the file in the data directory \
                 (`--data-dir` says where), or `memory:` for one that is forgotten at the end"
            )),
        }
    }
}

/// Where another server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpUrl(String);

impl HttpUrl {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for HttpUrl {
    /// Where a Letta server is if nobody moved it.
    fn default() -> Self {
        Self("http://localhost:8283".to_owned())
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Not repeated in the error: it may hold a password, by mistake.
        switchboard_outbound::parse_url(text.trim()).map_err(|error| error.to_string())?;
        Ok(Self(text.trim().to_owned()))
    }
}

/// A time zone, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZoneName(pub(crate) Zone);

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl FromStr for ZoneName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Zone::named(text.trim()).map(Self).map_err(|error| error.to_string())
    }
}

/// A span of time, in whole milliseconds, not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duration(SignedDuration);

impl Duration {
    pub(crate) const fn from_secs(seconds: i64) -> Self {
        Self(SignedDuration::from_secs(seconds))
    }

    pub(crate) fn signed(self) -> SignedDuration {
        self.0
    }

    pub(crate) fn unsigned(self) -> std::time::Duration {
        self.0.unsigned_abs()
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis if millis % 1_000 == 0 => write!(f, "{}s", millis / 1_000),
            millis => write!(f, "{millis}ms"),
        }
    }
}

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is no span of time: write 90s, 15m, 1h30m or 500ms (a bare number is seconds)")
        };
        let span = match text.parse::<u32>() {
            Ok(seconds) => SignedDuration::from_secs(seconds.into()),
            Err(_) => text.parse::<SignedDuration>().map_err(|_| wrong())?,
        };
        if span.is_negative() || span.as_hours() > 24 * 366 * 10 {
            return Err(wrong());
        }
        Ok(Self(span))
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(u64);

impl ByteSize {
    const UNITS: [(&'static str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

    pub(crate) const fn mebibytes(count: u64) -> Self {
        Self(count << 20)
    }

    pub(crate) const fn kibibytes(count: u64) -> Self {
        Self(count << 10)
    }

    pub(crate) const fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::UNITS.iter().find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no size: write 4MiB, 512KiB or a number of bytes");
        let (number, factor) = Self::UNITS
            .iter()
            .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)))
            .unwrap_or((text, 1));
        let number: u64 = number.trim_end().parse().map_err(|_| wrong())?;
        number.checked_mul(factor).filter(|bytes| *bytes > 0).map(Self).ok_or_else(wrong)
    }
}

/// What is logged: a level, or directives per part of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFilter(String);

impl LogFilter {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        // Python's names, which the systems replaced use.
        let level = match text.to_ascii_lowercase().as_str() {
            "warning" => "warn".to_owned(),
            "critical" | "fatal" => "error".to_owned(),
            other => other.to_owned(),
        };
        let known = |directive: &str| {
            let level = directive.rsplit('=').next().unwrap_or(directive);
            LEVELS.contains(&level.to_ascii_lowercase().as_str())
        };
        if LEVELS.contains(&level.as_str()) {
            return Ok(Self(level));
        }
        if text.split(',').all(known) && tracing_subscriber::EnvFilter::try_new(text).is_ok() {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "'{text}' is no log level: write error, warn, info, debug or trace, or directives such as \
             warn,switchboard_exchange=debug"
        ))
    }
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("'{text}' is no log format: write text or json")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromStr<Err = String> + fmt::Display>(text: &str, expected: &str) {
        let seen = match text.parse::<T>() {
            Ok(value) => value.to_string(),
            Err(error) => error,
        };
        assert!(seen == expected || seen.starts_with(expected), "{text}: {seen}");
    }

    #[test]
    fn an_address_may_leave_out_what_is_usual() {
        check::<Listen>("127.0.0.1:4100", "127.0.0.1:4100=all");
        check::<Listen>("4100=a2amcp", "127.0.0.1:4100=a2amcp");
        check::<Listen>("localhost:0", "127.0.0.1:0=all");
        check::<Listen>("[::1]:80=a+b", "[::1]:80=a+b");
        check::<Listen>("box.lan:80", "'box.lan:80' is no address: write IP:PORT");
        check::<Listen>("80=", "'80=' names no view after '='");
    }

    #[test]
    fn spans_of_time_have_units() {
        check::<Duration>("90s", "90s");
        check::<Duration>("1h30m", "5400s");
        check::<Duration>("120", "120s");
        check::<Duration>("250ms", "250ms");
        check::<Duration>("-5s", "'-5s' is no span of time: write 90s");
        check::<Duration>("soon", "'soon' is no span of time: write 90s");
    }

    #[test]
    fn sizes_have_units() {
        check::<ByteSize>("4MiB", "4MiB");
        check::<ByteSize>("1024", "1KiB");
        check::<ByteSize>("1000", "1000");
        check::<ByteSize>("0", "'0' is no size");
        check::<ByteSize>("99999999999GiB", "'99999999999GiB' is no size");
    }

    #[test]
    fn the_url_of_a_server_is_checked_and_never_repeated_in_an_error() {
        check::<HttpUrl>(" http://localhost:8283/ ", "http://localhost:8283/");
        let refusal = "http://user:secret@box".parse::<HttpUrl>().unwrap_err();
        assert!(!refusal.contains("secret"), "{refusal}");
        assert!("localhost:8283".parse::<HttpUrl>().is_err());
    }

    #[test]
    fn log_levels_of_other_systems_are_understood() {
        check::<LogFilter>("INFO", "info");
        check::<LogFilter>("WARNING", "warn");
        check::<LogFilter>("warn,switchboard_exchange=debug", "warn,switchboard_exchange=debug");
        check::<LogFilter>("loud", "'loud' is no log level");
    }
}
