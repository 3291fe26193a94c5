//! A second reading of the journal: every due time from the creation of its schedule on, and every delivery from its claim
//! to the target.
//!
//! The books know the timings (which are tested by tables) and the documented rules, not the code that follows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use switchboard_exchange::{Clock as _, Record};
use switchboard_journal::StreamId;
use switchboard_schedule::{
    Address, End, Event, Fate, Missed, NodeId, OccurrenceId, Overlap, ScheduleId, Settings, SkipReason, Spec,
    Status, Timetable, Timing, key,
};
use tokio::time::Instant;

use crate::ledger::Broken;
use crate::schedules::clock::NodeClock;

/// How many due times are stepped through to check a count.
const STEPS: usize = 20_000;

/// How many entries one stream may get within one second of virtual time.
const ENTRIES_PER_SECOND: u32 = 2_000;

/// An occurrence that is not over.
#[derive(Debug, Clone)]
pub struct Open {
    /// When it may be delivered.
    pub ready: i64,
    /// Who delivers it.
    pub claimed_by: Option<NodeId>,
    /// How often it was claimed.
    pub attempts: u32,
    /// Whether somebody asked for it.
    pub manual: bool,
    /// Whether a pass asked for it.
    pub released: bool,
}

/// What became of an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The target has it.
    Delivered,
    /// No attempt succeeded.
    Dead,
    /// Its schedule was over first.
    Withdrawn,
}

/// The page of one schedule.
#[derive(Debug)]
pub struct Page {
    stream: StreamId,
    /// What it is asked to be.
    pub spec: Box<Spec>,
    /// How it stands.
    pub status: Status,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Its next due time.
    pub next: Option<i64>,
    /// What is open.
    pub open: BTreeMap<i64, Open>,
    /// What is over, by due time.
    pub closed: BTreeMap<i64, (Closed, bool)>,
    /// Ranges of due times that were skipped.
    skipped: BTreeMap<i64, i64>,
    delivered: u32,
    /// Whether its limits were changed while it ran.
    limits_changed: bool,
    /// How often something happened to it.
    changes: u64,
    /// When something of it was last over: what waited in line may go on from then.
    freed: i64,
}

impl Page {
    fn scheduled(&self) -> usize {
        self.open.values().filter(|open| !open.manual).count()
    }

    /// The latest due time of which is known that it came, or what became of it.
    fn last_decided(&self) -> Option<i64> {
        let open = self.open.keys().next_back();
        let closed = self.closed.keys().next_back();
        open.into_iter().chain(closed).chain(self.skipped.values().max()).copied().max()
    }

    fn is_decided(&self, due: i64) -> bool {
        self.open.contains_key(&due)
            || self.closed.contains_key(&due)
            || self.skipped.range(..=due).next_back().is_some_and(|(_, last)| due <= *last)
    }
}

/// What one entry has done so far.
#[derive(Debug, Default)]
struct Round {
    /// Late occurrences opened, by schedule.
    late: BTreeMap<ScheduleId, u32>,
    /// Schedules of which due times were skipped as missed.
    missed: BTreeSet<ScheduleId>,
    lapsed: bool,
}

/// A call of a target that has not ended.
#[derive(Debug)]
struct UnderWay {
    address: Address,
    node: NodeId,
}

/// The books of a run.
#[derive(Debug)]
pub struct Books {
    settings: Settings,
    /// Whether only one node writes.
    exclusive: bool,
    /// Whether nothing goes wrong in this run.
    calm: bool,
    /// All schedules there ever were.
    pub pages: BTreeMap<ScheduleId, Page>,
    names: BTreeMap<Arc<str>, ScheduleId>,
    clocks: BTreeMap<NodeId, Arc<NodeClock>>,
    /// Every claim there ever was.
    claims: BTreeSet<(OccurrenceId, u32, NodeId)>,
    /// Every attempt there ever was.
    begun: BTreeSet<(OccurrenceId, u32, NodeId)>,
    /// Schedules whose end was acknowledged.
    over: BTreeSet<ScheduleId>,
    /// What the target took, by key.
    accepted: BTreeMap<Arc<str>, u32>,
    under_way: BTreeMap<u64, UnderWay>,
    /// Deliveries that a target said it made to a node that is still there, until they are recorded.
    unrecorded: BTreeMap<OccurrenceId, NodeId>,
    deliveries: u64,
    pace: BTreeMap<StreamId, (Instant, u32)>,
    entries: u64,
    /// From when on nothing may be late, and by how much, in milliseconds.
    punctual: Option<i64>,
}

