//! What people ask of schedules: make, change, pause, resume, cancel, delete, run now.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::{Decide, Decision};

use crate::due::skipped;
use crate::event::{End, Event};
use crate::id::Shard;
use crate::index::Claimer;
use crate::timetable::{Schedule, Status};
use crate::{
    Message, Missed, NodeId, Overlap, Rejection, Retry, ScheduleId, SkipReason, Spec, Timetable, Timing,
};

type Decided<R> = Result<Decision<Event, R>, Rejection>;

/// Makes a schedule.
#[derive(Debug, Clone)]
pub struct Create {
    /// What it is to be.
    pub spec: Spec,
    /// The stream it is made in.
    pub shard: Shard,
    /// Its number is greater than that of the `floor`-th schedule.
    pub floor: u64,
    /// Where it stands already, if it was kept elsewhere before.
    pub past: Option<Past>,
    /// A single time must be to come. Otherwise one that is over is delivered late.
    pub ahead: bool,
}

/// Where a schedule stands that was kept elsewhere before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// Its next due time, in milliseconds since 1970; may be over.
    pub next_ms: i64,
    /// How often it was delivered.
    pub delivered: u32,
    /// When it was last attempted, in milliseconds since 1970.
    pub last_run_ms: Option<i64>,
}

/// A schedule that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Its number.
    pub id: ScheduleId,
    /// Its first due time, in milliseconds since 1970.
    pub next_ms: i64,
}

/// Changes a schedule that is not over. What is not said stays as it is. Occurrences that are open already keep their due
/// time and get the new message.
#[derive(Debug, Clone, Default)]
pub struct Update {
    /// Which.
    pub id: ScheduleId,
    /// How it is changed.
    pub change: Change,
}

/// How a schedule is changed. What is not said stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// A name for people.
    pub name: Option<Arc<str>>,
    /// What it says.
    pub message: Option<Message>,
    /// When it is due, and how its author wrote that.
    pub timing: Option<(Timing, Arc<str>)>,
    /// Nothing is due before it; `Some(None)` for no bound.
    pub start_ms: Option<Option<i64>>,
    /// Nothing is due after it; `Some(None)` for no bound.
    pub end_ms: Option<Option<i64>>,
    /// After so many deliveries it is completed; `Some(None)` for no bound.
    pub max_repetitions: Option<Option<NonZeroU32>>,
    /// What becomes of missed due times.
    pub missed: Option<Missed>,
    /// What becomes of due times while an occurrence is open.
    pub overlap: Option<Overlap>,
    /// The greatest delay, in milliseconds.
    pub jitter_ms: Option<u32>,
    /// How failed deliveries are tried again; `Some(None)` for the target's habit.
    pub retry: Option<Option<Retry>>,
}

/// Nothing is due until it is resumed. What is open already goes on.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    /// Which.
    pub id: ScheduleId,
}

/// It goes on. Due times that passed meanwhile are skipped, except that of a schedule that is due once: it follows the
/// rule for [missed](Missed) due times.
#[derive(Debug, Clone, Copy)]
pub struct Resume {
    /// Which.
    pub id: ScheduleId,
}

/// Ends it for good. A delivery that is under way may still succeed; nothing is delivered afterwards.
#[derive(Debug, Clone, Copy)]
pub struct Cancel {
    /// Which.
    pub id: ScheduleId,
}

/// What came of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cancelled {
    /// It is cancelled now.
    Now,
    /// It was cancelled before.
    Before,
}

/// Cancels it and forgets it, with all that became of it.
#[derive(Debug, Clone, Copy)]
pub struct Delete {
    /// Which.
    pub id: ScheduleId,
}

/// Delivers it once, now, whatever its timing says. That counts for no limit.
#[derive(Debug, Clone, Copy)]
pub struct RunNow {
    /// Which.
    pub id: ScheduleId,
}

/// From now on this node takes deliveries of this stream. Holds until the process ends.
#[derive(Debug, Clone)]
pub struct Attend {
    /// Who.
    pub node: NodeId,
}

impl Decide<Create> for Timetable {
    type Reply = Made;
    const NAME: &'static str = "schedule_create";

