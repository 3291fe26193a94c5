//! The tasks of agtOS's scheduler: what a new one is asked to be, how it is kept, and how it is seen.

use std::sync::{Arc, Weak};

use serde_json::{Map, Value};
use switchboard_access::{Caller, Denied};
use switchboard_bus::Topic;
use switchboard_exchange::{CommandError, CommandId};
use switchboard_schedule::{
    Address, Cron, Error, Filter, Info, Message, Missed, Overlap, Rejection, ScheduleId, Schedules, Spec,
    Status, Timing, Zone,
};

use super::arguments::{Arguments, BadField};
use crate::Registry;
use crate::schedule::may_reach;

/// The kind of target that publishes.
const TOPIC: &str = "topic";

/// Schedules as agtOS sees them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tasks {
    schedules: Schedules,
    zone: Zone,
    registry: Weak<Registry>,
}

/// A task that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    name: Arc<str>,
    timing: TaskTiming,
    topic: Arc<str>,
    payload: Map<String, Value>,
}

/// When a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskTiming {
    /// By a cron expression of five fields.
    Cron {
        /// The expression.
        expression: Arc<str>,
    },
    /// Once.
    Once {
        /// In milliseconds since 1970.
        at_timestamp: i64,
    },
    /// At an even pace.
    Interval {
        /// In milliseconds.
        interval_ms: u64,
    },
}

/// A task as agtOS shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// `task-` and the schedule's number.
    pub id: String,
    /// Its name.
    pub name: Arc<str>,
    /// Whether it goes on.
    pub status: Status,
    /// When it runs.
    pub timing: TaskTiming,
    /// The topic it publishes on; of a schedule that calls something else, `kind:destination`.
    pub event_topic: String,
    /// What it says.
    pub payload: Value,
    /// When it runs next, in milliseconds since 1970; none if it is over.
    pub next_run_at: Option<i64>,
    /// When it last ran, in milliseconds since 1970.
    pub last_run_at: Option<i64>,
    /// How often it ran.
    pub run_count: u32,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
}

/// Why there is no task, or no list of them.
#[derive(Debug)]
pub enum TaskError {
    /// A field is missing, or is not what it should be.
    Field {
        /// Which.
        field: &'static str,
        /// What it should be.
        why: String,
    },
    /// A type of schedule needs a field that is missing.
    Needs {
        /// The type: `cron`, `once`, `interval`.
        schedule_type: &'static str,
        /// The field.
        field: &'static str,
    },
    /// It is no cron expression, or is never due.
    Cron {
        /// As it was given.
        expression: String,
    },
    /// There is no such task, or it is over.
    NotFound,
    /// Nothing is known of the tasks at the moment, or nothing can be written.
    Unavailable,
    /// Anything else, in words.
    Refused(String),
    /// The caller may not.
    Denied(Denied),
}

impl From<BadField> for TaskError {
    fn from(bad: BadField) -> Self {
        Self::Field { field: bad.field, why: bad.why }
    }
}

impl From<Denied> for TaskError {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl TaskTiming {
    /// `cron`, `once` or `interval`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Once { .. } => "once",
            Self::Interval { .. } => "interval",
        }
    }
}

impl NewTask {
    /// Reads a task from the fields `name`, `scheduleType`, `expression`, `atTimestamp`, `intervalMs`, `eventTopic` and
    /// `payload`. Those of other types of schedules, and all others, are ignored.
    pub fn read(fields: &Map<String, Value>) -> Result<Self, TaskError> {
        let fields = Arguments(fields);
        let name = fields.some_text("name")?;
        if name.len() > Spec::MAX_NAME {
            return Err(BadField::new("name", format!("must have at most {} bytes", Spec::MAX_NAME)).into());
        }
        let schedule_type = fields.some_text("scheduleType")?;
        if !["cron", "once", "interval"].contains(&schedule_type) {
            return Err(BadField::new("scheduleType", "must be cron, once or interval").into());
        }
        let topic = fields.some_text("eventTopic")?;
        Topic::new(topic).map_err(|why| BadField::new("eventTopic", why.to_string()))?;
        let payload = fields.object("payload")?.cloned().unwrap_or_default();
        Ok(Self { name: name.into(), timing: timing(fields, schedule_type)?, topic: topic.into(), payload })
    }

    fn spec(self, now_ms: i64, zone: &Zone) -> Result<Spec, TaskError> {
        let (timing, value) = match self.timing {
            TaskTiming::Cron { expression } => {
                let timing = Timing::cron(&expression, zone.clone());
                let bad = |_| TaskError::Cron { expression: expression.to_string() };
                (timing.map_err(bad)?, expression.clone())
            }
            TaskTiming::Once { at_timestamp } => {
                (Timing::once(at_timestamp), at_timestamp.to_string().into())
            }
            TaskTiming::Interval { interval_ms } => {
                let first = now_ms.saturating_add_unsigned(interval_ms);
                let timing = Timing::every(interval_ms, first);
                let timing = timing.map_err(|error| BadField::new("intervalMs", error.to_string()))?;
                (timing, interval_ms.to_string().into())
            }
        };
        let missed = if matches!(timing, Timing::Once { .. }) { Missed::Once } else { Missed::Skip };
        let message = Message::json(&Value::Object(self.payload));
        if message.as_str().len() > Message::MAX_BYTES {
            let why = format!("must have at most {} bytes of JSON", Message::MAX_BYTES);
            return Err(BadField::new("payload", why).into());
        }
        Ok(Spec {
            name: self.name,
            address: Address::new(TOPIC, self.topic),
            message,
            timing,
            value,
            missed,
            overlap: Overlap::Allow,
            max_repetitions: None,
            more: None,
        })
    }
}

