//! The time zone in which a schedule reads the clock.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time zone of the IANA database, such as `Europe/Berlin`. Written and read as its name; cheap to clone.
///
/// Rules come from the database of the system (`TZDIR`, `/usr/share/zoneinfo`) and, for names it lacks or where there is none,
/// from the one inside the program. A zone keeps the rules it was made with; an updated database is seen after a restart.
///
/// ```
/// # use switchboard_schedule::Zone;
/// assert_eq!("europe/berlin".parse::<Zone>()?.name(), "Europe/Berlin");
/// assert_eq!(
///     "Berlin".parse::<Zone>().unwrap_err().to_string(),
///     "there is no time zone 'Berlin' in the IANA database; did you mean 'Europe/Berlin'?"
/// );
/// # Ok::<(), switchboard_schedule::UnknownZone>(())
/// ```
#[derive(Clone)]
pub struct Zone(TimeZone);

/// The zones of the program itself: the same on every machine.
static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The zone called `name`, in any case.
    ///
    /// Costs some ten nanoseconds for a zone in use and reads a file for the first of its name.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        let found = jiff::tz::db().get(name).or_else(|_| BUNDLED.get(name));
        let known = |zone: &TimeZone| {
            // Files beside the zones that mean another one on another machine.
            zone.iana_name().is_some_and(|name| !matches!(name, "localtime" | "posixrules" | "Etc/Unknown"))
        };
        found.ok().filter(known).map(Self).ok_or_else(|| UnknownZone::new(name))
    }

    /// The zone of this machine: what `TZ` names, else the system's setting.
    ///
    /// UTC if neither can be told by name, as with `TZ=CET-1CEST` or an `/etc/localtime` that is a copy: a schedule has to
    /// mean the same after a restart elsewhere. That is logged.
    pub fn local() -> Self {
        // Asked here first, since the zone it names may be in our database alone.
        if let Some(zone) = std::env::var("TZ").ok().and_then(|name| Self::named(&name).ok()) {
            return zone;
        }
        let zone = TimeZone::try_system().ok();
        let named = zone.as_ref().and_then(TimeZone::iana_name).and_then(|name| Self::named(name).ok());
        named.unwrap_or_else(|| {
            tracing::warn!(
                "the time zone of this machine has no name, UTC is used; set TZ to one such as Europe/Berlin"
            );
            Self::UTC
        })
    }

    /// Its name in the IANA database, as it is spelled there.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Its rules: what its clock shows at an instant, and when it shows a local time.
    pub fn rules(&self) -> &TimeZone {
        &self.0
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, UnknownZone> {
        Self::named(name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({self})")
    }
}

/// Two zones are equal if they have the same name: `Etc/UTC` is not `UTC`.
impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(de::Error::custom)
    }
}

/// No zone of the IANA database has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone '{name}' in the IANA database; {hint}")]
pub struct UnknownZone {
    name: String,
    hint: String,
}

impl UnknownZone {
    /// How much of a wrong name is repeated: the longest right one has 32 characters.
    const NAME_CHARS: usize = 48;

    fn new(name: &str) -> Self {
        let name: String = name.chars().take(Self::NAME_CHARS).collect();
        let hint = match nearest(&name) {
            Some(nearest) => format!("did you mean '{nearest}'?"),
            None => "names look like 'Europe/Berlin', 'America/New_York' or 'UTC'".to_owned(),
        };
        Self { name, hint }
    }
}

/// The zone whose name, or whose city, is most like `name`, if one is much like it.
fn nearest(name: &str) -> Option<String> {
    /// By trial: lets through one wrong letter in a short city, not an abbreviation such as `CEST`.
    const ALIKE: f64 = 0.8;
    let wanted = name.trim().to_lowercase().replace(' ', "_");
    let likeness = |known: &str| {
        let known = known.to_lowercase();
        let city = known.rsplit('/').next().unwrap_or(&known);
        strsim::normalized_damerau_levenshtein(&wanted, &known)
            .max(strsim::normalized_damerau_levenshtein(&wanted, city))
    };
    BUNDLED
        .available()
        .map(|known| (likeness(known.as_str()), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        // Of equals the last in the alphabet is no worse than another.
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn every_zone_of_the_database_is_found_by_its_name() {
        for name in BUNDLED.available() {
            assert_eq!(Zone::named(name.as_str()).unwrap().name(), name.as_str());
        }
    }

    fn check_refused(name: &str, expected: Expect) {
        expected.assert_eq(&Zone::named(name).unwrap_err().to_string());
    }

    #[test]
    fn an_unknown_zone_says_what_would_be_right() {
        check_refused(
            "Berlin",
            expect!["there is no time zone 'Berlin' in the IANA database; did you mean 'Europe/Berlin'?"],
        );
        check_refused(
            "new york",
            expect![
                "there is no time zone 'new york' in the IANA database; did you mean 'America/New_York'?"
            ],
        );
        check_refused(
            "Europe/Brelin",
            expect![
                "there is no time zone 'Europe/Brelin' in the IANA database; did you mean 'Europe/Berlin'?"
            ],
        );
        for unlike in ["", "CEST", "+02:00", "localtime", "Etc/Unknown", "../../etc/passwd"] {
            assert!(
                Zone::named(unlike)
                    .unwrap_err()
                    .to_string()
                    .ends_with("names look like 'Europe/Berlin', 'America/New_York' or 'UTC'")
            );
        }
        assert!(Zone::named(&"x".repeat(10_000)).unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn a_zone_is_written_and_read_as_its_name() {
        let zone = Zone::named("America/Argentina/Buenos_Aires").unwrap();
        let json = serde_json::to_string(&zone).unwrap();
        assert_eq!(json, r#""America/Argentina/Buenos_Aires""#);
        assert_eq!(serde_json::from_str::<Zone>(&json).unwrap(), zone);
        assert_eq!(serde_json::from_str::<Zone>(r#""U\u0054C""#).unwrap(), Zone::UTC);
        assert!(serde_json::from_str::<Zone>(r#""Berlin""#).is_err());
    }

    #[test]
    fn the_zone_of_this_machine_can_be_found_again() {
        let local = Zone::local();
        assert_eq!(Zone::named(local.name()).unwrap(), local);
    }
}
