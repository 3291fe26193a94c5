//! The machine of one stream of schedules: its state, and what events make of it.
//!
//! The rules stand beside it: [`due`](crate::due) says what the passing of time means, `change.rs` what people ask for,
//! `settle.rs` what comes of deliveries, `pass.rs` what is delivered by hand.
//!
//! Deliveries are claimed by **nodes** (running servers). A node that [attends](crate::Attend) gets its claims in the same
//! entry that opens their occurrences, and keeps them for as long as its lease is renewed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::Machine;

use crate::due;
use crate::event::{End, Event};
use crate::history::History;
use crate::index::{Index, Lane, Notice};
use crate::{
    Fate, NodeId, Occurrence, OccurrenceId, Overlap, Record, Rejection, ScheduleId, Settings, SkipReason,
    Spec,
};

/// The schedules of one stream.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Timetable {
    pub(crate) schedules: BTreeMap<ScheduleId, Box<Schedule>>,
    /// The [count](ScheduleId::count) of the newest schedule there ever was.
    pub(crate) count: u64,
    /// Until when the claims of each node hold.
    pub(crate) leases: BTreeMap<NodeId, i64>,
    pub(crate) history: History,
    /// Schedules that are over, the oldest first.
    pub(crate) ended: VecDeque<ScheduleId>,
    #[serde(skip)]
    pub(crate) settings: Settings,
    #[serde(skip)]
    pub(crate) index: Index,
}

/// A schedule and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// What it was asked to be.
    pub spec: Spec,
    /// Whether it goes on.
    pub status: Status,
    /// Its next due time, in milliseconds since 1970. One that is over keeps the one at which it ended, to be shown.
    #[serde(rename = "next")]
    pub next_ms: Option<i64>,
    /// When it was made, in milliseconds since 1970.
    #[serde(rename = "created")]
    pub created_ms: i64,
    /// When a delivery was last attempted, in milliseconds since 1970.
    #[serde(rename = "last_run", default, skip_serializing_if = "Option::is_none")]
    pub last_run_ms: Option<i64>,
    /// How often it was delivered, beside what was asked for by hand.
    #[serde(default)]
    pub delivered: u32,
    /// Its occurrences that are not over, by due time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Occurrence>,
    /// The latest due time of which it is decided what became of it, in milliseconds since 1970. Kept longer than the
    /// history: after a clock was put back, it must not come again.
    #[serde(rename = "over", default = "never", skip_serializing_if = "is_never")]
    pub(crate) over_ms: i64,
    /// When it wants to be looked at: where the index has it.
    #[serde(skip)]
    pub(crate) wake_ms: i64,
}

const fn never() -> i64 {
    i64::MIN
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_never(at_ms: &i64) -> bool {
    *at_ms == never()
}

/// Whether a schedule goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is due from time to time.
    Active,
    /// Nothing is due until it is resumed.
    Paused,
    /// It did all it was asked for.
    Completed,
    /// Somebody ended it.
    Cancelled,
    /// Its only occurrence could not be delivered.
    Failed,
}

impl Status {
    /// Whether it may be due again.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        })
    }
}

impl Schedule {
    /// The due time that an observer waits for: of the first open occurrence, else the next. One that is over keeps what it
    /// had: the due time whose delivery was the last, or that it was cancelled before.
    pub fn next_run_ms(&self) -> Option<i64> {
        self.scheduled().map(|open| open.due_ms).next().or(self.next_ms)
    }

    /// Its open occurrences beside those that were asked for by hand.
    pub(crate) fn scheduled(&self) -> impl Iterator<Item = &Occurrence> {
        self.open.iter().filter(|open| !open.manual)
    }

    pub(crate) fn occurrence(&self, due_ms: i64) -> Option<&Occurrence> {
        self.open.iter().find(|open| open.due_ms == due_ms)
    }

    fn occurrence_mut(&mut self, due_ms: i64) -> Option<&mut Occurrence> {
        self.open.iter_mut().find(|open| open.due_ms == due_ms)
    }

    fn close(&mut self, due_ms: i64) -> Option<Occurrence> {
        let place = self.open.iter().position(|open| open.due_ms == due_ms)?;
        let closed = self.open.remove(place);
        if self.open.is_empty() {
            // There may be a million schedules, and few of them have anything open.
            self.open = Vec::new();
        }
        Some(closed)
    }