    fn decide(&self, now: Timestamp, command: &Create) -> Decided<Made> {
        let now_ms = now.as_millisecond();
        check(&command.spec)?;
        if let Some(origin) = command.spec.source()
            && let Some((id, _)) = self.after(None).find(|(_, other)| other.spec.source() == Some(origin))
        {
            return Err(Rejection::Imported { origin: origin.to_string(), id });
        }
        if self.schedules.len().saturating_sub(self.ended.len()) >= Self::MAX_LIVE {
            return Err(Rejection::TooMany);
        }
        if let Timing::Once { at_ms } = command.spec.timing
            && command.ahead
            && at_ms < now_ms
        {
            return Err(Rejection::Over { value: command.spec.value.to_string() });
        }
        let next_ms = match command.past {
            Some(past) => past.next_ms,
            None => first_due(&command.spec, now_ms)?,
        };
        let id = ScheduleId::compose(command.floor.max(self.count) + 1, command.shard);
        let event = Event::Created {
            id,
            spec: Box::new(command.spec.clone()),
            at: now_ms,
            next: Some(next_ms),
            delivered: command.past.map_or(0, |past| past.delivered),
            last_run: command.past.and_then(|past| past.last_run_ms),
        };
        Ok(Decision::event(event, Made { id, next_ms }))
    }
}

impl Decide<Update> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_update";

    fn decide(&self, now: Timestamp, command: &Update) -> Decided<()> {
        let (id, now_ms) = (command.id, now.as_millisecond());
        let schedule = self.live(id)?;
        let spec = changed(&schedule.spec, &command.change);
        check(&spec)?;
        let (mut events, unopened) = take_back(id, schedule, now_ms);
        let taken_back = events.len();
        let dates_stay = spec.timing == schedule.spec.timing
            && spec.start_ms() == schedule.spec.start_ms()
            && spec.end_ms() == schedule.spec.end_ms();
        let next = if dates_stay {
            unopened.or(schedule.next_ms)
        } else {
            // After a clock was put back, what was decided stays decided.
            let stays = |open: &&crate::Occurrence| is_kept(open, unopened);
            let kept = schedule.open.iter().filter(stays).map(|open| open.due_ms);
            let decided = kept.fold(schedule.over_ms, i64::max);
            match spec.next_after(decided.max(now_ms)) {
                None if schedule.open.len() == taken_back => {
                    return Err(Rejection::NeverDue { value: spec.value.to_string() });
                }
                next => next,
            }
        };
        let often_enough = spec.max_repetitions.is_some_and(|max| schedule.delivered >= max.get());
        events.push(Event::Updated { id, spec: Box::new(spec), at: now_ms, next });
        if often_enough {
            // What was imported may have been delivered elsewhere only.
            let last = (schedule.over_ms != i64::MIN).then_some(schedule.over_ms);
            events.push(Event::Ended { id, end: End::Completed, at: now_ms, last });
        }
        Ok(Decision::events(events, ()))
    }
}

impl Decide<Pause> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_pause";

    fn decide(&self, now: Timestamp, command: &Pause) -> Decided<()> {
        let (id, now_ms) = (command.id, now.as_millisecond());
        let schedule = self.live(id)?;
        if schedule.status == Status::Paused {
            return Ok(Decision::unchanged(()));
        }
        let (mut events, _) = take_back(id, schedule, now_ms);
        events.push(Event::Paused { id, at: now_ms });
        Ok(Decision::events(events, ()))
    }
}

impl Decide<Resume> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_resume";

    fn decide(&self, now: Timestamp, command: &Resume) -> Decided<()> {
        let (id, at) = (command.id, now.as_millisecond());
        let schedule = self.live(id)?;
        if schedule.status == Status::Active {
            return Ok(Decision::unchanged(()));
        }
        let mut next = schedule.next_ms;
        let mut events = Vec::new();
        if let Some(passed) = next.filter(|next| *next < at)
            && !matches!(schedule.spec.timing, Timing::Once { .. })
        {
            let skipped = skipped(id, schedule, passed, at, SkipReason::Paused, at);
            if let Event::Skipped { next: following, .. } = skipped {
                next = following;
            }
            events.push(skipped);
        }
        events.push(Event::Resumed { id, at, next });
        if next.is_none() && schedule.open.is_empty() {
            events.push(Event::Ended { id, end: End::Completed, at, last: None });
        }
        Ok(Decision::events(events, ()))
    }
}

