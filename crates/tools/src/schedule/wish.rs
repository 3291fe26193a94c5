//! What people ask of schedules, in their own words.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use switchboard_schedule::{
    Address, Change, Message, Missed, More, Overlap, Retry, Schedule, Spec, Timing, Zone,
};

use super::when::{self, When};
use crate::input::BadArguments;

/// A schedule that is to be made.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// For people
    #[serde(default)]
    pub name: Option<String>,
    /// Whom it calls
    #[schemars(schema_with = "target_schema")]
    pub target: TargetWish,
    /// A text, or JSON: an event's data, a tool's arguments. Default: {}
    #[serde(default)]
    #[schemars(schema_with = "any_schema")]
    pub message: Option<Value>,
    /// Once: '2026-03-29T09:00:00Z', local '2026-03-29 09:00', or 'in 20 minutes'
    #[serde(default)]
    pub at: Option<String>,
    /// Five fields, such as '30 9 * * MON-FRI'
    #[serde(default)]
    pub cron: Option<String>,
    /// '90s', '5m', '1h30m', '2 days'
    #[serde(default)]
    pub every: Option<String>,
    /// Such as Europe/Berlin; default: the server's
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Nothing before
    #[serde(default)]
    pub start: Option<String>,
    /// Nothing after
    #[serde(default)]
    pub end: Option<String>,
    /// Completed after so many deliveries
    #[serde(default)]
    pub max_repetitions: Option<u32>,
    /// Of times that pass while the server is down: skip them, make up for one (default), or {"all":{"max":10,"within":"1h"}}
    #[serde(default)]
    #[schemars(schema_with = "missed_schema")]
    pub missed: Option<MissedWish>,
    /// While an earlier one is not delivered: queue (default), skip or allow
    #[serde(default)]
    #[schemars(schema_with = "overlap_schema")]
    pub overlap: Option<OverlapWish>,
    /// Each is late by up to this
    #[serde(default)]
    pub jitter: Option<String>,
    /// Default: the target's habit
    #[serde(default)]
    #[schemars(schema_with = "retry_schema")]
    pub retry: Option<RetryWish>,
}

/// How a schedule is to be changed. What is left out stays.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeWish {
    /// For people
    #[serde(default)]
    pub name: Option<String>,
    /// A text, or JSON
    #[serde(default)]
    #[schemars(schema_with = "any_schema")]
    pub message: Option<Value>,
    /// Once, as in schedule_create
    #[serde(default)]
    pub at: Option<String>,
    /// By a cron expression
    #[serde(default)]
    pub cron: Option<String>,
    /// At an even pace
    #[serde(default)]
    pub every: Option<String>,
    /// Whose clock
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Nothing before; none for no bound
    #[serde(default)]
    pub start: Option<String>,
    /// Nothing after; none for no bound
    #[serde(default)]
    pub end: Option<String>,
    /// 0 for no bound
    #[serde(default)]
    pub max_repetitions: Option<u32>,
    #[serde(default)]
    #[schemars(schema_with = "missed_schema")]
    #[allow(
        missing_docs,
        reason = "described where a schedule is made, at length; each word here costs agents context"
    )]
    pub missed: Option<MissedWish>,
    #[serde(default)]
    #[schemars(schema_with = "overlap_schema")]
    #[allow(
        missing_docs,
        reason = "described where a schedule is made, at length; each word here costs agents context"
    )]
    pub overlap: Option<OverlapWish>,
    #[serde(default)]
    #[allow(
        missing_docs,
        reason = "described where a schedule is made, at length; each word here costs agents context"
    )]
    pub jitter: Option<String>,
    /// {} for the target's habit
    #[serde(default)]
    #[schemars(schema_with = "retry_schema")]
    pub retry: Option<RetryWish>,
}

/// A timing whose due times are asked for.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewWish {
    /// Once, as in schedule_create
    #[serde(default)]
    pub at: Option<String>,
    /// By a cron expression
    #[serde(default)]
    pub cron: Option<String>,
    /// At an even pace
    #[serde(default)]
    pub every: Option<String>,
    /// Whose clock; default: the server's
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Nothing before
    #[serde(default)]
    pub start: Option<String>,
    /// Nothing after
    #[serde(default)]
    pub end: Option<String>,
    /// 1-100
    #[serde(default = "ten")]
    pub count: u32,
}

const fn ten() -> u32 {
    10
}

