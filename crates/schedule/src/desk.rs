//! Delivers what this node has claimed: each at its time, with regard for the manners of its target.
//!
//! Destinations that share their troubles form a **group** (see [`Target::group`]): a group that does not answer fills its
//! own places only, and gets fewer of them for as long as it is slow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use switchboard_exchange::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::settle::Attempt;
use crate::timetable::Schedule;
use crate::{
    Address, Delivery, KindStats, Manners, Message, NodeId, Occurrence, OccurrenceId, Outcome, Shard, Stats,
    Target, Targets,
};

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
    /// The order to deliver an occurrence of `schedule`, if `node` has claimed it and it was not called off.
    pub(crate) fn of(occurrence: OccurrenceId, schedule: &Schedule, node: &NodeId) -> Option<Self> {
        let claimed = |open: &&Occurrence| open.claimed_by.as_ref() == Some(node);
        let open = schedule.occurrence(occurrence.due_ms).filter(claimed)?;
        if schedule.is_called_off(open) {
            return None;
        }
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
    /// There are new orders, for these times.
    Orders(Vec<(i64, OccurrenceId)>),
    /// A call is over.
    Done { kind: &'static str, group: Arc<str>, slow: bool },
}

/// What is to be delivered and what is being delivered. What is withdrawn from it does not begin any more, so it is known
/// here before whoever withdrew it has an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Orders(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    /// Orders whose time has not come, or that wait for a place.
    pending: HashMap<OccurrenceId, Order>,
    /// What is being delivered, and in which attempt, until it is recorded what came of it: a node that reads its claims
    /// anew after a fault would deliver it again.
    under_way: HashSet<(OccurrenceId, u32)>,
}

impl Orders {
    fn lock(&self) -> MutexGuard<'_, Book> {
        // Nothing can panic while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what is not known yet, and gives the times of what was new.
    pub(crate) fn add(&self, orders: Vec<Order>) -> Vec<(i64, OccurrenceId)> {
        let mut book = self.lock();
        let mut times = Vec::with_capacity(orders.len());
        for order in orders {
            let (occurrence, attempt) = (order.occurrence, order.attempt);
            let pends = book.pending.get(&occurrence).is_some_and(|old| old.attempt == attempt);
            if !pends && !book.under_way.contains(&(occurrence, attempt)) {
                times.push((order.ready_ms, occurrence));
                book.pending.insert(occurrence, order);
            }
        }
        times
    }

    /// Withdraws an order.
    pub(crate) fn withdraw(&self, occurrence: OccurrenceId) {
        self.lock().pending.remove(&occurrence);
    }

    /// Withdraws what `shard` has and is not among `orders`.
    pub(crate) fn keep_only(&self, shard: Shard, orders: &[Order]) {
        let kept: HashSet<_> = orders.iter().map(|order| (order.occurrence, order.attempt)).collect();
        self.lock().pending.retain(|occurrence, order| {
            occurrence.schedule.shard() != shard || kept.contains(&(*occurrence, order.attempt))
        });
    }

    /// It is recorded what came of `attempts`.
    pub(crate) fn recorded(&self, attempts: &[(OccurrenceId, u32)]) {
        let mut book = self.lock();
        for attempt in attempts {
            book.under_way.remove(attempt);
        }
    }

    pub(crate) fn is_under_way(&self, occurrence: OccurrenceId, attempt: u32) -> bool {
        self.lock().under_way.contains(&(occurrence, attempt))
    }
}

/// What is reported to a stream.
#[derive(Debug)]
pub(crate) enum Report {
    /// What came of attempts.
    Attempts(Vec<Attempt>),
    /// What was called off before it began, and for which attempt it had been claimed.
    NotBegun(Vec<(OccurrenceId, u32)>),
}

/// Where reports go, one way per stream.
pub(crate) type Reports = Arc<dyn Fn(Shard, Report) + Send + Sync>;

/// Delivers until it is stopped.
pub(crate) struct Desk {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) news: mpsc::UnboundedReceiver<News>,
    pub(crate) tell: mpsc::UnboundedSender<News>,
    pub(crate) orders: Orders,
    pub(crate) reports: Reports,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) abandon: CancellationToken,
    pub(crate) kinds: BTreeMap<&'static str, KindDesk>,
    pub(crate) timers: BinaryHeap<Reverse<(i64, OccurrenceId)>>,
}

