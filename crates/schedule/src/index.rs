//! What follows from the schedules of a stream: who is next, whose turn it is, and who delivers what. Soft state.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::id::stable_hash;
use crate::timetable::{Schedule, Status};
use crate::{Address, NodeId, OccurrenceId, ScheduleId, Spec};

/// Occurrences of one lane are delivered one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    /// All that goes to one destination. Two that share a hash wait for each other without need.
    Destination(u64),
    /// All of one schedule.
    Schedule(ScheduleId),
}

impl Lane {
    pub(crate) fn destination(address: &Address) -> Self {
        Self::Destination(
            stable_hash(address.kind.as_bytes()) ^ stable_hash(address.to.as_bytes()).rotate_left(1),
        )
    }
}

/// News for a node that delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It is to deliver this.
    Claimed(OccurrenceId),
    /// It is not to deliver this, if it has not begun.
    Withdrawn(OccurrenceId),
}

/// The node of this process that delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimer {
    pub(crate) node: NodeId,
}

/// How many notices are kept for a node that has not looked yet.
const NOTICES: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Index {
    /// Schedules by when they want to be looked at.
    pub(crate) due: BTreeSet<(i64, ScheduleId)>,
    /// Schedules by next due time, of kinds that are delivered by passes only.
    pub(crate) by_pass: BTreeSet<(i64, ScheduleId)>,
    /// Occurrences that wait, by when they are ready.
    pub(crate) waiting: BTreeSet<(i64, OccurrenceId)>,
    /// Occurrences of kinds that are delivered by passes only, that no pass asked for yet.
    pub(crate) held: BTreeSet<OccurrenceId>,
    pub(crate) lanes: HashMap<Lane, Turn>,
    /// Lanes in which somebody waits and nobody is served.
    pub(crate) free: BTreeSet<Lane>,
    claims: BTreeMap<NodeId, BTreeSet<OccurrenceId>>,
    pub(crate) claimer: Option<Claimer>,
    notices: VecDeque<Notice>,
    /// How many notices there were before those that are kept.
    noticed: u64,
    /// Due times before it passed while this process did not run.
    pub(crate) on_time_from_ms: i64,
    /// Texts that many schedules share.
    texts: HashSet<Arc<str>>,
}

/// Who is served in a lane, and who is ready and waits.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) served: BTreeSet<OccurrenceId>,
    pub(crate) ready: BTreeSet<OccurrenceId>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
            by_pass: BTreeSet::new(),
            waiting: BTreeSet::new(),
            held: BTreeSet::new(),
            lanes: HashMap::new(),
            free: BTreeSet::new(),
            claims: BTreeMap::new(),
            claimer: None,
            notices: VecDeque::new(),
            noticed: 0,
            on_time_from_ms: i64::MIN,
            texts: HashSet::new(),
        }
    }
}