/// A schedule that was kept elsewhere before.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportWish {
    /// What it was there; nothing with the same source is imported twice.
    pub source: String,
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
    /// Whom it calls.
    #[schemars(schema_with = "target_schema")]
    pub target: TargetWish,
    /// A text, or JSON.
    #[schemars(schema_with = "any_schema")]
    pub message: Value,
    /// Once, at a time with an offset.
    #[serde(default)]
    pub at: Option<String>,
    /// By a cron expression.
    #[serde(default)]
    pub cron: Option<String>,
    /// At an even pace, from `next` on.
    #[serde(default)]
    pub every: Option<String>,
    /// Whose clock. Default: UTC.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// The timing as its author wrote it. Default: as it is written here.
    #[serde(default)]
    pub value: Option<String>,
    /// Completed after so many deliveries.
    #[serde(default)]
    pub max_repetitions: Option<u32>,
    /// What becomes of due times while an earlier occurrence is open. Default: they wait.
    #[serde(default)]
    #[schemars(schema_with = "overlap_schema")]
    pub overlap: Option<OverlapWish>,
    /// When it is due next; may be over.
    pub next: String,
    /// How often it was delivered.
    #[serde(default)]
    pub delivered: u32,
    /// When it was last attempted.
    #[serde(default)]
    pub last_run: Option<String>,
}

/// Whom a schedule calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetWish {
    /// A kind of target.
    pub kind: String,
    /// Where, in the words of that kind.
    pub to: String,
}

/// What becomes of due times that nobody could act on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MissedWish {
    /// They are skipped.
    Skip,
    /// The first is delivered late.
    Once,
    /// Several are delivered late.
    All {
        /// How many at most.
        max: u32,
        /// How late at most.
        within: String,
    },
}

/// What becomes of due times while an earlier occurrence is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapWish {
    /// They wait.
    Queue,
    /// They are skipped.
    Skip,
    /// They are delivered all the same.
    Allow,
}

/// How failed deliveries are tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryWish {
    /// The pause after the first failure. Default: 1 s.
    #[serde(default)]
    pub first: Option<String>,
    /// How many times longer each next pause is. Default: 2.
    #[serde(default)]
    pub factor: Option<u8>,
    /// The longest pause. Default: 2 m.
    #[serde(default)]
    pub max: Option<String>,
    /// How many attempts in all, 0 for no end. Default: 10.
    #[serde(default)]
    pub attempts: Option<u32>,
}

fn target_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["topic", "inbox", "letta", "webhook", "tool"]},
            "to": {"type": "string", "description": "topic of the bus, project/session, agent id, URL, tool name"},
        },
        "required": ["kind", "to"],
    })
}

fn any_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

fn missed_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "object"]})
}

fn overlap_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["queue", "skip", "allow"]})
}

fn retry_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "first": {"type": "string", "description": "first pause, 1s"},
            "factor": {"type": "integer"},
            "max": {"type": "string", "description": "longest pause, 2m"},
            "attempts": {"type": "integer", "description": "0: no end"},
        },
    })
}

impl Wish {
    pub(super) fn when(&self) -> When<'_> {
        When {
            at: self.at.as_deref(),
            cron: self.cron.as_deref(),
            every: self.every.as_deref(),
            time_zone: self.time_zone.as_deref(),
            start: self.start.as_deref(),
            end: self.end.as_deref(),
        }
    }

    /// What it asks for.
    pub(super) fn read(&self, now: Timestamp, zone: &Zone) -> Result<(Spec, Option<String>), BadArguments> {
        let read = self.when().read(now, zone)?;
        let more = More {
            start_ms: read.start_ms,
            end_ms: read.end_ms,
            jitter_ms: self.jitter.as_deref().map(jitter).transpose()?.unwrap_or(0),
            retry: self.retry.as_ref().map(retry).transpose()?.flatten(),
            source: None,
        };
        let spec = Spec {
            name: self.name.as_deref().unwrap_or_default().into(),
            address: self.target.address(),
            message: match &self.message {
                Some(message) => self::message(message),
                None => default_message(&self.target)?,
            },
            timing: read.timing.clone(),
            value: read.value.as_str().into(),
            missed: self.missed.as_ref().map_or(Ok(Missed::Once), missed)?,
            overlap: self.overlap.map_or(Overlap::Queue, Overlap::from),
            max_repetitions: self.max_repetitions.and_then(NonZeroU32::new),
            more: (more != More::default()).then(|| Box::new(more)),
        };
        Ok((spec, read.note))
    }
}

