//! Delivers what this node has claimed: each at its time, with regard for the manners of its target.
//!
//! Destinations that share their troubles form a **group** (see [`Target::group`]): a group that does not answer fills its
//! own places only, and gets fewer of them for as long as it is slow.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use switchboard_exchange::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::settle::Attempt;
use crate::timetable::Schedule;
use crate::{Address, Delivery, Manners, Message, OccurrenceId, Outcome, Shard, Target, Targets};

/// How many pieces of news are taken at once.
const NEWS: usize = 4_096;

/// After so many calls in a row that took more than half the time a target has, its group counts as slow.
const SLOW_AFTER: u32 = 3;

/// How many calls a slow group may have under way.
const SLOW_AT_ONCE: usize = 2;

/// What is to be delivered.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) occurrence: OccurrenceId,
    pub(crate) attempt: u32,
    pub(crate) ready_ms: i64,
    pub(crate) name: Arc<str>,
    pub(crate) address: Address,
    pub(crate) message: Message,
}

impl Order {
    /// The order to deliver an occurrence of `schedule`, if it is open and claimed.
    pub(crate) fn of(occurrence: OccurrenceId, schedule: &Schedule) -> Option<Self> {
        let open = schedule.occurrence(occurrence.due_ms).filter(|open| open.claimed_by.is_some())?;
        Some(Self {
            occurrence,
            attempt: open.attempts,
            ready_ms: open.ready_ms,
            name: schedule.spec.name.clone(),
            address: schedule.spec.address.clone(),
            message: schedule.spec.message.clone(),
        })
    }

    fn into_delivery(self) -> Delivery {
        Delivery {
            key: key(self.occurrence),
            schedule: self.occurrence.schedule.get(),
            name: self.name,
            address: self.address,
            message: self.message,
            due_ms: self.occurrence.due_ms,
            attempt: self.attempt,
        }
    }
}

/// The name of an occurrence, the same on every attempt: `schedule-93@2025-01-02T09:00:00Z`.
pub fn key(occurrence: OccurrenceId) -> Arc<str> {
    let due = Timestamp::from_millisecond(occurrence.due_ms).unwrap_or(Timestamp::MIN);
    format!("schedule-{}@{due}", occurrence.schedule).into()
}

/// What the desk is told.
#[derive(Debug)]
pub(crate) enum News {
    /// To deliver this. Told twice, it is done once.
    Orders(Vec<Order>),
    /// Not to deliver this, if it has not begun.
    Withdrawn(OccurrenceId),
    /// A call is over.
    Done { kind: &'static str, group: Arc<str>, deliveries: Vec<(OccurrenceId, u32)>, slow: bool },
}

/// Occurrences that were withdrawn, known before whoever withdrew them has an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withdrawals(Arc<Mutex<HashSet<OccurrenceId>>>);

impl Withdrawals {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<OccurrenceId>> {
        // Nothing can panic while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, occurrence: OccurrenceId) {
        self.lock().insert(occurrence);
    }
}

/// Where reports of attempts go, one way per stream.
pub(crate) type Reports = Arc<dyn Fn(Shard, Vec<Attempt>) + Send + Sync>;

/// Delivers until it is stopped.
pub(crate) struct Desk {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) news: mpsc::UnboundedReceiver<News>,
    pub(crate) tell: mpsc::UnboundedSender<News>,
    pub(crate) withdrawals: Withdrawals,
    pub(crate) reports: Reports,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) abandon: CancellationToken,
    pub(crate) kinds: HashMap<&'static str, KindDesk>,
    /// Orders whose time has not come, or that wait for a place.
    pub(crate) pending: HashMap<OccurrenceId, Order>,
    /// What is being delivered, and in which attempt.
    pub(crate) under_way: HashSet<(OccurrenceId, u32)>,
    pub(crate) timers: BinaryHeap<Reverse<(i64, OccurrenceId)>>,
}

/// What waits and what is under way of one kind of target.
pub(crate) struct KindDesk {
    target: Arc<dyn Target>,
    manners: Manners,
    under_way: usize,
    groups: HashMap<Arc<str>, Group>,
    /// Groups in which something waits, in turn.
    line: VecDeque<Arc<str>>,
}

#[derive(Default)]
struct Group {
    waiting: VecDeque<OccurrenceId>,
    under_way: usize,
    slow_calls: u32,
    in_line: bool,
}

