//! How schedules, and what became of them, are shown.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use switchboard_schedule::{
    Address, Fate, Info, Missed, Occurrence, Overlap, Record, Retry, ScheduleId, SkipReason, Timing,
};

use super::when::{Upcoming, friendly};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub struct ScheduleView {
    /// Its number.
    pub id: u64,
    /// A name for people; may be empty.
    pub name: String,
    /// `active`, `paused`, `completed`, `cancelled` or `failed`.
    pub status: String,
    /// Whom it calls.
    pub target: TargetView,
    /// What it says: a text or JSON.
    pub message: Value,
    /// When it is due, if once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// When it is due, if by a cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The zone on whose clock the cron expression is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How often it is due, if at an even pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Nothing is due before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Nothing is due after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// When it is due next; none if it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When a delivery was last attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// How often it was delivered, beside what was asked for by hand.
    pub delivered: u32,
    /// After so many deliveries it is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repetitions: Option<u32>,
    /// `skip`, `once`, or `{"all":{"max","within"}}`.
    pub missed: Value,
    /// `queue`, `skip` or `allow`.
    pub overlap: &'static str,
    /// The greatest delay of a delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// How failed deliveries are tried again, where that is not the target's habit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryView>,
    /// When it was made.
    pub created_at: String,
    /// What it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its occurrences that are not over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenView>,
}

/// Whom a schedule calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Target")]
pub struct TargetView {
    /// `topic`, `inbox`, `letta`, `webhook` or `tool`.
    pub kind: String,
    /// Where, in the words of that kind.
    pub to: String,
}

/// How failed deliveries are tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Retry")]
pub struct RetryView {
    /// The pause after the first failure.
    pub first: String,
    /// How many times longer each next pause is.
    pub factor: u8,
    /// The longest pause.
    pub max: String,
    /// How many attempts in all; 0 for no end.
    pub attempts: u32,
}

/// An occurrence that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OpenOccurrence")]
pub struct OpenView {
    /// When it was due.
    pub due: String,
    /// `waiting`, or `delivering` while an attempt is under way.
    pub state: &'static str,
    /// It is not delivered before this.
    pub ready: String,
    /// How many attempts have begun.
    pub attempts: u32,
    /// Somebody asked for it by hand.
    pub by_hand: bool,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of a due time, or of several in a row that nobody acted on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Occurrence")]
pub struct OccurrenceView {
    /// The number of the schedule.
    pub schedule: u64,
    /// When it was due; of several, the first.
    pub due: String,
    /// When it was over.
    pub at: String,
    /// `delivered`, `dead` (no attempt succeeded) or `skipped` (nobody tried).
    pub fate: &'static str,
    /// How many attempts there were.
    pub attempts: u32,
    /// What the target said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why nobody tried: `missed`, `overlap`, `too_many_open`, `paused` or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// How many due times were skipped, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_due: Option<String>,
}

/// A due time to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Upcoming")]
pub struct UpcomingView {
    /// In UTC.
    pub utc: String,
    /// As the clock of its zone shows it, such as `2026-03-29T03:00:00+02:00[Europe/Berlin]`.
    pub local: String,
    /// What a change of the clock makes of it: a skipped time moves, a repeated one is the first or the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `2026-03-29T09:00:00Z`.
fn utc(millis: i64) -> String {
    Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |at| at.to_string())
}

impl From<&Info> for ScheduleView {
    fn from(info: &Info) -> Self {
        let schedule = &info.schedule;
        let spec = &schedule.spec;
        let (mut at, mut cron, mut time_zone, mut every) = (None, None, None, None);
        match &spec.timing {
            Timing::Once { at_ms } => at = Some(utc(*at_ms)),
            Timing::Cron { expression, zone } => {
                cron = Some(expression.to_string());
                time_zone = Some(zone.name().to_owned());
            }
            Timing::Every { period_ms, .. } => every = Some(friendly(*period_ms)),
        }
        Self {
            id: info.id.get(),
            name: spec.name.to_string(),
            status: schedule.status.to_string(),
            target: TargetView::from(&spec.address),
            message: spec.message.to_value(),
            at,
            cron,
            time_zone,
            every,
            start: spec.start_ms().map(utc),
            end: spec.end_ms().map(utc),
            // What is over keeps its last due time.
            next: schedule.next_run_ms().filter(|_| schedule.status.is_live()).map(utc),
            last_run: schedule.last_run_ms.map(utc),
            delivered: schedule.delivered,
            max_repetitions: spec.max_repetitions.map(std::num::NonZeroU32::get),
            missed: missed(spec.missed),
            overlap: match spec.overlap {
                Overlap::Queue => "queue",
                Overlap::Skip => "skip",
                Overlap::Allow => "allow",
            },
            jitter: Some(spec.jitter_ms()).filter(|jitter| *jitter > 0).map(|jitter| friendly(jitter.into())),
            retry: spec.retry().map(RetryView::from),
            created_at: utc(schedule.created_ms),
            source: spec.source().map(ToString::to_string),
            open: schedule.open.iter().map(OpenView::from).collect(),
        }
    }
}

fn missed(missed: Missed) -> Value {
    match missed {
        Missed::Skip => "skip".into(),
        Missed::Once => "once".into(),
        Missed::All { max, window_ms } => {
            serde_json::json!({"all": {"max": max, "within": friendly(window_ms)}})
        }
    }
}

impl From<&Address> for TargetView {
    fn from(address: &Address) -> Self {
        Self { kind: address.kind.to_string(), to: address.to.to_string() }
    }
}

impl From<Retry> for RetryView {
    fn from(retry: Retry) -> Self {
        Self {
            first: friendly(retry.first_ms.into()),
            factor: retry.factor,
            max: friendly(retry.max_ms.into()),
            attempts: retry.attempts.unwrap_or(0),
        }
    }
}

impl From<&Occurrence> for OpenView {
    fn from(open: &Occurrence) -> Self {
        Self {
            due: utc(open.due_ms),
            state: if open.claimed_by.is_some() { "delivering" } else { "waiting" },
            ready: utc(open.ready_ms),
            attempts: open.attempts,
            by_hand: open.manual,
            error: open.error.as_ref().map(ToString::to_string),
        }
    }
}

impl OccurrenceView {
    /// What became of a due time of `schedule`.
    pub(super) fn of(schedule: ScheduleId, record: &Record) -> Self {
        let view = Self {
            schedule: schedule.get(),
            due: utc(record.due_ms),
            at: utc(record.at_ms),
            fate: "delivered",
            attempts: record.attempts,
            reply: None,
            error: None,
            why: None,
            count: None,
            last_due: None,
        };
        match &record.fate {
            Fate::Delivered { reply } => Self { reply: reply.as_ref().map(ToString::to_string), ..view },
            Fate::Dead { error } => Self { fate: "dead", error: Some(error.to_string()), ..view },
            Fate::Skipped { why, last_ms, count, or_more: _ } => Self {
                fate: "skipped",
                why: Some(reason(*why)),
                count: Some(*count),
                last_due: Some(utc(*last_ms)),
                ..view
            },
        }
    }
}

const fn reason(why: SkipReason) -> &'static str {
    match why {
        SkipReason::Missed => "missed",
        SkipReason::Overlap => "overlap",
        SkipReason::TooManyOpen => "too_many_open",
        SkipReason::Paused => "paused",
        SkipReason::Cancelled => "cancelled",
    }
}

impl From<Upcoming> for UpcomingView {
    fn from(upcoming: Upcoming) -> Self {
        Self { utc: upcoming.at.to_string(), local: upcoming.local, note: upcoming.note }
    }
}