impl Decide<Cancel> for Timetable {
    type Reply = Cancelled;
    const NAME: &'static str = "schedule_cancel";

    fn decide(&self, now: Timestamp, command: &Cancel) -> Decided<Cancelled> {
        let id = command.id;
        let schedule = self.get(id).ok_or(Rejection::Unknown { id })?;
        match schedule.status {
            Status::Cancelled => Ok(Decision::unchanged(Cancelled::Before)),
            Status::Active | Status::Paused => {
                let events = cancel(id, schedule, now.as_millisecond());
                Ok(Decision::events(events, Cancelled::Now))
            }
            status @ (Status::Completed | Status::Failed) => Err(Rejection::Ended { id, status }),
        }
    }
}

impl Decide<Delete> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_delete";

    fn decide(&self, now: Timestamp, command: &Delete) -> Decided<()> {
        let (id, at) = (command.id, now.as_millisecond());
        let schedule = self.get(id).ok_or(Rejection::Unknown { id })?;
        let mut events = Vec::new();
        if schedule.status.is_live() {
            events = cancel(id, schedule, at);
        }
        events.push(Event::Deleted { id, at });
        Ok(Decision::events(events, ()))
    }
}

impl Decide<RunNow> for Timetable {
    /// The due time of the occurrence, in milliseconds since 1970.
    type Reply = i64;
    const NAME: &'static str = "schedule_run_now";

    fn decide(&self, now: Timestamp, command: &RunNow) -> Decided<i64> {
        let (id, now_ms) = (command.id, now.as_millisecond());
        let schedule = self.live(id)?;
        if schedule.open.len() >= Self::MAX_OPEN {
            return Err(Rejection::TooManyOpen { id });
        }
        // Every occurrence has a due time of its own: it is what tells them apart.
        let will_be_due = |due_ms: i64| {
            let next_ms = schedule.next_ms.filter(|next_ms| *next_ms <= due_ms);
            next_ms.is_some() && schedule.spec.next_after(due_ms.saturating_sub(1)) == Some(due_ms)
        };
        let taken = |due_ms: i64| will_be_due(due_ms) || schedule.occurrence(due_ms).is_some();
        let mut due = now_ms.max(schedule.over_ms.saturating_add(1));
        while taken(due) {
            due = due.saturating_add(1);
        }
        let event =
            Event::Opened { id, due, ready: now_ms, node: None, next: None, manual: true, released: true };
        Ok(Decision::event(event, due))
    }
}

impl Decide<Attend> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_attend";

    fn decide(&self, _now: Timestamp, _command: &Attend) -> Decided<()> {
        Ok(Decision::unchanged(()))
    }

    fn observe(&mut self, _now: Timestamp, command: &Attend, _accepted: bool) -> Option<Event> {
        self.index.claimer = Some(Claimer { node: command.node.clone() });
        // Whoever attends wants to be woken earlier.
        self.rebuild_index();
        None
    }
}

fn first_due(spec: &Spec, now_ms: i64) -> Result<i64, Rejection> {
    let next = match spec.timing {
        // Late is better than never; the rule for missed due times has the last word.
        Timing::Once { at_ms } => spec.next_after(at_ms.saturating_sub(1)),
        Timing::Cron { .. } | Timing::Every { .. } => spec.next_after(now_ms),
    };
    next.ok_or_else(|| Rejection::NeverDue { value: spec.value.to_string() })
}

/// The end of `schedule`, and of what it has open and nobody delivers yet.
fn cancel(id: ScheduleId, schedule: &Schedule, at: i64) -> Vec<Event> {
    let (mut events, first) = take_back(id, schedule, at);
    let why = SkipReason::Cancelled;
    let stays = |open: &&crate::Occurrence| is_kept(open, first);
    let waits = schedule.open.iter().filter(stays).filter(|open| is_withdrawable(open, at));
    events.extend(waits.map(|open| Event::Withdrawn { id, due: open.due_ms, why, at }));
    events.push(Event::Ended { id, end: End::Cancelled, at, last: schedule.next_run_ms() });
    events
}

