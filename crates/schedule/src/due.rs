//! What the passing of time means: due times come, claims are made, leases end.
//!
//! **Ahead of time.** Where a node of this process attends, an occurrence is opened and claimed
//! [`Settings::lookahead_ms`] before it is due, so that its delivery waits for no disk. What was opened ahead and is not
//! due yet can be taken back without a trace ([`Event::Unopened`]).
//!
//! **Missed.** A due time was missed if nobody acted on it for longer than [`Settings::grace_ms`], or if it passed while
//! the only process that could have acted did not run. [`Missed`] says what becomes of it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::event::{End, Event};
use crate::id::scatter;
use crate::index::Lane;
use crate::timetable::Schedule;
use crate::{
    Fate, Missed, NodeId, Occurrence, OccurrenceId, Overlap, Retry, ScheduleId, Settings, SkipReason,
    Timetable,
};

/// How many events one tick decides at most, about; the rest waits for the next, which follows at once.
const TICK_EVENTS: usize = 2_000;

/// How many due times are looked at one by one to find those that are made up for.
const MADE_UP_STEPS: usize = 10_000;

/// When `schedule` wants to be looked at.
pub(crate) fn wake_ms(settings: &Settings, attended: bool, schedule: &Schedule, lane: Option<Lane>) -> i64 {
    let Some(next_ms) = schedule.next_ms else {
        // With nothing left to do it is over at once.
        return if schedule.open.is_empty() { i64::MIN } else { i64::MAX };
    };
    let ahead = attended && may_open_ahead(schedule, lane);
    next_ms.saturating_sub(if ahead { i64::from(settings.lookahead_ms) } else { 0 })
}

/// Whether what becomes of the next due time can be said before it comes.
fn may_open_ahead(schedule: &Schedule, lane: Option<Lane>) -> bool {
    // What is opened ahead takes its lane, and must not keep others waiting in it.
    let in_nobodys_way = !matches!(lane, Some(Lane::Destination(_)));
    let has_room = schedule.scheduled().count() < limit(schedule) && schedule.repetitions_left() > 0;
    in_nobodys_way && has_room && (schedule.open.is_empty() || schedule.spec.overlap == Overlap::Allow)
}

/// When the next tick is due.
pub(crate) fn deadline_ms(timetable: &Timetable) -> Option<i64> {
    let index = &timetable.index;
    let due = index.due.first().map(|(wake_ms, _)| *wake_ms);
    let Some(claimer) = &index.claimer else {
        let lapses = timetable.leases.values().copied().min();
        return due.into_iter().chain(lapses).min();
    };
    if !index.free.is_empty() {
        return Some(i64::MIN);
    }
    let waiting = index.waiting.first().map(|(ready_ms, _)| *ready_ms);
    let leases = timetable.leases.iter().filter_map(|(node, until_ms)| {
        if *node == claimer.node {
            index.has_claims(node).then(|| renew_ms(&timetable.settings, *until_ms))
        } else {
            Some(*until_ms)
        }
    });
    due.into_iter().chain(waiting).chain(leases).min()
}

/// When a lease that ends at `until_ms` is renewed: when a third of it is over.
fn renew_ms(settings: &Settings, until_ms: i64) -> i64 {
    until_ms.saturating_sub(i64::from(settings.lease_ms) / 3 * 2)
}

/// What happens at `now_ms`.
pub(crate) fn tick(timetable: &Timetable, now_ms: i64) -> Vec<Event> {
    let mut draft = Draft::new(timetable, now_ms);
    draft.lapse();
    for (_, id) in timetable.index.due.range(..=(now_ms, ScheduleId::new(u64::MAX))) {
        if draft.events.len() >= TICK_EVENTS {
            break;
        }
        if let Some(schedule) = timetable.get(*id) {
            draft.open(*id, schedule);
        }
    }
    draft.claim();
    draft.renew();
    draft.events
}

/// What a pass opens at `now_ms` of `schedule`, which is of a kind that is delivered by passes only.
pub(crate) fn open_for_pass(
    timetable: &Timetable,
    id: ScheduleId,
    schedule: &Schedule,
    now_ms: i64,
) -> Vec<Event> {
    let mut draft = Draft::new(timetable, now_ms);
    draft.releases = true;
    draft.open(id, schedule);
    draft.events
}

/// The events of one tick, and what they mean for the claims that the same tick may still make.
struct Draft<'a> {
    timetable: &'a Timetable,
    now_ms: i64,
    /// Who claims; nobody where no node of this process attends.
    node: Option<&'a NodeId>,
    events: Vec<Event>,
    /// Lanes in which this tick made a claim.
    taken: HashSet<Lane>,
    claimed: bool,
    /// Whether what is opened may be delivered although its kind is delivered by passes only.
    releases: bool,
}