    /// Takes in what was decided of its occurrence at `due_ms`, before that is durable.
    pub(crate) fn settled(&mut self, due_ms: i64, events: &[Event]) {
        for event in events {
            match event {
                Event::Delivered { .. } => {
                    let counts = self.close(due_ms).is_some_and(|closed| !closed.manual);
                    self.delivered = self.delivered.saturating_add(u32::from(counts));
                }
                Event::Failed { retry: None, .. } => {
                    self.close(due_ms);
                }
                Event::Failed { .. } => {
                    if let Some(open) = self.occurrence_mut(due_ms) {
                        open.claimed_by = None;
                    }
                }
                Event::Ended { .. } => self.status = Status::Completed,
                _ => {}
            }
        }
    }

    /// Whether `open`, one of its occurrences, is delivered no more unless that has begun.
    pub(crate) fn is_called_off(&self, open: &Occurrence) -> bool {
        match self.status {
            Status::Active | Status::Paused => false,
            Status::Cancelled => true,
            Status::Completed | Status::Failed => !open.manual,
        }
    }

    /// How many more occurrences may be opened before it has been delivered often enough.
    pub(crate) fn repetitions_left(&self) -> u64 {
        let Some(max) = self.spec.max_repetitions else { return u64::MAX };
        u64::from(max.get()).saturating_sub(u64::from(self.delivered) + self.scheduled().count() as u64)
    }
}

impl Timetable {
    /// How many schedules of one stream may be active or paused.
    pub const MAX_LIVE: usize = 200_000;
    /// How many schedules of one stream are kept after their end; the oldest are forgotten.
    pub const MAX_ENDED: usize = 10_000;
    /// How many occurrences of one schedule may be open.
    pub const MAX_OPEN: usize = 100;

    /// The schedule `id`.
    pub fn get(&self, id: ScheduleId) -> Option<&Schedule> {
        self.schedules.get(&id).map(|schedule| &**schedule)
    }

    /// Its schedules after `after`, in the order in which they were made.
    pub fn after(&self, after: Option<ScheduleId>) -> impl Iterator<Item = (ScheduleId, &Schedule)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.schedules.range((from, Unbounded)).map(|(id, schedule)| (*id, &**schedule))
    }

    /// What became of due times of `id`, oldest first, for as long as it is kept.
    pub fn history(&self, id: ScheduleId) -> impl DoubleEndedIterator<Item = &Record> {
        self.history.of(id)
    }

    /// What became of due times of all its schedules, for as long as it is kept.
    pub fn records(&self) -> impl Iterator<Item = (ScheduleId, &Record)> {
        self.history.iter()
    }

    pub(crate) fn live(&self, id: ScheduleId) -> Result<&Schedule, Rejection> {
        let schedule = self.get(id).ok_or(Rejection::Unknown { id })?;
        if schedule.status.is_live() {
            Ok(schedule)
        } else {
            Err(Rejection::Ended { id, status: schedule.status })
        }
    }

    /// In whose turn an occurrence of `schedule` is delivered; none if it need not wait for any other.
    pub(crate) fn lane(&self, id: ScheduleId, schedule: &Schedule) -> Option<Lane> {
        lane(&self.settings, id, schedule)
    }

    pub(crate) fn is_by_pass(&self, schedule: &Schedule) -> bool {
        self.settings.is_by_pass(&schedule.spec.address.kind)
    }

    /// Changes a schedule and what is known of it.
    fn change(&mut self, id: ScheduleId, change: impl FnOnce(&mut Schedule)) {
        let Some(schedule) = self.schedules.get_mut(&id) else { return };
        self.index.remove(id, schedule, lane(&self.settings, id, schedule));
        change(schedule);
        self.add_to_index(id);
    }

    fn add_to_index(&mut self, id: ScheduleId) {
        let Some(schedule) = self.schedules.get(&id) else { return };
        let by_pass = self.is_by_pass(schedule);
        let lane = self.lane(id, schedule);
        let wake = due::wake_ms(&self.settings, self.index.claimer.is_some(), schedule, lane);
        if let Some(schedule) = self.schedules.get_mut(&id) {
            self.index.add(id, schedule, wake, lane, by_pass);
        }
    }

    /// Works out anew all that follows from the rest.
    pub(crate) fn rebuild_index(&mut self) {
        self.index.clear();
        self.history.index();
        let ids: Vec<_> = self.schedules.keys().copied().collect();
        for id in ids {
            self.add_to_index(id);
        }
    }

    fn add_record(&mut self, id: ScheduleId, record: Record) {
        let keep_after = record.at_ms.saturating_sub(self.settings.keep_ms);
        self.history.add(id, record, keep_after);
    }

    fn close(&mut self, id: ScheduleId, due_ms: i64, at_ms: i64, fate: Fate, attempted: bool) {
        let mut closed = None;
        self.change(id, |schedule| {
            closed = schedule.close(due_ms);
            schedule.over_ms = schedule.over_ms.max(due_ms);
            if attempted {
                schedule.last_run_ms = Some(at_ms);
            }
            if matches!(fate, Fate::Delivered { .. }) && closed.as_ref().is_some_and(|closed| !closed.manual)
            {
                schedule.delivered = schedule.delivered.saturating_add(1);
            }
        });
        if let Some(closed) = closed {
            let record = Record { due_ms, at_ms, fate, attempts: closed.attempts };
            self.add_record(id, record);
        }
    }

    fn end(&mut self, id: ScheduleId, status: Status, last_ms: Option<i64>) {
        let decided = self.history.of(id).next_back().map(Record::last_due_ms);
        self.change(id, |schedule| {
            schedule.status = status;
            schedule.next_ms = last_ms.or(schedule.next_ms).or(decided);
        });
        self.note_called_off(id, Schedule::is_called_off);
        self.ended.push_back(id);
        while self.ended.len() > Self::MAX_ENDED {
            if let Some(oldest) = self.ended.pop_front() {
                self.forget(oldest);
            }
        }
    }

    fn forget(&mut self, id: ScheduleId) {
        self.note_called_off(id, |_, _| true);
        if let Some(schedule) = self.schedules.remove(&id) {
            self.index.remove(id, &schedule, lane(&self.settings, id, &schedule));
        }
        self.history.forget(id);
    }

    fn note_claim(&mut self, id: ScheduleId, due_ms: i64, node: &NodeId) {
        let occurrence = OccurrenceId { due_ms, schedule: id };
        self.index.note(node, Notice::Claimed(occurrence));
    }

    /// Those of its claimed occurrences that `is_called_off` are not begun any more.
    fn note_called_off(&mut self, id: ScheduleId, is_called_off: impl Fn(&Schedule, &Occurrence) -> bool) {
        let Some(schedule) = self.get(id) else { return };
        let off = schedule.open.iter().filter(|open| is_called_off(schedule, open));
        let off: Vec<_> = off.map(|open| open.due_ms).collect();
        for due_ms in off {
            self.note_withdrawn(id, due_ms);
        }
    }

    fn note_withdrawn(&mut self, id: ScheduleId, due_ms: i64) {
        let claimed = self.get(id).and_then(|schedule| schedule.occurrence(due_ms)?.claimed_by.clone());
        if let Some(node) = claimed {
            self.index.note(&node, Notice::Withdrawn(OccurrenceId { due_ms, schedule: id }));
        }
    }
}