type Check = Result<(), Broken>;

fn ensure(holds: bool, rule: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(rule()) }
}

impl Books {
    /// Empty books.
    pub fn new(settings: Settings, exclusive: bool, calm: bool) -> Self {
        Self {
            settings,
            exclusive,
            calm,
            pages: BTreeMap::new(),
            names: BTreeMap::new(),
            clocks: BTreeMap::new(),
            claims: BTreeSet::new(),
            begun: BTreeSet::new(),
            over: BTreeSet::new(),
            accepted: BTreeMap::new(),
            under_way: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            deliveries: 0,
            pace: BTreeMap::new(),
            entries: 0,
            punctual: None,
        }
    }

    /// A node starts.
    pub fn node(&mut self, node: NodeId, clock: Arc<NodeClock>) {
        self.clocks.insert(node, clock);
    }

    /// How many deliveries were begun.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// How many entries there are.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// From now on a delivery that begins more than `most_ms` after it is ready is late, if nobody is before it in line.
    pub fn expect_punctuality(&mut self, most_ms: i64) {
        self.punctual = Some(most_ms);
    }

    fn is_ordered(&self, kind: &str) -> bool {
        self.settings.kinds.get(kind).is_some_and(|kind| kind.ordered)
    }

    fn is_by_pass(&self, kind: &str) -> bool {
        self.settings.kinds.get(kind).is_some_and(|kind| kind.by_pass)
    }

    fn attempts(&self, spec: &Spec) -> Option<u32> {
        let habit = || self.settings.kinds.get(&spec.address.kind).map(|kind| kind.retry).unwrap_or_default();
        spec.retry().unwrap_or_else(habit).attempts
    }

    // ---- entries -------------------------------------------------------------------------------------------------

    /// Enters an entry of the journal, and says which rules it breaks.
    pub fn enter(&mut self, stream: &StreamId, json: &str) -> Vec<Broken> {
        let record: Record<Event> = match serde_json::from_str(json) {
            Ok(record) => record,
            Err(error) => return vec![format!("an entry is a record: {error}")],
        };
        let at = record.at.expect("a record says when").as_millisecond();
        self.entries += 1;
        let mut broken = Vec::new();
        broken.extend(self.keeps_its_pace(stream).err());
        let mut round = Round::default();
        for event in &record.events {
            if let Err(rule) = self.event(stream, at, event, &mut round) {
                broken.push(format!("{rule}\n    at {at} by {event:?}"));
            }
        }
        broken
    }