fn timing(fields: Arguments<'_>, schedule_type: &str) -> Result<TaskTiming, TaskError> {
    let needs = |schedule_type, field| TaskError::Needs { schedule_type, field };
    match schedule_type {
        "cron" => {
            let expression = fields.text("expression")?.filter(|expression| !expression.trim().is_empty());
            let expression = expression.ok_or_else(|| needs("cron", "expression"))?;
            if expression.len() > Spec::MAX_VALUE || Cron::parse(expression).is_err() {
                return Err(TaskError::Cron { expression: expression.to_owned() });
            }
            Ok(TaskTiming::Cron { expression: expression.into() })
        }
        "once" => {
            let at_timestamp = fields.integer("atTimestamp")?.ok_or_else(|| needs("once", "atTimestamp"))?;
            Ok(TaskTiming::Once { at_timestamp })
        }
        _ => {
            let interval = fields.integer("intervalMs")?.ok_or_else(|| needs("interval", "intervalMs"))?;
            let interval = u64::try_from(interval).ok().filter(|interval| *interval > 0);
            let interval_ms = interval.ok_or_else(|| BadField::new("intervalMs", "must be at least 1"))?;
            Ok(TaskTiming::Interval { interval_ms })
        }
    }
}

impl Tasks {
    /// The tasks among `schedules`: all. New cron expressions are read on the clock of `zone`.
    pub fn new(schedules: Schedules, zone: Zone, registry: Weak<Registry>) -> Self {
        Self { schedules, zone, registry }
    }

    /// Makes a task.
    pub async fn create(
        &self,
        caller: &Caller,
        task: NewTask,
        id: Option<CommandId>,
    ) -> Result<Task, TaskError> {
        caller.may_use_shared(super::NAME)?;
        let now_ms = self.schedules.exchange().clock().now().as_millisecond();
        let spec = task.spec(now_ms, &self.zone)?;
        let made = self.schedules.create(spec, id).await.map_err(refused)?;
        let info = self.schedules.get(made.id).await.map_err(refused)?.ok_or(TaskError::NotFound)?;
        // It may have run before it was looked at; whoever made it is told when that was to be.
        Ok(Task { next_run_at: Some(made.next_ms), status: Status::Active, ..Task::of(&info) })
    }

    /// The tasks that stand so, or all, in the order in which they were made.
    pub async fn list(&self, caller: &Caller, status: Option<Status>) -> Result<Vec<Task>, TaskError> {
        caller.may_use_shared(super::NAME)?;
        let filter = Filter { status: status.map(|status| vec![status]), ..Filter::default() };
        let all = self.schedules.list(&filter).await.map_err(refused)?;
        Ok(all.iter().filter(|info| self.is_shown(caller, info)).map(Task::of).collect())
    }

    /// Cancels a task. One that was cancelled before stays so.
    pub async fn cancel(
        &self,
        caller: &Caller,
        task: &str,
        call: Option<CommandId>,
    ) -> Result<(), TaskError> {
        caller.may_use_shared(super::NAME)?;
        let id = task.strip_prefix("task-").and_then(|number| number.parse::<ScheduleId>().ok());
        let id = id.ok_or(TaskError::NotFound)?;
        let info = self.schedules.get(id).await.map_err(refused)?;
        if !info.is_some_and(|info| self.is_shown(caller, &info)) {
            return Err(TaskError::NotFound);
        }
        self.schedules.cancel(id, call).await.map(drop).map_err(refused)
    }

    /// Whether `caller` might have made it, here or elsewhere.
    fn is_shown(&self, caller: &Caller, info: &Info) -> bool {
        let address = &info.schedule.spec.address;
        let may_reach = |registry: Arc<Registry>| may_reach(caller, &registry, address).is_ok();
        &*address.kind == TOPIC || self.registry.upgrade().is_some_and(may_reach)
    }
}

fn refused(error: Error) -> TaskError {
    match error {
        CommandError::Rejected(Rejection::NeverDue { value }) => TaskError::Cron { expression: value },
        CommandError::Rejected(Rejection::Unknown { .. } | Rejection::Ended { .. }) => TaskError::NotFound,
        CommandError::Rejected(
            rejection @ (Rejection::OtherAddress { .. }
            | Rejection::TooManyOpen { .. }
            | Rejection::TooMany
            | Rejection::Imported { .. }
            | Rejection::Over { .. }
            | Rejection::Invalid(_)),
        ) => TaskError::Refused(rejection.to_string()),
        fault @ (CommandError::IdReused { .. } | CommandError::TooLarge(_) | CommandError::Unknown(_)) => {
            TaskError::Refused(fault.to_string())
        }
        CommandError::Busy { .. }
        | CommandError::Stopping
        | CommandError::Unavailable(_)
        | CommandError::Unreadable(_)
        | CommandError::Damaged { .. } => TaskError::Unavailable,
    }
}

impl Task {
    fn of(info: &Info) -> Self {
        let schedule = &info.schedule;
        let spec = &schedule.spec;
        let address = &spec.address;
        Self {
            id: format!("task-{}", info.id),
            name: spec.name.clone(),
            status: schedule.status,
            timing: match &spec.timing {
                Timing::Once { at_ms } => TaskTiming::Once { at_timestamp: *at_ms },
                Timing::Cron { expression, .. } => TaskTiming::Cron { expression: expression.clone() },
                Timing::Every { period_ms, .. } => TaskTiming::Interval { interval_ms: *period_ms },
            },
            event_topic: if &*address.kind == TOPIC { address.to.to_string() } else { address.to_string() },
            payload: spec.message.to_value(),
            next_run_at: schedule.next_run_ms().filter(|_| schedule.status.is_live()),
            last_run_at: schedule.last_run_ms,
            run_count: schedule.delivered,
            created_at: schedule.created_ms,
        }
    }
}