/// What waits and what is under way of one kind of target.
pub(crate) struct KindDesk {
    target: Arc<dyn Target>,
    stats: Arc<KindStats>,
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
    pub(crate) fn kinds(targets: &Targets, stats: &Stats) -> BTreeMap<&'static str, KindDesk> {
        let desk = |target: &Arc<dyn Target>| KindDesk {
            target: target.clone(),
            stats: stats.kind(target.kind()),
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
            News::Orders(times) => self.timers.extend(times.into_iter().map(Reverse)),
            News::Done { kind, group, slow } => {
                if let Some(desk) = self.kinds.get_mut(kind) {
                    desk.done(&group, slow);
                }
            }
        }
    }

    /// Puts what is ready in line with its group.
    fn enqueue_ready(&mut self) {
        let now_ms = self.clock.now().as_millisecond();
        let mut book = self.orders.lock();
        while let Some(Reverse((ready_ms, occurrence))) = self.timers.peek().copied() {
            if ready_ms > now_ms {
                break;
            }
            self.timers.pop();
            // It may have been withdrawn, and opened anew for another time.
            let Some(order) = book.pending.get(&occurrence).filter(|order| order.ready_ms == ready_ms) else {
                continue;
            };
            if let Some(desk) = self.kinds.get_mut(&*order.address.kind) {
                desk.enqueue(occurrence, &order.address.to);
                continue;
            }
            let error = format!("this server has no targets of kind '{}'", order.address.kind);
            let attempt = Attempt { occurrence, number: order.attempt, outcome: Outcome::refused(error) };
            book.under_way.insert((occurrence, attempt.number));
            book.pending.remove(&occurrence);
            (self.reports)(occurrence.schedule.shard(), Report::Attempts(vec![attempt]));
        }
    }

    fn start_all(&mut self) {
        let now_ms = self.clock.now().as_millisecond();
        for (kind, desk) in &mut self.kinds {
            while let Some((group, occurrences)) = desk.next_batch() {
                let mut book = self.orders.lock();
                let mut orders = Vec::with_capacity(occurrences.len());
                for occurrence in occurrences {
                    let Some(order) = book.pending.remove(&occurrence) else { continue };
                    if order.ready_ms > now_ms {
                        // It came anew while its predecessor was in line, or the clock was put back.
                        self.timers.push(Reverse((order.ready_ms, occurrence)));
                        book.pending.insert(occurrence, order);
                        continue;
                    }
                    book.under_way.insert((occurrence, order.attempt));
                    orders.push(order);
                }
                drop(book);
                if orders.is_empty() {
                    desk.done(&group, false);
                    continue;
                }
                let call = Call {
                    kind,
                    group,
                    target: desk.target.clone(),
                    stats: desk.stats.clone(),
                    timeout: desk.manners.timeout,
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
    stats: Arc<KindStats>,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    tell: mpsc::UnboundedSender<News>,
    reports: Reports,
}

impl Call {
    async fn run(self, orders: Vec<Order>) {
        let begun = self.clock.now();
        let attempts: Vec<_> = orders.iter().map(|order| (order.occurrence, order.attempt)).collect();
        let begun_ms = begun.as_millisecond();
        for order in &orders {
            self.stats.begun(begun_ms.saturating_sub(order.ready_ms));
        }
        let deliveries = orders.into_iter().map(Order::into_delivery).collect();
        let target = self.target.clone();
        let delivering = AssertUnwindSafe(async move { target.deliver(deliveries).await }).catch_unwind();
        let outcomes = tokio::select! {
            biased;
            outcomes = delivering => outcomes.unwrap_or_else(|_| {
                tracing::error!(kind = self.kind, "a target panicked");
                Vec::new()
            }),
            () = elapse(&*self.clock, self.timeout) => {
                let error = format!("no answer within {} s", self.timeout.as_secs());
                vec![Outcome::failed(error); attempts.len()]
            }
        };
        let took = self.clock.now().duration_since(begun);
        let slow = took.as_millis().unsigned_abs() * 2 > self.timeout.as_millis();
        // A target that says nothing of a delivery may have made it.
        let unknown = || Outcome::failed("the target did not say what came of it");
        let mut outcomes = outcomes.into_iter();
        let mut by_shard: BTreeMap<Shard, Vec<Attempt>> = BTreeMap::new();
        for (occurrence, number) in &attempts {
            let outcome = outcomes.next().unwrap_or_else(unknown);
            self.stats.over(&outcome);
            let attempt = Attempt { occurrence: *occurrence, number: *number, outcome };
            by_shard.entry(occurrence.schedule.shard()).or_default().push(attempt);
        }
        for (shard, attempts) in by_shard {
            (self.reports)(shard, Report::Attempts(attempts));
        }
        // The desk may be gone: then nobody counts places any more.
        let _ = self.tell.send(News::Done { kind: self.kind, group: self.group, slow });
    }
}

/// Waits for as long as `span`, however the time of day jumps meanwhile.
pub(crate) async fn elapse(clock: &dyn Clock, span: Duration) {
    // A clock may wake earlier from a longer sleep.
    const STEP: Duration = Duration::from_secs(10);
    let mut left = span;
    while !left.is_zero() {
        let step = left.min(STEP);
        let until = clock.now().checked_add(step).unwrap_or(Timestamp::MAX);
        clock.sleep_until(until).await;
        left -= step;
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