    fn keeps_its_pace(&mut self, stream: &StreamId) -> Check {
        let now = Instant::now();
        let (since, count) = self.pace.entry(stream.clone()).or_insert((now, 0));
        if now.duration_since(*since).as_millis() >= 1_000 {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        ensure(*count <= ENTRIES_PER_SECOND, || format!("a timetable comes to rest: {stream} does not"))
    }

    fn page(&mut self, id: ScheduleId) -> Result<&mut Page, Broken> {
        let page = self.pages.get_mut(&id).ok_or_else(|| format!("there is a schedule {id}"))?;
        ensure(!page.deleted, || format!("nothing happens to schedule {id} once it is deleted"))?;
        page.changes += 1;
        Ok(page)
    }

    fn open(&mut self, id: ScheduleId, due: i64) -> Result<&mut Open, Broken> {
        self.page(id)?.open.get_mut(&due).ok_or_else(|| format!("occurrence {due} of {id} is open"))
    }

    fn close(&mut self, at: i64, id: ScheduleId, due: i64, how: Closed) -> Result<Open, Broken> {
        let page = self.page(id)?;
        page.freed = page.freed.max(at);
        let open =
            page.open.remove(&due).ok_or_else(|| format!("what is over is over once: {due} of {id}"))?;
        page.closed.insert(due, (how, open.manual));
        Ok(open)
    }

    #[expect(clippy::too_many_lines, reason = "one arm per event")]
    fn event(&mut self, stream: &StreamId, at: i64, event: &Event, round: &mut Round) -> Check {
        match event {
            Event::Created { id, spec, at: _, next, delivered, last_run: _ } => {
                let after = if let Timing::Once { at_ms } = spec.timing { at_ms - 1 } else { at };
                let first = spec.next_after(after);
                ensure(*next == first, || format!("the first due time of {id} is {first:?}"))?;
                ensure(!self.pages.contains_key(id), || format!("number {id} is new"))?;
                let earlier = self.names.insert(spec.name.clone(), *id);
                ensure(earlier.is_none(), || format!("a schedule is made once: {earlier:?} and {id}"))?;
                let page = Page {
                    stream: stream.clone(),
                    spec: spec.clone(),
                    status: Status::Active,
                    deleted: false,
                    next: *next,
                    open: BTreeMap::new(),
                    closed: BTreeMap::new(),
                    skipped: BTreeMap::new(),
                    delivered: *delivered,
                    limits_changed: false,
                    changes: 0,
                    freed: i64::MIN,
                };
                self.pages.insert(*id, page);
                Ok(())
            }
            Event::Updated { id, spec, at: _, next } => {
                let page = self.page(*id)?;
                ensure(page.status.is_live(), || format!("{id} is live"))?;
                let old = std::mem::replace(&mut page.spec, spec.clone());
                page.limits_changed |=
                    old.max_repetitions != spec.max_repetitions || old.overlap != spec.overlap;
                let dates_stay = old.timing == spec.timing
                    && old.start_ms() == spec.start_ms()
                    && old.end_ms() == spec.end_ms();
                if dates_stay {
                    let stays = page.next;
                    ensure(*next == stays, || format!("the next due time of {id} stays {stays:?}"))?;
                } else {
                    // What was decided before the clock was put back stays decided.
                    let after = page.last_decided().map_or(at, |decided| decided.max(at));
                    let follows = spec.next_after(after);
                    ensure(*next == follows, || format!("the next due time of {id} is {follows:?}"))?;
                }
                page.next = *next;
                Ok(())
            }
            Event::Paused { id, at: _ } => {
                let page = self.page(*id)?;
                ensure(page.status == Status::Active, || format!("{id} is active"))?;
                page.status = Status::Paused;
                Ok(())
            }
            Event::Resumed { id, at: _, next } => {
                let page = self.page(*id)?;
                ensure(page.status == Status::Paused, || format!("{id} is paused"))?;
                ensure(*next == page.next, || format!("no due time of {id} is lost on resuming"))?;
                page.status = Status::Active;
                Ok(())
            }
            Event::Ended { id, end, at: _, last: _ } => self.ended(*id, *end),
            Event::Deleted { id, at: _ } => {
                let page = self.page(*id)?;
                ensure(!page.status.is_live(), || format!("{id} is over before it is deleted"))?;
                page.deleted = true;
                Ok(())
            }
            Event::Opened { id, due, ready, node: _, next: _, manual: true, released: _ } => {
                let page = self.page(*id)?;
                ensure(page.status.is_live(), || format!("{id} is live"))?;
                ensure(!page.is_decided(*due), || format!("due time {due} of {id} is opened once"))?;
                let is_due =
                    page.next.is_some_and(|next| next <= *due) && page.spec.next_after(due - 1) == Some(*due);
                ensure(!is_due, || format!("what is asked for takes no due time of {id}"))?;
                let open =
                    Open { ready: *ready, claimed_by: None, attempts: 0, manual: true, released: true };
                page.open.insert(*due, open);
                Ok(())
            }
            Event::Opened { id, due, ready, node, next, manual: false, released } => {
                self.opened(at, *id, (*due, *ready), *next, *released, round)?;
                if let Some(node) = node {
                    let soon = i64::from(self.settings.lookahead_ms);
                    self.claimed((at, at + soon), *id, *due, node, round)?;
                }
                Ok(())
            }
            Event::Unopened { id, due, next } => {
                let page = self.page(*id)?;
                let open = page.open.remove(due);
                let is_untried =
                    |open: &Open| open.attempts == 0 || open.attempts == 1 && open.claimed_by.is_some();
                let taken_back = open.is_some_and(|open| !open.manual && is_untried(&open));
                ensure(taken_back && *due > at, || format!("{due} of {id} can be taken back"))?;
                ensure(next.is_some_and(|next| next <= *due), || format!("{due} of {id} comes again"))?;
                page.next = *next;
                // Claimed as if for the first time when it comes again.
                self.begun.retain(|(begun, ..)| (begun.schedule, begun.due_ms) != (*id, *due));
                Ok(())
            }
            Event::Skipped { id, due, last, count, or_more, why, at: _, next } => {
                self.skipped(at, *id, (*due, *last), (*count, *or_more), *why, *next, round)
            }
            Event::Withdrawn { id, due, why, at: _ } => {
                ensure(*why == SkipReason::Cancelled, || "only what is over is withdrawn".to_owned())?;
                self.close(at, *id, *due, Closed::Withdrawn).map(drop)
            }
            Event::Released { id, due, ready } => {
                let by_pass = self.page(*id)?.spec.address.kind.clone();
                let by_pass = self.is_by_pass(&by_pass);
                let open = self.open(*id, *due)?;
                ensure(by_pass && open.claimed_by.is_none(), || format!("{due} of {id} waits for a pass"))?;
                (open.ready, open.released) = (*ready, true);
                Ok(())
            }
            Event::Claimed { id, due, node } => self.claimed((at, at), *id, *due, node, round),
            Event::Delivered { id, due, at: _, reply: _ } => {
                let open = self.close(at, *id, *due, Closed::Delivered)?;
                let occurrence = OccurrenceId { due_ms: *due, schedule: *id };
                self.unrecorded.remove(&occurrence);
                let key = key(occurrence);
                ensure(self.accepted.contains_key(&key), || format!("what is delivered was taken: {key}"))?;
                let page = self.page(*id)?;
                page.delivered += u32::from(!open.manual);
                let max = page.spec.max_repetitions.map_or(u32::MAX, std::num::NonZeroU32::get);
                ensure(page.delivered <= max || page.limits_changed, || {
                    format!("{id} is delivered at most {max} times")
                })
            }
            Event::Failed { id, due, at: _, error: _, retry } => {
                self.unrecorded.remove(&OccurrenceId { due_ms: *due, schedule: *id });
                let Some(retry) = retry else { return self.close(at, *id, *due, Closed::Dead).map(drop) };
                let open = self.open(*id, *due)?;
                ensure(open.claimed_by.take().is_some(), || format!("who fails had claimed {due} of {id}"))?;
                (open.ready, open.released) = (*retry, false);
                Ok(())
            }
            Event::Leased { .. } => Ok(()),
            Event::Lapsed { node, at: _ } => {
                round.lapsed = true;
                for page in self.pages.values_mut().filter(|page| page.stream == *stream) {
                    for open in page.open.values_mut().filter(|open| open.claimed_by.as_ref() == Some(node)) {
                        open.claimed_by = None;
                    }
                }
                Ok(())
            }
        }
    }

    fn ended(&mut self, id: ScheduleId, end: End) -> Check {
        let page = self.page(id)?;
        ensure(page.status.is_live(), || format!("{id} ends once"))?;
        let max = page.spec.max_repetitions.map_or(u32::MAX, std::num::NonZeroU32::get);
        let nothing_left = page.next.is_none() && page.scheduled() == 0;
        page.status = match end {
            End::Cancelled => {
                let waits = page.open.iter().find(|(_, open)| open.claimed_by.is_none());
                ensure(waits.is_none(), || format!("nothing of {id} waits once it is cancelled: {waits:?}"))?;
                Status::Cancelled
            }
            End::Completed => {
                ensure(nothing_left || page.delivered >= max, || format!("{id} has nothing left to do"))?;
                Status::Completed
            }
            End::Failed => {
                ensure(nothing_left && page.delivered == 0, || format!("{id} could not be delivered"))?;
                Status::Failed
            }
        };
        Ok(())
    }

    fn opened(
        &mut self,
        at: i64,
        id: ScheduleId,
        (due, ready): (i64, i64),
        next: Option<i64>,
        released: bool,
        round: &mut Round,
    ) -> Check {
        let (lookahead, grace) = (i64::from(self.settings.lookahead_ms), i64::from(self.settings.grace_ms));
        let kind = self.page(id)?.spec.address.kind.clone();
        let by_pass = self.is_by_pass(&kind);
        let page = self.page(id)?;
        ensure(page.status == Status::Active, || format!("{id} is active"))?;
        let expected = page.next;
        ensure(expected == Some(due), || format!("every due time comes in its turn: {expected:?} of {id}"))?;
        ensure(!page.is_decided(due), || format!("due time {due} of {id} is opened once"))?;
        let following = page.spec.next_after(due);
        ensure(next == following, || format!("no due time of {id} is lost: {following:?} is next"))?;
        ensure(due <= at + lookahead, || format!("{due} of {id} is opened in time"))?;
        let latest = due + i64::from(page.spec.jitter_ms());
        ensure((due..=latest).contains(&ready), || format!("{due} of {id} is ready within its jitter"))?;
        ensure(released == by_pass, || format!("{due} of {id} is opened by a pass, if its kind wants one"))?;
        let overlaps = page.spec.overlap == Overlap::Skip && page.scheduled() > 0;
        ensure(!overlaps, || format!("no two occurrences of {id} are open"))?;
        ensure(page.scheduled() < Timetable::MAX_OPEN, || format!("{id} has room"))?;
        let max = page.spec.max_repetitions.map_or(usize::MAX, |max| max.get() as usize);
        ensure(page.delivered as usize + page.scheduled() < max, || format!("{id} is due once more"))?;
        if due < at - grace {
            let late = round.late.entry(id).or_default();
            *late += 1;
            let made_up = match page.spec.missed {
                Missed::Skip => false,
                Missed::Once => *late == 1 && !round.missed.contains(&id),
                Missed::All { max, window_ms } => *late <= max && due >= at - window_ms.cast_signed(),
            };
            ensure(made_up, || format!("missed due times of {id} are made up for as it says"))?;
        }
        let open = Open { ready, claimed_by: None, attempts: 0, manual: false, released };
        page.open.insert(due, open);
        page.next = next;
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of one event")]
    fn skipped(
        &mut self,
        at: i64,
        id: ScheduleId,
        (due, last): (i64, i64),
        (count, or_more): (u64, bool),
        why: SkipReason,
        next: Option<i64>,
        round: &mut Round,
    ) -> Check {
        let (exclusive, grace) = (self.exclusive, i64::from(self.settings.grace_ms));
        let page = self.page(id)?;
        let expected = page.next;
        ensure(expected == Some(due), || format!("every due time comes in its turn: {expected:?} of {id}"))?;
        let decided = page.open.range(due..=last).next().is_some_and(|(_, open)| !open.manual)
            || page.closed.range(due..=last).any(|(_, (_, manual))| !manual)
            || page.skipped.range(due..=last).next().is_some();
        ensure(!decided, || format!("no due time of {id} is decided twice"))?;
        let steps = std::iter::successors(Some(due), |due| page.spec.next_after(*due));
        let counted = steps.take(STEPS).take_while(|due| *due <= last).count();
        ensure(counted == STEPS || or_more || counted as u64 == count, || {
            format!("all that is skipped of {id} is counted: {counted}")
        })?;
        let following = page.spec.next_after(last);
        ensure(next == following, || format!("no due time of {id} is lost: {following:?} is next"))?;
        ensure(last <= at, || format!("nothing of {id} is skipped before it is due"))?;
        let max = page.spec.max_repetitions.map_or(usize::MAX, |max| max.get() as usize);
        let enough = page.delivered as usize + page.scheduled() >= max;
        let holds = match why {
            SkipReason::Missed => {
                round.missed.insert(id);
                page.status == Status::Active && (exclusive || last < at - grace)
            }
            SkipReason::Overlap => {
                page.status == Status::Active
                    && page.spec.overlap == Overlap::Skip
                    && (page.scheduled() > 0 || enough)
            }
            SkipReason::TooManyOpen => {
                page.status == Status::Active && (page.scheduled() >= Timetable::MAX_OPEN || enough)
            }
            SkipReason::Paused => page.status == Status::Paused,
            SkipReason::Cancelled => false,
        };
        ensure(holds, || format!("due times of {id} are skipped for the reason that is said"))?;
        page.skipped.insert(due, last);
        page.next = next;
        Ok(())
    }

    fn claimed(
        &mut self,
        (at, ready_by): (i64, i64),
        id: ScheduleId,
        due: i64,
        node: &NodeId,
        round: &Round,
    ) -> Check {
        let page = self.page(id)?;
        let (spec, status) = (page.spec.clone(), page.status);
        ensure(status != Status::Cancelled, || format!("nothing of {id} is claimed once it is cancelled"))?;
        let seen = self.clocks.get(node).map_or(at, |clock| clock.latest_ms()).max(ready_by);
        let by_pass = self.is_by_pass(&spec.address.kind);
        let ordered = self.is_ordered(&spec.address.kind);
        let most = self.attempts(&spec);
        let occurrence = OccurrenceId { due_ms: due, schedule: id };
        let open = self.open(id, due)?;
        let (released, manual) = (open.released, open.manual);
        ensure(open.claimed_by.is_none(), || format!("{due} of {id} is claimed by one node"))?;
        ensure(open.ready <= seen, || format!("{due} of {id} is claimed when it is ready"))?;
        ensure(!by_pass || released || manual, || format!("{due} of {id} is claimed after a pass"))?;
        open.attempts += 1;
        open.claimed_by = Some(node.clone());
        let attempt = open.attempts;
        ensure(most.is_none_or(|most| attempt <= most), || format!("{due} of {id} has attempts left"))?;
        self.claims.insert((occurrence, attempt, node.clone()));
        if ordered {
            self.has_its_turn(occurrence, at, |page| page.spec.address == spec.address, round)
        } else if spec.overlap == Overlap::Queue {
            let only = |id: ScheduleId| move |of: ScheduleId| of == id;
            let same = only(id);
            self.has_its_turn_among(occurrence, at, |of, _| same(of), round)
        } else {
            Ok(())
        }
    }

    fn has_its_turn(
        &self,
        occurrence: OccurrenceId,
        at: i64,
        lane: impl Fn(&Page) -> bool,
        round: &Round,
    ) -> Check {
        self.has_its_turn_among(occurrence, at, |_, page| lane(page), round)
    }

    /// Nobody else in the lane is being served, and nobody who is ready was due before.
    fn has_its_turn_among(
        &self,
        occurrence: OccurrenceId,
        at: i64,
        lane: impl Fn(ScheduleId, &Page) -> bool,
        round: &Round,
    ) -> Check {
        let pages = self.pages.iter().filter(|(id, page)| !page.deleted && lane(**id, page));
        for (id, page) in pages {
            for (due, open) in &page.open {
                let other = OccurrenceId { due_ms: *due, schedule: *id };
                if other == occurrence {
                    continue;
                }
                ensure(open.claimed_by.is_none(), || {
                    format!("one at a time is claimed: {other:?} and {occurrence:?}")
                })?;
                // What lapses is known to the next tick only.
                let waits = open.ready <= at && !round.lapsed;
                let waits = waits && (open.released || !self.is_by_pass(&page.spec.address.kind));
                ensure(!waits || other > occurrence, || {
                    format!("what is ready is claimed in order: {other:?} before {occurrence:?}")
                })?;
            }
        }
        Ok(())
    }

    // ---- deliveries ----------------------------------------------------------------------------------------------

    /// A target is asked to deliver. Gives a number for the call.
    pub fn begin(
        &mut self,
        node: &NodeId,
        key_given: &str,
        occurrence: OccurrenceId,
        attempt: u32,
        address: &Address,
    ) -> (u64, Vec<Broken>) {
        self.deliveries += 1;
        let mut broken = Vec::new();
        let OccurrenceId { due_ms: due, schedule: id } = occurrence;
        let mut check = |holds: bool, rule: &str| {
            if !holds {
                broken.push(format!("{rule} ({key_given}, attempt {attempt}, by {node:?})"));
            }
        };
        check(*key(occurrence) == *key_given, "the key is that of the occurrence");
        let claim = (occurrence, attempt, node.clone());
        check(self.claims.contains(&claim), "nothing is delivered without a claim of the node that delivers");
        check(self.begun.insert(claim), "an attempt is begun once");
        let clock = self.clocks.get(node);
        let page = self.pages.get(&id);
        let open = page.and_then(|page| page.open.get(&due));
        if let (Some(open), Some(clock)) = (open, clock) {
            let mine = open.claimed_by.as_ref() == Some(node) && open.attempts == attempt;
            check(!mine || open.ready <= clock.latest_ms(), "nothing is delivered before it is ready");
            if let Some(most) = self.punctual.filter(|_| mine && attempt == 1) {
                let from = page.map_or(open.ready, |page| page.freed.max(open.ready));
                let late = clock.now().as_millisecond() - from;
                let waits = page.is_some_and(|page| page.open.len() > 1) || self.is_ordered(&address.kind);
                check(late <= most || waits, "what is due is delivered in time");
            }
            check(mine || !(self.calm && self.exclusive), "what is delivered is claimed");
        } else {
            check(!(self.calm && self.exclusive), "what is delivered is open");
        }
        if self.exclusive {
            check(!self.over.contains(&id), "nothing is begun once its schedule was cancelled");
            let other = self.under_way.values().any(|call| call.address == *address && call.node == *node);
            check(!other || !self.is_ordered(&address.kind), "an ordered destination gets one at a time");
        }
        let number = self.deliveries;
        self.under_way.insert(number, UnderWay { address: address.clone(), node: node.clone() });
        (number, broken)
    }

    /// The target took it, perhaps not for the first time.
    pub fn accept(&mut self, key: &Arc<str>) {
        *self.accepted.entry(key.clone()).or_default() += 1;
    }

    /// A call is over, or given up. If its node was told that the delivery was made, it has to be recorded.
    pub fn end(&mut self, number: u64, told: Option<OccurrenceId>) {
        if let (Some(call), Some(occurrence)) = (self.under_way.remove(&number), told) {
            let open = self
                .pages
                .get(&occurrence.schedule)
                .is_some_and(|page| !page.deleted && page.open.contains_key(&occurrence.due_ms));
            if open {
                self.unrecorded.insert(occurrence, call.node);
            }
        }
    }

    /// A node crashed: what it was told is lost.
    pub fn crashed(&mut self, node: &NodeId) {
        self.unrecorded.retain(|_, told| told != node);
    }

    /// A node was stopped in good order, with time enough: what it was told is recorded.
    pub fn stopped(&self, node: &NodeId) -> Check {
        let lost = self.unrecorded.iter().find(|(occurrence, told)| {
            let page = self.pages.get(&occurrence.schedule);
            *told == node
                && page.is_some_and(|page| !page.deleted && page.open.contains_key(&occurrence.due_ms))
        });
        ensure(lost.is_none(), || format!("who stops in good order records what was delivered: {lost:?}"))
    }

    // ---- answers -------------------------------------------------------------------------------------------------

    /// A creation was acknowledged.
    pub fn acknowledged(&self, id: ScheduleId, name: &str, next_ms: i64) -> Check {
        let page = self.pages.get(&id).ok_or_else(|| format!("an acknowledged schedule is there: {id}"))?;
        ensure(page.deleted || self.names.get(name) == Some(&id), || {
            format!("the number that is answered is that of the schedule: {id} of '{name}'")
        })?;
        ensure(page.spec.next_after(next_ms - 1) == Some(next_ms) || page.changes > 0, || {
            format!("{next_ms} is the first due time of {id}")
        })
    }

    /// A cancellation, or a deletion, was acknowledged.
    pub fn acknowledged_end(&mut self, id: ScheduleId, deleted: bool) -> Check {
        self.over.insert(id);
        let page = self.pages.get(&id).ok_or_else(|| format!("there is a schedule {id}"))?;
        ensure(page.status == Status::Cancelled || deleted, || {
            format!("what was cancelled stays so: {id} is {}", page.status)
        })?;
        ensure(page.deleted || !deleted, || format!("what was deleted stays so: {id}"))
    }

    /// Schedules that are there.
    pub fn present(&self) -> BTreeSet<ScheduleId> {
        self.pages.iter().filter(|(_, page)| !page.deleted).map(|(id, _)| *id).collect()
    }

    /// How `occurrence` stands.
    pub fn is_closed(&self, occurrence: OccurrenceId) -> bool {
        self.pages
            .get(&occurrence.schedule)
            .is_some_and(|page| page.deleted || page.closed.contains_key(&occurrence.due_ms))
    }

    // ---- once the faults have stopped ------------------------------------------------------------------------------

    /// All that is due at `now_ms` is over, save what is younger than `young_ms`, and what waits for a pass.
    pub fn nothing_is_left(&self, now_ms: i64, young_ms: i64) -> Vec<Broken> {
        let mut broken = Vec::new();
        let old = now_ms - young_ms;
        for (id, page) in self.pages.iter().filter(|(_, page)| !page.deleted) {
            let by_pass = self.is_by_pass(&page.spec.address.kind);
            for (due, open) in &page.open {
                // What a target asked to be tried later is not late yet.
                if open.ready < old && (!by_pass || open.released) {
                    broken.push(format!("no occurrence stays open: {due} of {id}, {open:?}"));
                }
            }
            if page.status == Status::Active && !by_pass && page.next.is_some_and(|next| next < old) {
                broken.push(format!("every due time is decided: {:?} of {id} is not", page.next));
            }
            if page.status == Status::Active && page.next.is_none() && page.open.is_empty() && !by_pass {
                broken.push(format!("a schedule with nothing left to do is over: {id}"));
            }
        }
        broken
    }

    /// Each of `records`, which a node keeps of `id`, is about something else, and as the journal has it.
    pub fn history_is_right(&self, id: ScheduleId, records: &[switchboard_schedule::Record]) -> Vec<Broken> {
        let Some(page) = self.pages.get(&id) else { return vec![format!("there is a schedule {id}")] };
        let mut seen = BTreeSet::new();
        let mut broken = Vec::new();
        for record in records {
            let due = record.due_ms;
            let closed = page.closed.get(&due).map(|(closed, _)| *closed);
            let same = match &record.fate {
                Fate::Delivered { .. } => closed == Some(Closed::Delivered),
                Fate::Dead { .. } => closed == Some(Closed::Dead),
                Fate::Skipped { why: SkipReason::Cancelled, .. } => closed == Some(Closed::Withdrawn),
                Fate::Skipped { last_ms, .. } => {
                    page.skipped.contains_key(&due) && page.skipped.values().any(|last| last == last_ms)
                }
            };
            if !same {
                broken.push(format!("a record says what the journal says: {record:?} of {id}, {closed:?}"));
            }
            if !seen.insert(due) {
                broken.push(format!("a due time has one record: {due} of {id}"));
            }
        }
        broken
    }

    /// All that waits for a pass at `now_ms`.
    pub fn waits_for_a_pass(&self, now_ms: i64) -> Vec<Broken> {
        let by_pass =
            self.pages.iter().filter(|(_, page)| !page.deleted && self.is_by_pass(&page.spec.address.kind));
        by_pass
            .filter(|(_, page)| {
                page.status == Status::Active
                    && (page.next.is_some_and(|next| next < now_ms)
                        || page.open.values().any(|open| open.ready < now_ms))
            })
            .map(|(id, page)| format!("a pass leaves nothing that is due: {id}, {page:?}"))
            .collect()
    }
}
