//! Wake-up calls: when, how often, to whom, and what became of each.

mod zone;
pub use zone::{UnknownZone, Zone};

mod cron;
pub use cron::{Cron, InvalidCron};

mod timing;
pub use timing::{Counted, InvalidPeriod, Timing};

mod message;
pub use message::Message;

mod retry;
pub use retry::Retry;

mod target;
pub use target::{Address, Delivery, Manners, Outcome, Target, Targets};

mod id;
pub use id::{ScheduleId, Shard};

mod spec;
pub use spec::{Missed, More, Overlap, Spec};

mod occurrence;
pub use occurrence::{Fate, NodeId, Occurrence, OccurrenceId, Record, SkipReason};

mod event;
pub use event::{End, Event};

mod settings;
pub use settings::{Kind, Settings};

mod rejection;
pub use rejection::Rejection;

mod timetable;
pub use timetable::{Schedule, Status, Timetable};

mod due;
mod history;
mod index;

mod change;
pub use change::{
    Attend, Cancel, Cancelled, Change, Create, Delete, Made, Past, Pause, Resume, RunNow, Update,
};

mod settle;
pub use settle::{Attempt, Settle};

mod pass;
pub use pass::{Pass, Passed};

mod stats;
pub use stats::{KindStats, Stats};

mod desk;
pub use desk::key;

mod service;
pub use service::{Error, Filter, Info, PassEntry, Schedules};
