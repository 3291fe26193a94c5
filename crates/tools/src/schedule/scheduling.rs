//! Schedules for callers: asked for in their words, within what they may do.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use switchboard_access::{Caller, Denied};
use switchboard_exchange::{Clock, CommandError, CommandId};
use switchboard_schedule::{
    Cancelled, Error, Filter, Info, OccurrenceId, Rejection, Schedule, ScheduleId, Schedules, Spec, Status,
    Timing, Zone,
};

use super::may_reach;
use super::view::{OccurrenceView, ScheduleView, UpcomingView};
use super::when::{Read, upcoming};
use super::wish::{ChangeWish, ImportWish, PreviewWish, Wish};
use crate::Registry;
use crate::input::BadArguments;

/// Schedules for callers. Cheap to clone.
///
/// Every call asks whether its caller may use the toolset `schedule`, and sees, changes and makes only schedules that call
/// what the caller may call.
#[derive(Debug, Clone)]
pub struct Scheduling {
    schedules: Schedules,
    zone: Zone,
    registry: Weak<Registry>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Refusal {
    /// An argument is missing or wrong.
    Invalid {
        /// Which.
        parameter: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The caller may not.
    Denied(Denied),
    /// The schedules refused, or could not be asked.
    Refused(Error),
}

impl From<BadArguments> for Refusal {
    fn from(bad: BadArguments) -> Self {
        Self::Invalid { parameter: bad.parameter().to_owned(), message: bad.to_string() }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(CommandError::Rejected(rejection))
    }
}

/// Which schedules are listed. All by default.
#[derive(Debug, Clone, Default)]
pub struct Which {
    /// Those that stand so.
    pub status: Vec<Status>,
    /// Those that call this kind of target.
    pub kind: Option<String>,
    /// Those that call this destination.
    pub to: Option<String>,
    /// Those made after this one.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// Some of the schedules, in the order in which they were made.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The schedules.
    pub schedules: Vec<ScheduleView>,
    /// There are more after this one.
    pub next: Option<u64>,
}

/// What was made of a schedule that was kept elsewhere before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// It is here now, with this number; none if that was only tried.
    Made(Option<u64>),
    /// It was imported before, with this number.
    Before(u64),
    /// It cannot be kept here.
    Refused(String),
}

impl Scheduling {
    /// The `schedules`, with local times on the clock of `zone` unless another is named.
    pub fn new(schedules: Schedules, zone: Zone, registry: Weak<Registry>) -> Self {
        Self { schedules, zone, registry }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &**self.schedules.exchange().clock()
    }

    fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Makes a schedule, and says when it is due first, up to `shown` times.
    pub async fn create(
        &self,
        caller: &Caller,
        wish: &Wish,
        shown: usize,
        call: Option<CommandId>,
    ) -> Result<(ScheduleView, Vec<UpcomingView>), Refusal> {
        caller.may_use_shared(super::NAME)?;
        let now = self.now();
        let (spec, note) = wish.read(now, &self.zone)?;
        self.may_reach(caller, &spec)?;
        let made = self.schedules.create_ahead(spec, call).await?;
        let info = self.known(made.id).await?;
        // Of what was made, which is not what was said now if the call is a repetition.
        let due = self.due(&info.schedule, note, now, shown);
        Ok((ScheduleView::from(&info), due))
    }

    /// Changes a schedule. What is left out stays.
    pub async fn update(
        &self,
        caller: &Caller,
        id: ScheduleId,
        wish: &ChangeWish,
        call: Option<CommandId>,
    ) -> Result<ScheduleView, Refusal> {
        let info = self.reachable(caller, id).await?;
        let change = wish.read(&info.schedule, self.now(), &self.zone)?;
        self.schedules.update(id, change, call).await?;
        Ok(ScheduleView::from(&self.known(id).await?))
    }

    /// Nothing is due until it is resumed.
    pub async fn pause(
        &self,
        caller: &Caller,
        id: ScheduleId,
        call: Option<CommandId>,
    ) -> Result<ScheduleView, Refusal> {
        self.reachable(caller, id).await?;
        self.schedules.pause(id, call).await?;
        Ok(ScheduleView::from(&self.known(id).await?))
    }

    /// It goes on.
    pub async fn resume(
        &self,
        caller: &Caller,
        id: ScheduleId,
        call: Option<CommandId>,
    ) -> Result<ScheduleView, Refusal> {
        self.reachable(caller, id).await?;
        self.schedules.resume(id, call).await?;
        Ok(ScheduleView::from(&self.known(id).await?))
    }