fn lane(settings: &Settings, id: ScheduleId, schedule: &Schedule) -> Option<Lane> {
    if settings.is_ordered(&schedule.spec.address.kind) {
        Some(Lane::destination(&schedule.spec.address))
    } else {
        (schedule.spec.overlap == Overlap::Queue).then_some(Lane::Schedule(id))
    }
}

impl Machine for Timetable {
    const VERSION: u32 = 1;
    type Settings = Settings;
    type Event = Event;
    type Rejection = Rejection;

    fn new() -> Self {
        Self::default()
    }

    fn configure(&mut self, settings: &Settings) {
        self.settings = settings.clone();
        self.rebuild_index();
    }

    #[expect(clippy::too_many_lines, reason = "one arm per event, and nothing to decide")]
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Created { id, spec, at, next, delivered, last_run } => {
                self.count = self.count.max(id.count());
                let schedule = Schedule {
                    spec: self.index.shared(spec),
                    status: Status::Active,
                    next_ms: *next,
                    created_ms: *at,
                    last_run_ms: *last_run,
                    delivered: *delivered,
                    open: Vec::new(),
                    over_ms: never(),
                    wake_ms: i64::MIN,
                };
                self.schedules.insert(*id, Box::new(schedule));
                self.add_to_index(*id);
            }
            Event::Updated { id, spec, at: _, next } => {
                let spec = self.index.shared(spec);
                self.change(*id, |schedule| {
                    schedule.spec = spec;
                    schedule.next_ms = *next;
                });
            }
            Event::Paused { id, at: _ } => self.change(*id, |schedule| schedule.status = Status::Paused),
            Event::Resumed { id, at: _, next } => self.change(*id, |schedule| {
                schedule.status = Status::Active;
                schedule.next_ms = *next;
            }),
            Event::Ended { id, end, at: _, last } => self.end(
                *id,
                match end {
                    End::Completed => Status::Completed,
                    End::Cancelled => Status::Cancelled,
                    End::Failed => Status::Failed,
                },
                *last,
            ),
            Event::Deleted { id, at: _ } => {
                self.ended.retain(|ended| ended != id);
                self.forget(*id);
            }
            Event::Opened { id, due, ready, node, next, manual, released } => {
                self.change(*id, |schedule| {
                    let occurrence = Occurrence {
                        due_ms: *due,
                        ready_ms: *ready,
                        attempts: u32::from(node.is_some()),
                        claimed_by: node.clone(),
                        manual: *manual,
                        released: *released,
                        error: None,
                    };
                    let place = schedule.open.partition_point(|open| open.due_ms < *due);
                    schedule.open.insert(place, occurrence);
                    if !manual && schedule.status.is_live() {
                        schedule.next_ms = *next;
                    }
                });
                if let Some(node) = node {
                    self.note_claim(*id, *due, node);
                }
            }
            Event::Unopened { id, due, next } => {
                self.note_withdrawn(*id, *due);
                self.change(*id, |schedule| {
                    schedule.close(*due);
                    schedule.next_ms = *next;
                });
            }
            Event::Skipped { id, due, last, count, or_more, why, at, next } => {
                self.change(*id, |schedule| {
                    schedule.next_ms = *next;
                    schedule.over_ms = schedule.over_ms.max(*last);
                });
                let fate = Fate::Skipped { why: *why, last_ms: *last, count: *count, or_more: *or_more };
                self.add_record(*id, Record { due_ms: *due, at_ms: *at, fate, attempts: 0 });
            }
            Event::Withdrawn { id, due, why, at } => {
                self.note_withdrawn(*id, *due);
                let fate = Fate::Skipped { why: *why, last_ms: *due, count: 1, or_more: false };
                self.close(*id, *due, *at, fate, false);
            }
            Event::Released { id, due, ready } => self.change(*id, |schedule| {
                if let Some(open) = schedule.occurrence_mut(*due) {
                    open.ready_ms = *ready;
                    open.released = true;
                }
            }),
            Event::Claimed { id, due, node } => {
                self.change(*id, |schedule| {
                    if let Some(open) = schedule.occurrence_mut(*due) {
                        open.claimed_by = Some(node.clone());
                        open.attempts = open.attempts.saturating_add(1);
                    }
                });
                self.note_claim(*id, *due, node);
            }
            Event::Delivered { id, due, at, reply } => {
                self.close(*id, *due, *at, Fate::Delivered { reply: reply.clone() }, true);
            }
            Event::Failed { id, due, at, error, retry: None } => {
                self.close(*id, *due, *at, Fate::Dead { error: error.clone() }, true);
            }
            Event::Failed { id, due, at, error, retry: Some(retry) } => self.change(*id, |schedule| {
                schedule.last_run_ms = Some(*at);
                if let Some(open) = schedule.occurrence_mut(*due) {
                    open.claimed_by = None;
                    open.released = false;
                    open.ready_ms = *retry;
                    open.error = Some(error.clone());
                }
            }),
            Event::Leased { node, until } => {
                self.leases.insert(node.clone(), *until);
            }
            Event::Lapsed { node, at: _ } => {
                self.leases.remove(node);
                for occurrence in self.index.claims_of(node) {
                    self.index.note(node, Notice::Withdrawn(occurrence));
                    self.change(occurrence.schedule, |schedule| {
                        if let Some(open) = schedule.occurrence_mut(occurrence.due_ms) {
                            open.claimed_by = None;
                        }
                    });
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        due::deadline_ms(self).map(|at_ms| Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MIN))
    }