impl<'a> Draft<'a> {
    fn new(timetable: &'a Timetable, now_ms: i64) -> Self {
        Self {
            timetable,
            now_ms,
            node: timetable.index.claimer.as_ref().map(|claimer| &claimer.node),
            events: Vec::new(),
            taken: HashSet::new(),
            claimed: false,
            releases: false,
        }
    }

    /// Nodes whose leases are over lose their claims.
    fn lapse(&mut self) {
        for (node, until_ms) in &self.timetable.leases {
            if *until_ms <= self.now_ms && Some(node) != self.node {
                self.events.push(Event::Lapsed { node: node.clone(), at: self.now_ms });
            }
        }
    }

    /// The claims of this node hold on, if it has any.
    fn renew(&mut self) {
        let Some(node) = self.node else { return };
        if !self.claimed && !self.timetable.index.has_claims(node) {
            return;
        }
        let lease = self.timetable.leases.get(node);
        let settings = &self.timetable.settings;
        if lease.is_none_or(|until_ms| renew_ms(settings, *until_ms) <= self.now_ms) {
            let until = self.now_ms.saturating_add(i64::from(settings.lease_ms));
            self.events.push(Event::Leased { node: node.clone(), until });
        }
    }

    // ---- opening -----------------------------------------------------------------------------------------------

    /// Says of every due time of `schedule` that has come what becomes of it.
    fn open(&mut self, id: ScheduleId, schedule: &Schedule) {
        let Some(mut next) = schedule.next_ms else {
            if schedule.open.is_empty() {
                self.events.push(self.nothing_left(id, schedule));
            }
            return;
        };
        let mut opening = Opening {
            id,
            schedule,
            lane: self.timetable.lane(id, schedule),
            open: schedule.scheduled().count(),
            left: schedule.repetitions_left(),
        };
        let missed_before = self.timetable.missed_before_ms(self.now_ms);
        let mut following = Some(next);
        if next < missed_before {
            following = self.make_up(&mut opening, next, missed_before);
        }
        let ahead = i64::from(self.timetable.settings.lookahead_ms);
        while let Some(due) = following {
            next = due;
            let may_be_ahead = self.node.is_some()
                && !self.releases
                && may_open_ahead(schedule, opening.lane)
                && opening.has_room()
                && (opening.open == 0 || schedule.spec.overlap == Overlap::Allow);
            let horizon = self.now_ms.saturating_add(if may_be_ahead { ahead } else { 0 });
            if next > horizon || self.events.len() >= TICK_EVENTS {
                break;
            }
            following = if opening.has_room() {
                let after = schedule.spec.next_after(next);
                self.open_one(&mut opening, next, after);
                after
            } else {
                let why = Timetable::full_reason(opening.limit());
                self.skip(&opening, next, self.now_ms.saturating_add(1), why)
            };
        }
        if following.is_none() && opening.open == 0 && schedule.open.is_empty() {
            self.events.push(Event::Ended { id, end: End::Completed, at: self.now_ms, last: None });
        }
    }

    /// The end of a schedule of which the last occurrence was closed without regard for what else was open.
    fn nothing_left(&self, id: ScheduleId, schedule: &Schedule) -> Event {
        let last = self.timetable.history(id).next_back().map(|record| &record.fate);
        let failed = schedule.delivered == 0 && matches!(last, Some(Fate::Dead { .. }));
        let end = if failed { End::Failed } else { End::Completed };
        Event::Ended { id, end, at: self.now_ms, last: None }
    }

    /// Decides about the due times from `first` on that were missed, and gives the first that was not.
    fn make_up(&mut self, opening: &mut Opening<'_>, first: i64, before: i64) -> Option<i64> {
        let spec = &opening.schedule.spec;
        match spec.missed {
            Missed::Skip => self.skip(opening, first, before, SkipReason::Missed),
            Missed::Once => {
                if !opening.has_room() {
                    return self.skip(opening, first, before, Timetable::full_reason(opening.limit()));
                }
                let after = spec.next_after(first);
                self.open_one(opening, first, after);
                match after {
                    Some(after) if after < before => self.skip(opening, after, before, SkipReason::Missed),
                    after => after,
                }
            }
            Missed::All { max, window_ms } => {
                let window = self.now_ms.saturating_sub_unsigned(window_ms).max(first);
                let newest = newest(opening.schedule, window, before, max as usize);
                let Some(kept) = newest.front().copied() else {
                    return self.skip(opening, first, before, SkipReason::Missed);
                };
                let mut following = Some(first);
                if first < kept {
                    following = self.skip(opening, first, kept, SkipReason::Missed);
                }
                for due in newest {
                    following = if opening.has_room() {
                        let after = spec.next_after(due);
                        self.open_one(opening, due, after);
                        after
                    } else {
                        self.skip(opening, due, before, Timetable::full_reason(opening.limit()))
                    };
                    if following.is_none_or(|following| following >= before) {
                        break;
                    }
                }
                match following {
                    // There were more than were looked at.
                    Some(after) if after < before => self.skip(opening, after, before, SkipReason::Missed),
                    following => following,
                }
            }
        }
    }