impl Group {
    fn has_place(&self, manners: &Manners) -> bool {
        let at_once = if self.slow_calls >= SLOW_AFTER {
            SLOW_AT_ONCE.min(manners.per_group)
        } else {
            manners.per_group
        };
        self.under_way < at_once.max(1)
    }
}

impl Desk {
    pub(crate) fn kinds(targets: &Targets) -> HashMap<&'static str, KindDesk> {
        let desk = |target: &Arc<dyn Target>| KindDesk {
            target: target.clone(),
            manners: target.manners(),
            under_way: 0,
            groups: HashMap::new(),
            line: VecDeque::new(),
        };
        targets.iter().map(|target| (target.kind(), desk(target))).collect()
    }

    pub(crate) async fn run(mut self) {
        let mut news = Vec::new();
        let mut sleep: Option<(i64, futures::future::BoxFuture<'static, ()>)> = None;
        loop {
            let next = self.timers.peek().map(|Reverse((ready_ms, _))| *ready_ms);
            if sleep.as_ref().map(|(at, _)| *at) != next {
                sleep = next.map(|at| (at, self.clock.sleep_until(timestamp(at))));
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                count = self.news.recv_many(&mut news, NEWS) => {
                    if count == 0 {
                        return;
                    }
                }
                () = elapsed(sleep.as_mut().map(|(_, sleep)| sleep)) => sleep = None,
            }
            for news in news.drain(..) {
                self.hear(news);
            }
            self.enqueue_ready();
            self.start_all();
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Orders(orders) => {
                for order in orders {
                    let known = self.under_way.contains(&(order.occurrence, order.attempt))
                        || self
                            .pending
                            .get(&order.occurrence)
                            .is_some_and(|old| old.attempt == order.attempt);
                    if !known {
                        self.timers.push(Reverse((order.ready_ms, order.occurrence)));
                        self.pending.insert(order.occurrence, order);
                    }
                }
            }
            News::Withdrawn(occurrence) => {
                self.pending.remove(&occurrence);
                self.withdrawals.lock().remove(&occurrence);
            }
            News::Done { kind, group, deliveries, slow } => {
                for delivery in deliveries {
                    self.under_way.remove(&delivery);
                }
                if let Some(desk) = self.kinds.get_mut(kind) {
                    desk.done(&group, slow);
                }
            }
        }
    }

    /// Puts what is ready in line with its group.
    fn enqueue_ready(&mut self) {
        let now_ms = self.clock.now().as_millisecond();
        while let Some(Reverse((ready_ms, occurrence))) = self.timers.peek().copied() {
            if ready_ms > now_ms {
                break;
            }
            self.timers.pop();
            // It may have been withdrawn, and opened anew for another time.
            let Some(order) = self.pending.get(&occurrence).filter(|order| order.ready_ms == ready_ms) else {
                continue;
            };
            if let Some(desk) = self.kinds.get_mut(&*order.address.kind) {
                desk.enqueue(occurrence, &order.address.to);
                continue;
            }
            let error = format!("this server has no targets of kind '{}'", order.address.kind);
            let attempt = Attempt { occurrence, number: order.attempt, outcome: Outcome::refused(error) };
            self.pending.remove(&occurrence);
            (self.reports)(occurrence.schedule.shard(), vec![attempt]);
        }
    }

    fn start_all(&mut self) {
        for (kind, desk) in &mut self.kinds {
            while let Some((group, occurrences)) = desk.next_batch() {
                let withdrawn = self.withdrawals.lock();
                let mut orders = Vec::with_capacity(occurrences.len());
                for occurrence in occurrences {
                    if let Some(order) = self.pending.remove(&occurrence)
                        && !withdrawn.contains(&occurrence)
                    {
                        self.under_way.insert((occurrence, order.attempt));
                        orders.push(order);
                    }
                }
                drop(withdrawn);
                if orders.is_empty() {
                    desk.done(&group, false);
                    continue;
                }
                let call = Call {
                    kind,
                    group,
                    target: desk.target.clone(),
                    timeout: SignedDuration::try_from(desk.manners.timeout).unwrap_or(SignedDuration::MAX),
                    clock: self.clock.clone(),
                    tell: self.tell.clone(),
                    reports: self.reports.clone(),
                };
                self.tasks.spawn(self.abandon.clone().run_until_cancelled_owned(call.run(orders)));
            }
        }
    }
}