/// Whether `open` is still there once what is due from `unopened` on was taken back.
fn is_kept(open: &crate::Occurrence, unopened: Option<i64>) -> bool {
    open.manual || unopened.is_none_or(|first| open.due_ms < first)
}

/// Whether nobody can have begun to deliver it at `now_ms`.
const fn is_withdrawable(open: &crate::Occurrence, now_ms: i64) -> bool {
    open.claimed_by.is_none() || open.ready_ms > now_ms
}

/// Takes back what was opened ahead and is not due yet, and gives the due time that then comes next.
fn take_back(id: ScheduleId, schedule: &Schedule, now_ms: i64) -> (Vec<Event>, Option<i64>) {
    let mut early = Vec::new();
    let mut following = schedule.next_ms;
    let scheduled: Vec<_> = schedule.scheduled().collect();
    for open in scheduled.into_iter().rev() {
        // After a clock was put back, what is over looks as if it were to come: only what comes last can come again.
        let is_last = schedule.spec.next_after(open.due_ms) == following;
        let is_untried = open.attempts == 0 || open.attempts == 1 && open.claimed_by.is_some();
        if !(is_last && open.due_ms > now_ms && is_untried) {
            break;
        }
        early.push(open.due_ms);
        following = Some(open.due_ms);
    }
    let first = early.last().copied();
    let take_back = |due| Event::Unopened { id, due, next: first };
    (early.into_iter().rev().map(take_back).collect(), first)
}

fn changed(spec: &Spec, change: &Change) -> Spec {
    let mut spec = spec.clone();
    if let Some(name) = &change.name {
        spec.name = name.clone();
    }
    if let Some(message) = &change.message {
        spec.message = message.clone();
    }
    if let Some((timing, value)) = &change.timing {
        (spec.timing, spec.value) = (timing.clone(), value.clone());
    }
    spec.missed = change.missed.unwrap_or(spec.missed);
    spec.overlap = change.overlap.unwrap_or(spec.overlap);
    spec.max_repetitions = change.max_repetitions.unwrap_or(spec.max_repetitions);
    if change.start_ms.is_some()
        || change.end_ms.is_some()
        || change.jitter_ms.is_some()
        || change.retry.is_some()
    {
        let more = spec.more_mut();
        more.start_ms = change.start_ms.unwrap_or(more.start_ms);
        more.end_ms = change.end_ms.unwrap_or(more.end_ms);
        more.jitter_ms = change.jitter_ms.unwrap_or(more.jitter_ms);
        more.retry = change.retry.unwrap_or(more.retry);
    }
    spec
}

/// What is wrong with `spec`, whatever it calls.
pub(crate) fn check(spec: &Spec) -> Result<(), Rejection> {
    let long = |what: &str, len: usize, most: usize| {
        Err(Rejection::Invalid(format!("{what} has {len} bytes, the most is {most}")))
    };
    if spec.name.len() > Spec::MAX_NAME {
        return long("the name", spec.name.len(), Spec::MAX_NAME);
    }
    if spec.address.to.len() > Spec::MAX_TO {
        return long("the destination", spec.address.to.len(), Spec::MAX_TO);
    }
    if spec.address.to.is_empty() {
        return Err(Rejection::Invalid("the destination is empty: say whom to call".to_owned()));
    }
    if spec.value.len() > Spec::MAX_VALUE {
        return long("the time", spec.value.len(), Spec::MAX_VALUE);
    }
    if spec.message.as_str().len() > Message::MAX_BYTES {
        return long("the message", spec.message.as_str().len(), Message::MAX_BYTES);
    }
    if spec.jitter_ms() > Spec::MAX_JITTER_MS {
        let text = format!("a jitter of {} ms is too long, the most is a day", spec.jitter_ms());
        return Err(Rejection::Invalid(text));
    }
    if let Missed::All { max, .. } = spec.missed
        && !(1..=Missed::MAX_ALL).contains(&max)
    {
        let text = format!("{max} missed due times cannot be made up for: say 1 to {}", Missed::MAX_ALL);
        return Err(Rejection::Invalid(text));
    }
    if let (Some(start), Some(end)) = (spec.start_ms(), spec.end_ms())
        && end < start
    {
        return Err(Rejection::Invalid(
            "the end is before the start: swap them, or leave one out".to_owned(),
        ));
    }
    Ok(())
}