impl ChangeWish {
    fn when(&self) -> When<'_> {
        When {
            at: self.at.as_deref(),
            cron: self.cron.as_deref(),
            every: self.every.as_deref(),
            time_zone: self.time_zone.as_deref(),
            start: self.start.as_deref(),
            end: self.end.as_deref(),
        }
    }

    /// How it changes `schedule`.
    pub(super) fn read(
        &self,
        schedule: &Schedule,
        now: Timestamp,
        zone: &Zone,
    ) -> Result<Change, BadArguments> {
        let when = self.when();
        // Local times are of the zone that the schedule has, unless another is named.
        let zone = when.zone(match &schedule.spec.timing {
            Timing::Cron { zone, .. } => zone,
            Timing::Once { .. } | Timing::Every { .. } => zone,
        })?;
        let bound = |parameter: &str, text: Option<&str>| {
            text.map(|text| when::bound(parameter, Some(text), now, &zone)).transpose()
        };
        Ok(Change {
            name: self.name.as_deref().map(Arc::from),
            message: self.message.as_ref().map(message),
            timing: self.timing(when, schedule, now, &zone)?,
            start_ms: bound("start", when.start)?,
            end_ms: bound("end", when.end)?,
            max_repetitions: self.max_repetitions.map(NonZeroU32::new),
            missed: self.missed.as_ref().map(missed).transpose()?,
            overlap: self.overlap.map(Overlap::from),
            jitter_ms: self.jitter.as_deref().map(jitter).transpose()?,
            retry: self.retry.as_ref().map(retry).transpose()?,
        })
    }

    fn timing(
        &self,
        when: When<'_>,
        schedule: &Schedule,
        now: Timestamp,
        zone: &Zone,
    ) -> Result<Option<(Timing, Arc<str>)>, BadArguments> {
        if when.has_timing() {
            let read = when.read_ahead(now, zone)?;
            return Ok(Some((read.timing, read.value.into())));
        }
        match &schedule.spec.timing {
            _ if self.time_zone.is_none() => Ok(None),
            Timing::Cron { expression, .. } => {
                let timing = Timing::Cron { expression: expression.clone(), zone: zone.clone() };
                Ok(Some((timing, schedule.spec.value.clone())))
            }
            Timing::Once { .. } | Timing::Every { .. } if self.start.is_some() || self.end.is_some() => {
                Ok(None)
            }
            Timing::Once { .. } | Timing::Every { .. } => Err(BadArguments::invalid(
                "time_zone",
                "says nothing by itself for a schedule without a cron expression: add at, start or end",
            )),
        }
    }
}

impl PreviewWish {
    /// The most due times that are previewed.
    pub const MAX_COUNT: u32 = 100;

    pub(super) fn when(&self) -> When<'_> {
        When {
            at: self.at.as_deref(),
            cron: self.cron.as_deref(),
            every: self.every.as_deref(),
            time_zone: self.time_zone.as_deref(),
            start: self.start.as_deref(),
            end: self.end.as_deref(),
        }
    }

    pub(super) fn count(&self) -> Result<usize, BadArguments> {
        if (1..=Self::MAX_COUNT).contains(&self.count) {
            return Ok(self.count as usize);
        }
        Err(BadArguments::invalid("count", format_args!("must be 1 to {}", Self::MAX_COUNT)))
    }
}

impl TargetWish {
    fn address(&self) -> Address {
        Address::new(self.kind.as_str(), self.to.as_str())
    }
}

impl ImportWish {
    pub(super) fn address(&self) -> Address {
        self.target.address()
    }