impl KindDesk {
    fn enqueue(&mut self, occurrence: OccurrenceId, to: &str) {
        let name = self.target.group(to);
        if !self.groups.contains_key(name) {
            self.groups.insert(name.into(), Group::default());
        }
        if let Some((name, group)) =
            self.groups.get_key_value(name).map(|(name, _)| name.clone()).and_then(|name| {
                let group = self.groups.get_mut(&name)?;
                Some((name, group))
            })
        {
            group.waiting.push_back(occurrence);
            if !group.in_line && group.has_place(&self.manners) {
                group.in_line = true;
                self.line.push_back(name);
            }
        }
    }

    /// What is delivered next, if there is a place for it, which it takes.
    fn next_batch(&mut self) -> Option<(Arc<str>, Vec<OccurrenceId>)> {
        if self.under_way >= self.manners.at_once.max(1) {
            return None;
        }
        let name = self.line.pop_front()?;
        let group = self.groups.get_mut(&name)?;
        let count = self.manners.batch.clamp(1, group.waiting.len().max(1));
        let batch: Vec<_> = group.waiting.drain(..count.min(group.waiting.len())).collect();
        group.under_way += 1;
        self.under_way += 1;
        group.in_line = !group.waiting.is_empty() && group.has_place(&self.manners);
        if group.in_line {
            self.line.push_back(name.clone());
        }
        Some((name, batch))
    }

    /// A place is free again.
    fn done(&mut self, name: &Arc<str>, slow: bool) {
        self.under_way -= 1;
        let Some(group) = self.groups.get_mut(name) else { return };
        group.under_way -= 1;
        group.slow_calls = if slow { group.slow_calls.saturating_add(1) } else { 0 };
        if group.waiting.is_empty() {
            if group.under_way == 0 && group.slow_calls == 0 {
                self.groups.remove(name);
            }
        } else if !group.in_line && group.has_place(&self.manners) {
            group.in_line = true;
            self.line.push_back(name.clone());
        }
    }
}

/// One call of a target.
struct Call {
    kind: &'static str,
    group: Arc<str>,
    target: Arc<dyn Target>,
    timeout: SignedDuration,
    clock: Arc<dyn Clock>,
    tell: mpsc::UnboundedSender<News>,
    reports: Reports,
}

impl Call {
    async fn run(self, orders: Vec<Order>) {
        let begun = self.clock.now();
        let attempts: Vec<_> = orders.iter().map(|order| (order.occurrence, order.attempt)).collect();
        let deliveries = orders.into_iter().map(Order::into_delivery).collect();
        let target = self.target.clone();
        let delivering = AssertUnwindSafe(async move { target.deliver(deliveries).await }).catch_unwind();
        let until = begun.checked_add(self.timeout).unwrap_or(Timestamp::MAX);
        let outcomes = tokio::select! {
            biased;
            outcomes = delivering => outcomes.unwrap_or_else(|_| {
                tracing::error!(kind = self.kind, "a target panicked");
                Vec::new()
            }),
            () = self.clock.sleep_until(until) => {
                let error = format!("no answer within {} s", self.timeout.as_secs());
                vec![Outcome::failed(error); attempts.len()]
            }
        };
        let took = self.clock.now().duration_since(begun);
        let slow = took.as_millis() * 2 > self.timeout.as_millis();
        // A target that says nothing of a delivery may have made it.
        let unknown = || Outcome::failed("the target did not say what came of it");
        let mut outcomes = outcomes.into_iter();
        let mut by_shard: HashMap<Shard, Vec<Attempt>> = HashMap::new();
        for (occurrence, number) in &attempts {
            let outcome = outcomes.next().unwrap_or_else(unknown);
            let attempt = Attempt { occurrence: *occurrence, number: *number, outcome };
            by_shard.entry(occurrence.schedule.shard()).or_default().push(attempt);
        }
        for (shard, attempts) in by_shard {
            (self.reports)(shard, attempts);
        }
        // The desk may be gone: then nobody counts places any more.
        let _ = self.tell.send(News::Done { kind: self.kind, group: self.group, deliveries: attempts, slow });
    }
}

fn timestamp(at_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(at_ms).unwrap_or(if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

async fn elapsed(sleep: Option<&mut futures::future::BoxFuture<'static, ()>>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}
