//! Why schedules stay as they are.

use crate::{ScheduleId, Status, Timetable};

/// Why schedules stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// No such schedule.
    #[error("there is no schedule {id}")]
    Unknown {
        /// What was asked for.
        id: ScheduleId,
    },
    /// It is over.
    #[error("schedule {id} is {status}: make a new one")]
    Ended {
        /// The schedule.
        id: ScheduleId,
        /// How it ended.
        status: Status,
    },
    /// Its time is over.
    #[error("'{value}' is over: say a time that is to come; 'in 0s' is now")]
    Over {
        /// The time as it was written.
        value: String,
    },
    /// It would never be due.
    #[error("'{value}' is never due from now on: check its time, its start and its end")]
    NeverDue {
        /// The timing as it was written.
        value: String,
    },
    /// Whom it calls cannot be changed.
    #[error("schedule {id} calls {address}, which cannot be changed: cancel it and make a new one")]
    OtherAddress {
        /// The schedule.
        id: ScheduleId,
        /// Whom it calls.
        address: String,
    },
    /// It has as many open occurrences as may be.
    #[error(
        "schedule {id} has {} open occurrences, the most it may have: wait for one, or cancel it",
        Timetable::MAX_OPEN
    )]
    TooManyOpen {
        /// The schedule.
        id: ScheduleId,
    },
    /// There are as many as may be.
    #[error(
        "there are {} schedules beside this one, the most there may be: cancel some",
        Timetable::MAX_LIVE
    )]
    TooMany,
    /// It was imported before.
    #[error("'{origin}' was imported before, as schedule {id}")]
    Imported {
        /// Where it comes from.
        origin: String,
        /// What it became.
        id: ScheduleId,
    },
    /// A part of it is out of bounds.
    #[error("{0}")]
    Invalid(String),
}