    /// What it asks for, and where it stands.
    pub(super) fn read(&self, now: Timestamp) -> Result<(Spec, switchboard_schedule::Past), BadArguments> {
        let time = |parameter: &str, text: &str| {
            let read = when::time(text, now, &Zone::UTC);
            let (at, _) = read.map_err(|why| BadArguments::invalid(parameter, why))?;
            Ok(at.as_millisecond())
        };
        let next_ms = time("next", &self.next)?;
        let (timing, written) = match (&self.at, &self.cron, &self.every) {
            // One that is over is delivered late.
            (Some(at), None, None) => (Timing::once(time("at", at)?), at),
            (None, Some(cron), None) => {
                let zone =
                    When { time_zone: self.time_zone.as_deref(), ..When::default() }.zone(&Zone::UTC)?;
                (Timing::cron(cron, zone).map_err(|why| BadArguments::invalid("cron", why))?, cron)
            }
            (None, None, Some(every)) => {
                let period_ms =
                    when::duration_ms(every).map_err(|why| BadArguments::invalid("every", why))?;
                let timing = Timing::every(period_ms, next_ms);
                (timing.map_err(|why| BadArguments::invalid("every", why))?, every)
            }
            _ => return Err(BadArguments::invalid("at", "say exactly one of at, cron and every")),
        };
        if self.source.is_empty() || self.source.len() > Spec::MAX_NAME {
            let why = format!("must have 1 to {} bytes", Spec::MAX_NAME);
            return Err(BadArguments::invalid("source", why));
        }
        let spec = Spec {
            name: self.name.as_deref().unwrap_or_default().into(),
            address: self.address(),
            message: message(&self.message),
            timing,
            value: self.value.as_deref().unwrap_or(written).into(),
            missed: Missed::Once,
            overlap: self.overlap.map_or(Overlap::Queue, Overlap::from),
            max_repetitions: self.max_repetitions.and_then(NonZeroU32::new),
            more: Some(Box::new(More { source: Some(self.source.as_str().into()), ..More::default() })),
        };
        let past = switchboard_schedule::Past {
            next_ms,
            delivered: self.delivered,
            last_run_ms: self.last_run.as_deref().map(|text| time("last_run", text)).transpose()?,
        };
        Ok((spec, past))
    }
}

impl From<OverlapWish> for Overlap {
    fn from(wish: OverlapWish) -> Self {
        match wish {
            OverlapWish::Queue => Self::Queue,
            OverlapWish::Skip => Self::Skip,
            OverlapWish::Allow => Self::Allow,
        }
    }
}

fn message(value: &Value) -> Message {
    match value {
        Value::String(text) => Message::Text(text.as_str().into()),
        json => Message::json(json),
    }
}

/// What is said where nothing was asked to be said.
fn default_message(target: &TargetWish) -> Result<Message, BadArguments> {
    match &*target.kind {
        // Whoever reads these reads words.
        "inbox" | "letta" => Err(BadArguments::Missing("message".to_owned())),
        _ => Ok(Message::json(&Value::Object(serde_json::Map::new()))),
    }
}

fn missed(wish: &MissedWish) -> Result<Missed, BadArguments> {
    Ok(match wish {
        MissedWish::Skip => Missed::Skip,
        MissedWish::Once => Missed::Once,
        MissedWish::All { max, within } => {
            let window_ms = when::duration_ms(within).map_err(|why| BadArguments::invalid("missed", why))?;
            Missed::All { max: *max, window_ms }
        }
    })
}

fn jitter(text: &str) -> Result<u32, BadArguments> {
    short("jitter", text, Spec::MAX_JITTER_MS)
}

/// A duration of at most `most` milliseconds.
fn short(parameter: &str, text: &str, most: u32) -> Result<u32, BadArguments> {
    let millis = when::duration_ms(text).map_err(|why| BadArguments::invalid(parameter, why))?;
    u32::try_from(millis).ok().filter(|millis| *millis <= most).ok_or_else(|| {
        BadArguments::invalid(parameter, format_args!("must be at most {}", when::friendly(most.into())))
    })
}

/// How it says to try again; none for the habit of the target.
fn retry(wish: &RetryWish) -> Result<Option<Retry>, BadArguments> {
    /// The longest pause: one week.
    const MAX_PAUSE_MS: u32 = 7 * 86_400_000;
    if *wish == RetryWish::default() {
        return Ok(None);
    }
    let default = Retry::default();
    let pause = |text: &Option<String>, default| {
        text.as_deref().map_or(Ok(default), |text| short("retry", text, MAX_PAUSE_MS))
    };
    let factor = wish.factor.unwrap_or(default.factor);
    if factor == 0 {
        return Err(BadArguments::invalid("retry", "factor must be 1 or more; 1 is an even pace"));
    }
    let first_ms = pause(&wish.first, default.first_ms)?;
    Ok(Some(Retry {
        first_ms,
        factor,
        // A longer first pause than the usual longest one is meant.
        max_ms: pause(&wish.max, default.max_ms.max(first_ms))?,
        attempts: match wish.attempts {
            None => default.attempts,
            Some(attempts) => Some(attempts).filter(|attempts| *attempts > 0),
        },
    }))
}