    /// Ends it for good.
    pub async fn cancel(
        &self,
        caller: &Caller,
        id: ScheduleId,
        call: Option<CommandId>,
    ) -> Result<Cancelled, Refusal> {
        self.reachable(caller, id).await?;
        Ok(self.schedules.cancel(id, call).await?)
    }

    /// Ends it, and forgets it with all that became of it.
    pub async fn delete(
        &self,
        caller: &Caller,
        id: ScheduleId,
        call: Option<CommandId>,
    ) -> Result<(), Refusal> {
        self.reachable(caller, id).await?;
        Ok(self.schedules.delete(id, call).await?)
    }

    /// Delivers it once, now. Gives the occurrence, whose fate [`settled`](Self::settled) waits for.
    pub async fn run_now(
        &self,
        caller: &Caller,
        id: ScheduleId,
        call: Option<CommandId>,
    ) -> Result<OccurrenceId, Refusal> {
        self.reachable(caller, id).await?;
        Ok(self.schedules.run_now(id, call).await?)
    }

    /// Waits until an occurrence is over, and says what became of it; none if that is not known any more.
    pub async fn settled(&self, occurrence: OccurrenceId) -> Result<Option<OccurrenceView>, Refusal> {
        let record = self.schedules.settled(occurrence).await?;
        Ok(record.map(|record| OccurrenceView::of(occurrence.schedule, &record)))
    }

    /// A schedule, and what became of its due times, newest first, at most `history`.
    pub async fn get(
        &self,
        caller: &Caller,
        id: ScheduleId,
        history: usize,
    ) -> Result<(ScheduleView, Vec<OccurrenceView>), Refusal> {
        let info = self.reachable(caller, id).await?;
        let records = self.schedules.history(id, history).await?;
        let history = records.iter().map(|record| OccurrenceView::of(id, record)).collect();
        Ok((ScheduleView::from(&info), history))
    }

    /// Schedules, in the order in which they were made.
    pub async fn list(&self, caller: &Caller, which: Which) -> Result<Listed, Refusal> {
        caller.may_use_shared(super::NAME)?;
        let filter = Filter {
            status: (!which.status.is_empty()).then_some(which.status),
            kind: which.kind.map(Arc::from),
            to: which.to.map(Arc::from),
        };
        let all = self.schedules.list(&filter).await?;
        let after = which.after.map(ScheduleId::new);
        let wanted = |info: &&Info| {
            after.is_none_or(|after| info.id > after) && self.may_reach(caller, &info.schedule.spec).is_ok()
        };
        let mut schedules: Vec<_> =
            all.iter().filter(wanted).take(which.limit + 1).map(ScheduleView::from).collect();
        let is_last = schedules.len() <= which.limit;
        schedules.truncate(which.limit);
        let next = schedules.last().map(|last| last.id).filter(|_| !is_last);
        Ok(Listed { schedules, next })
    }

    /// What became of due times of all schedules, newest first, at most `limit`.
    pub async fn occurrences(&self, caller: &Caller, limit: usize) -> Result<Vec<OccurrenceView>, Refusal> {
        caller.may_use_shared(super::NAME)?;
        let is_unbound = caller.grant.projects.is_none() && caller.grant.toolsets.is_none();
        let records = self.schedules.records(if is_unbound { limit } else { usize::MAX }).await?;
        let mut shown = Vec::new();
        let mut may: HashMap<ScheduleId, bool> = HashMap::new();
        for (id, record) in records {
            if !is_unbound && !may.contains_key(&id) {
                let info = self.schedules.get(id).await?;
                let reaches = |info: Info| self.may_reach(caller, &info.schedule.spec).is_ok();
                may.insert(id, info.is_some_and(reaches));
            }
            if is_unbound || may.get(&id) == Some(&true) {
                shown.push(OccurrenceView::of(id, &record));
            }
            if shown.len() == limit {
                break;
            }
        }
        Ok(shown)
    }

    /// When a timing is due, and the zone on whose clock it was read.
    pub fn preview(
        &self,
        caller: &Caller,
        wish: &PreviewWish,
    ) -> Result<(String, Vec<UpcomingView>), Refusal> {
        caller.may_use_shared(super::NAME)?;
        let now = self.now();
        let read = wish.when().read_ahead(now, &self.zone)?;
        Ok((read.zone.name().to_owned(), views(upcoming(&read, now, wish.count()?))))
    }