    /// The due times from `first` to before `before` are skipped. Gives the one that follows.
    fn skip(&mut self, opening: &Opening<'_>, first: i64, before: i64, why: SkipReason) -> Option<i64> {
        let event = skipped(opening.id, opening.schedule, first, before, why, self.now_ms);
        let Event::Skipped { next, .. } = event else { return None };
        self.events.push(event);
        next
    }

    fn open_one(&mut self, opening: &mut Opening<'_>, due: i64, next: Option<i64>) {
        let id = opening.id;
        let ready = due.saturating_add(jitter_ms(opening.schedule, id, due));
        let by_pass = self.timetable.is_by_pass(opening.schedule);
        // What a pass opens is claimed by the tick that follows, in its turn.
        let node =
            if by_pass || !self.may_claim_at_opening(opening, ready) { None } else { self.node.cloned() };
        if node.is_some() {
            self.claimed = true;
            self.taken.extend(opening.lane);
        }
        opening.open += 1;
        opening.left = opening.left.saturating_sub(1);
        let released = self.releases && by_pass;
        self.events.push(Event::Opened { id, due, ready, node, next, manual: false, released });
    }

    fn may_claim_at_opening(&self, opening: &Opening<'_>, ready: i64) -> bool {
        let soon = self.now_ms.saturating_add(i64::from(self.timetable.settings.lookahead_ms));
        match opening.lane {
            _ if ready > soon => false,
            // Somebody else may be first in line: the claims of this tick are made after all is opened.
            Some(Lane::Destination(_)) => false,
            Some(lane) => {
                let waits = |open: &Occurrence| open.ready_ms <= self.now_ms;
                !self.taken.contains(&lane)
                    && !self.timetable.index.lanes.contains_key(&lane)
                    && !opening.schedule.open.iter().any(waits)
            }
            None => true,
        }
    }

    // ---- claiming ----------------------------------------------------------------------------------------------

    /// Claims what is ready and whose turn it is.
    fn claim(&mut self) {
        if self.node.is_none() {
            return;
        }
        let index = &self.timetable.index;
        // Who is first in each lane that is free.
        let mut first: BTreeMap<Lane, OccurrenceId> = BTreeMap::new();
        let mut offer = |lane: Lane, occurrence: OccurrenceId| {
            let place = first.entry(lane).or_insert(occurrence);
            *place = occurrence.min(*place);
        };
        for lane in &index.free {
            if let Some(occurrence) = index.lanes.get(lane).and_then(|turn| turn.ready.first()) {
                offer(*lane, *occurrence);
            }
        }
        let mut at_once = Vec::new();
        for (_, occurrence) in index.waiting.iter().take_while(|(ready_ms, _)| *ready_ms <= self.now_ms) {
            if self.events.len() + at_once.len() >= TICK_EVENTS {
                break;
            }
            let Some(schedule) = self.timetable.get(occurrence.schedule) else { continue };
            match self.timetable.lane(occurrence.schedule, schedule) {
                None => at_once.push(*occurrence),
                Some(lane) => offer(lane, *occurrence),
            }
        }
        let opened: Vec<_> = self.events.iter().filter_map(opened_and_ready(self.now_ms)).collect();
        for occurrence in opened {
            if let Some(schedule) = self.timetable.get(occurrence.schedule)
                && let Some(lane) = self.timetable.lane(occurrence.schedule, schedule)
                && (!self.timetable.is_by_pass(schedule))
            {
                offer(lane, occurrence);
            }
        }
        for occurrence in at_once {
            self.claim_one(occurrence);
        }
        for (lane, occurrence) in first {
            let served = index.lanes.get(&lane).is_some_and(|turn| !turn.served.is_empty());
            if !served && !self.taken.contains(&lane) {
                self.claim_one(occurrence);
            }
        }
    }

    fn claim_one(&mut self, occurrence: OccurrenceId) {
        let (Some(node), OccurrenceId { due_ms: due, schedule: id }) = (self.node, occurrence) else {
            return;
        };
        if let Some(schedule) = self.timetable.get(id)
            && let Some(open) = schedule.occurrence(due)
        {
            if schedule.is_called_off(open) {
                let why = SkipReason::Cancelled;
                self.events.push(Event::Withdrawn { id, due, why, at: self.now_ms });
                return;
            }
            if let Some(events) = given_up(self.timetable, id, schedule, open, self.now_ms) {
                self.events.extend(events);
                return;
            }
        }
        self.claimed = true;
        self.events.push(Event::Claimed { id, due, node: node.clone() });
    }
}