    fn tick(&self, now: Timestamp) -> Vec<Event> {
        due::tick(self, now.as_millisecond())
    }

    fn ticked(&mut self, now: Timestamp) {
        let (schedules, settings) = (&self.schedules, &self.settings);
        self.index.ticked(now.as_millisecond(), |id| lane(settings, id, schedules.get(&id)?));
    }

    fn resume(&mut self, now: Timestamp) {
        if !self.settings.shared {
            self.index.on_time_from_ms = now.as_millisecond();
        }
    }

    fn abandon(&self, now: Timestamp) -> Vec<Event> {
        let at = now.as_millisecond();
        let mut nodes = self.index.claimers();
        nodes.extend(self.leases.keys().cloned());
        nodes.into_iter().map(|node| Event::Lapsed { node, at }).collect()
    }

    fn adopt(&mut self, stale: Self) {
        self.index.adopt(stale.index);
        self.rebuild_index();
    }
}

impl Timetable {
    /// Whether the due time `due_ms` passed while nobody could act on it.
    pub(crate) fn missed_before_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(i64::from(self.settings.grace_ms)).max(self.index.on_time_from_ms).min(now_ms)
    }

    /// The reason for which due times are skipped while a schedule has as many open as `limit`.
    pub(crate) const fn full_reason(limit: usize) -> SkipReason {
        if limit == 1 { SkipReason::Overlap } else { SkipReason::TooManyOpen }
    }
}