impl Index {
    /// Forgets what follows from schedules, and keeps what does not.
    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.by_pass.clear();
        self.waiting.clear();
        self.held.clear();
        self.lanes.clear();
        self.free.clear();
        self.claims.clear();
    }

    pub(crate) fn add(
        &mut self,
        id: ScheduleId,
        schedule: &mut Schedule,
        wake_ms: i64,
        lane: Option<Lane>,
        by_pass: bool,
    ) {
        if schedule.status == Status::Active {
            match schedule.next_ms {
                Some(next_ms) if by_pass => {
                    self.by_pass.insert((next_ms, id));
                }
                None if !schedule.open.is_empty() => {}
                _ => {
                    self.due.insert((wake_ms, id));
                }
            }
        }
        schedule.wake_ms = wake_ms;
        for open in &schedule.open {
            let occurrence = OccurrenceId { due_ms: open.due_ms, schedule: id };
            match &open.claimed_by {
                Some(node) => {
                    self.claims.entry(node.clone()).or_default().insert(occurrence);
                    if let Some(lane) = lane {
                        self.lanes.entry(lane).or_default().served.insert(occurrence);
                        self.free.remove(&lane);
                    }
                }
                None if by_pass && !open.released => {
                    self.held.insert(occurrence);
                }
                None => {
                    self.waiting.insert((open.ready_ms, occurrence));
                }
            }
        }
    }

    /// Takes out what `add` put in, and what `ticked` made of it.
    pub(crate) fn remove(&mut self, id: ScheduleId, schedule: &Schedule, lane: Option<Lane>) {
        if let Some(next_ms) = schedule.next_ms {
            self.by_pass.remove(&(next_ms, id));
        }
        self.due.remove(&(schedule.wake_ms, id));
        for open in &schedule.open {
            let occurrence = OccurrenceId { due_ms: open.due_ms, schedule: id };
            self.waiting.remove(&(open.ready_ms, occurrence));
            self.held.remove(&occurrence);
            if let Some(node) = &open.claimed_by
                && let Some(claims) = self.claims.get_mut(node)
            {
                claims.remove(&occurrence);
                if claims.is_empty() {
                    self.claims.remove(node);
                }
            }
            if let Some(lane) = lane
                && let Some(turn) = self.lanes.get_mut(&lane)
            {
                turn.served.remove(&occurrence);
                turn.ready.remove(&occurrence);
                self.settle_lane(lane);
            }
        }
    }

    fn settle_lane(&mut self, lane: Lane) {
        let Some(turn) = self.lanes.get(&lane) else { return };
        match (turn.served.is_empty(), turn.ready.is_empty()) {
            (true, true) => {
                self.lanes.remove(&lane);
                self.free.remove(&lane);
            }
            (true, false) => {
                self.free.insert(lane);
            }
            (false, _) => {
                self.free.remove(&lane);
            }
        }
    }

    /// Occurrences that are ready at `now_ms` and were not claimed wait for their turn from now on.
    pub(crate) fn ticked(&mut self, now_ms: i64, lane_of: impl Fn(ScheduleId) -> Option<Lane>) {
        if self.claimer.is_none() {
            return;
        }
        let ready: Vec<_> =
            self.waiting.iter().copied().take_while(|(ready_ms, _)| *ready_ms <= now_ms).collect();
        for (ready_ms, occurrence) in ready {
            // What waits for nobody was left over only because an entry was full.
            let Some(lane) = lane_of(occurrence.schedule) else { continue };
            self.waiting.remove(&(ready_ms, occurrence));
            self.lanes.entry(lane).or_default().ready.insert(occurrence);
            self.settle_lane(lane);
        }
    }

    /// What `node` has claimed.
    pub(crate) fn claims_of(&self, node: &NodeId) -> Vec<OccurrenceId> {
        self.claims.get(node).map(|claims| claims.iter().copied().collect()).unwrap_or_default()
    }

    pub(crate) fn has_claims(&self, node: &NodeId) -> bool {
        self.claims.contains_key(node)
    }

    /// Who has claims.
    pub(crate) fn claimers(&self) -> BTreeSet<NodeId> {
        self.claims.keys().cloned().collect()
    }

    /// Keeps news for `node`, if it is the one of this process.
    pub(crate) fn note(&mut self, node: &NodeId, notice: Notice) {
        if self.claimer.as_ref().is_some_and(|claimer| claimer.node == *node) {
            if self.notices.len() == NOTICES {
                self.notices.pop_front();
                self.noticed += 1;
            }
            self.notices.push_back(notice);
        }
    }

    /// The news after the first `seen`, and how many there are by now; none if some of them are kept no longer.
    pub(crate) fn news(&self, seen: u64) -> Option<(impl Iterator<Item = Notice>, u64)> {
        let skip = seen.checked_sub(self.noticed)?;
        let total = self.noticed + self.notices.len() as u64;
        let skip = usize::try_from(skip).ok().filter(|skip| *skip <= self.notices.len())?;
        Some((self.notices.iter().skip(skip).copied(), total))
    }

    /// How many notices there ever were.
    pub(crate) fn noticed(&self) -> u64 {
        self.noticed + self.notices.len() as u64
    }

    /// Goes on from `stale`. What it noted may never have been durable, so whoever follows the news begins anew.
    pub(crate) fn adopt(&mut self, stale: Self) {
        self.claimer = stale.claimer;
        self.noticed = stale.noticed + stale.notices.len() as u64 + 1;
        self.notices.clear();
        self.on_time_from_ms = stale.on_time_from_ms;
        self.texts.extend(stale.texts);
    }

    /// `spec`, with texts that others use too kept once.
    pub(crate) fn shared(&mut self, spec: &Spec) -> Spec {
        let mut spec = spec.clone();
        spec.address.kind = self.text(&spec.address.kind);
        if let crate::Timing::Cron { expression, .. } = &mut spec.timing
            && *expression == spec.value
        {
            *expression = spec.value.clone();
        }
        spec
    }

    fn text(&mut self, text: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        if self.texts.len() < 256 {
            self.texts.insert(text.clone());
        }
        text.clone()
    }
}