    /// When a schedule is due next, up to `count` times.
    pub async fn upcoming(
        &self,
        caller: &Caller,
        id: ScheduleId,
        count: usize,
    ) -> Result<Vec<UpcomingView>, Refusal> {
        let Info { schedule, .. } = self.reachable(caller, id).await?;
        Ok(self.due(&schedule, None, self.now(), count))
    }

    /// When `schedule` is due from `now` on, which may be a moment ago; of a time that its clock skips or shows twice, `note`
    /// says what was made of it.
    fn due(
        &self,
        schedule: &Schedule,
        note: Option<String>,
        now: Timestamp,
        count: usize,
    ) -> Vec<UpcomingView> {
        if !matches!(schedule.status, Status::Active | Status::Completed) {
            return Vec::new();
        }
        let zone = match &schedule.spec.timing {
            Timing::Cron { zone, .. } => zone.clone(),
            Timing::Once { .. } | Timing::Every { .. } => self.zone.clone(),
        };
        let left = schedule
            .spec
            .max_repetitions
            .map_or(usize::MAX, |most| most.get().saturating_sub(schedule.delivered) as usize);
        let read = Read {
            timing: schedule.spec.timing.clone(),
            value: schedule.spec.value.to_string(),
            zone,
            start_ms: schedule.spec.start_ms(),
            end_ms: schedule.spec.end_ms(),
            note,
        };
        views(upcoming(&read, now, count.min(left)))
    }

    /// Takes over schedules that were kept elsewhere, or says what that would come to: an answer to each, in their order.
    pub async fn import(
        &self,
        caller: &Caller,
        wishes: &[ImportWish],
        apply: bool,
    ) -> Result<Vec<Imported>, Refusal> {
        caller.may_use_shared(super::NAME)?;
        let known = self.schedules.list(&Filter::default()).await?;
        let mut known: HashMap<Arc<str>, u64> = known
            .iter()
            .filter_map(|info| Some((info.schedule.spec.source()?.clone(), info.id.get())))
            .collect();
        let mut imported = Vec::new();
        for wish in wishes {
            let one = match known.get(&*wish.source) {
                Some(id) => Imported::Before(*id),
                None => self.import_one(caller, wish, apply).await?,
            };
            if let Imported::Made(Some(id)) = one {
                known.insert(wish.source.as_str().into(), id);
            }
            imported.push(one);
        }
        Ok(imported)
    }

    async fn import_one(&self, caller: &Caller, wish: &ImportWish, apply: bool) -> Result<Imported, Refusal> {
        let (spec, past) = match wish.read(self.now()) {
            Ok(read) => read,
            Err(bad) => return Ok(Imported::Refused(bad.to_string())),
        };
        self.may_reach(caller, &spec)?;
        if let Err(why) = self.check(&spec) {
            return Ok(Imported::Refused(why));
        }
        if !apply {
            return Ok(Imported::Made(None));
        }
        match self.schedules.import(spec, past).await {
            Ok(made) => Ok(Imported::Made(Some(made.id.get()))),
            Err(CommandError::Rejected(Rejection::Imported { id, .. })) => Ok(Imported::Before(id.get())),
            Err(CommandError::Rejected(rejection)) => Ok(Imported::Refused(rejection.to_string())),
            Err(fault) => Err(fault.into()),
        }
    }

    /// What its target has against it. The schedules ask the same when it is made.
    fn check(&self, spec: &Spec) -> Result<(), String> {
        match self.schedules.targets().get(&spec.address.kind) {
            Some(target) => target.check(&spec.address.to, &spec.message),
            None => Err(format!("there are no targets of kind '{}'", spec.address.kind)),
        }
    }

    fn may_reach(&self, caller: &Caller, spec: &Spec) -> Result<(), Denied> {
        match self.registry.upgrade() {
            Some(registry) => may_reach(caller, &registry, &spec.address),
            // Nothing is served any more.
            None => caller.may_administer(),
        }
    }

    async fn known(&self, id: ScheduleId) -> Result<Info, Refusal> {
        Ok(self.schedules.get(id).await?.ok_or(Rejection::Unknown { id })?)
    }

    /// The schedule `id`, if the caller may have called what it calls.
    async fn reachable(&self, caller: &Caller, id: ScheduleId) -> Result<Info, Refusal> {
        caller.may_use_shared(super::NAME)?;
        let info = self.known(id).await?;
        self.may_reach(caller, &info.schedule.spec)?;
        Ok(info)
    }
}

fn views(upcoming: Vec<super::when::Upcoming>) -> Vec<UpcomingView> {
    upcoming.into_iter().map(UpcomingView::from).collect()
}