/// The occurrences among the events of this tick that wait for their turn and are ready.
fn opened_and_ready(now_ms: i64) -> impl Fn(&Event) -> Option<OccurrenceId> {
    move |event| match event {
        Event::Opened { id, due, ready, node: None, .. } if *ready <= now_ms => {
            Some(OccurrenceId { due_ms: *due, schedule: *id })
        }
        _ => None,
    }
}

/// The end of an occurrence whose node was gone at the last attempt it had.
fn given_up(
    timetable: &Timetable,
    id: ScheduleId,
    schedule: &Schedule,
    open: &Occurrence,
    now_ms: i64,
) -> Option<Vec<Event>> {
    let last = retry_of(timetable, schedule).attempts.filter(|attempts| open.attempts >= *attempts)?;
    let error = open
        .error
        .clone()
        .unwrap_or_else(|| Arc::from(format!("the server was gone during the last of {last} attempts")));
    let mut events = vec![Event::Failed { id, due: open.due_ms, at: now_ms, error, retry: None }];
    events.extend(end_after(schedule, id, open, false, now_ms));
    Some(events)
}

pub(crate) fn retry_of(timetable: &Timetable, schedule: &Schedule) -> Retry {
    schedule.spec.retry().unwrap_or_else(|| timetable.settings.retry(&schedule.spec.address.kind))
}

/// Whether `schedule` is over once `closed` is.
pub(crate) fn end_after(
    schedule: &Schedule,
    id: ScheduleId,
    closed: &Occurrence,
    delivered: bool,
    at: i64,
) -> Option<Event> {
    if !schedule.status.is_live() || closed.manual {
        return None;
    }
    let counts = u32::from(delivered);
    let often_enough = schedule
        .spec
        .max_repetitions
        .is_some_and(|max| schedule.delivered.saturating_add(counts) >= max.get());
    let nothing_left = schedule.next_ms.is_none() && schedule.open.len() == 1;
    let end = match (often_enough, nothing_left) {
        (true, _) => End::Completed,
        (false, true) if delivered || schedule.delivered > 0 => End::Completed,
        (false, true) => End::Failed,
        (false, false) => return None,
    };
    // A next due time that will never come is not what it keeps.
    Some(Event::Ended { id, end, at, last: Some(closed.due_ms) })
}

/// One schedule, while its due times are decided.
struct Opening<'a> {
    id: ScheduleId,
    schedule: &'a Schedule,
    lane: Option<Lane>,
    open: usize,
    left: u64,
}

/// How many occurrences of `schedule` may be open.
const fn limit(schedule: &Schedule) -> usize {
    match schedule.spec.overlap {
        Overlap::Skip => 1,
        Overlap::Queue | Overlap::Allow => Timetable::MAX_OPEN,
    }
}

impl Opening<'_> {
    const fn limit(&self) -> usize {
        limit(self.schedule)
    }

    const fn has_room(&self) -> bool {
        self.open < self.limit() && self.left > 0
    }
}

/// The newest `max` due times from `from` to before `before`, oldest first.
fn newest(schedule: &Schedule, from: i64, before: i64, max: usize) -> VecDeque<i64> {
    let mut newest = VecDeque::with_capacity(max);
    let mut due = schedule.spec.next_after(from.saturating_sub(1));
    for _ in 0..MADE_UP_STEPS {
        let Some(this) = due.filter(|due| *due < before) else { break };
        if newest.len() == max {
            newest.pop_front();
        }
        newest.push_back(this);
        due = schedule.spec.next_after(this);
    }
    newest
}

/// The due times of `schedule` from `first` to before `before` are skipped; `first` is one of them.
pub(crate) fn skipped(
    id: ScheduleId,
    schedule: &Schedule,
    first: i64,
    before: i64,
    why: SkipReason,
    at: i64,
) -> Event {
    let spec = &schedule.spec;
    let before =
        spec.end_ms().map_or(before, |end| before.min(end.saturating_add(1))).max(first.saturating_add(1));
    let counted = spec.timing.skip_count(first, before);
    let next = spec.next_after(counted.last_ms.max(before.saturating_sub(1)));
    Event::Skipped {
        id,
        due: first,
        last: counted.last_ms,
        count: counted.count,
        or_more: counted.or_more,
        why,
        at,
        next,
    }
}

/// How much later than due an occurrence is delivered: by a rule, so that every node says the same.
fn jitter_ms(schedule: &Schedule, id: ScheduleId, due: i64) -> i64 {
    match schedule.spec.jitter_ms() {
        0 => 0,
        // Less than a day.
        bound => (scatter([id.get(), due.cast_unsigned(), 0]) % (u64::from(bound) + 1)).cast_signed(),
    }
}
