//! The way in: makes, changes and lists schedules, and sees to it that they are delivered.

use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::SignedDuration;
use switchboard_exchange::{CommandError, CommandId, Decide, Exchange};
use switchboard_journal::Sharing;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::desk::{Desk, News, Order, Orders, Report, Reports, elapse};
use crate::id::stable_hash;
use crate::index::Notice;
use crate::pass::{Pass, Passed};
use crate::settle::Return;
use crate::timetable::Schedule;
use crate::{
    Attend, Cancel, Cancelled, Change, Create, Delete, Fate, Made, NodeId, OccurrenceId, Past, Pause, Record,
    Rejection, Resume, RunNow, ScheduleId, Settle, Shard, Spec, Stats, Status, Targets, Timetable, Update,
};

/// Why a call got no answer from the schedules.
pub type Error = CommandError<Rejection>;

/// How many schedules are looked at in one go, so that nothing that is due has to wait for a long list.
const PAGE: usize = 1_000;

/// How many attempts are reported at once.
const REPORT: usize = 512;

/// How many occurrences of a pass are looked at after each change of their stream.
const TRIED: usize = 64;

/// How many streams are read at once at the start: each is in memory twice while it is read.
const READ_AT_ONCE: usize = 4;

/// How often a node looks for streams that others made, where several share a journal.
const LOOK_AROUND: Duration = Duration::from_secs(5);

/// How long what came of deliveries may take to be recorded at the end, at most.
const LAST_REPORTS: Duration = Duration::from_secs(2);

/// How long it takes until something is tried again that failed for a fault of the journal.
const FAULT_PAUSE: SignedDuration = SignedDuration::from_millis(200);

/// All schedules. Cheap to clone; all clones are the same.
///
/// Nothing is due before [`start`](Self::start), nor after [`stop`](Self::stop).
#[derive(Clone)]
pub struct Schedules {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Schedules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedules").field("node", &self.inner.node).finish_non_exhaustive()
    }
}

struct Inner {
    exchange: Exchange<Timetable>,
    targets: Targets,
    stats: Stats,
    node: NodeId,
    /// As many schedules were made, at least.
    count: AtomicU64,
    attended: [OnceCell<()>; Shard::COUNT],
    running: OnceLock<Arc<Running>>,
    stop: CancellationToken,
    /// Ends deliveries that nobody waits for any longer.
    abandon: CancellationToken,
    tasks: TaskTracker,
    deliveries: TaskTracker,
}

/// What runs once it is started.
struct Running {
    tell: mpsc::UnboundedSender<News>,
    orders: Orders,
    reports: Reports,
}

impl Running {
    fn tell(&self, orders: Vec<Order>) {
        let times = self.orders.add(orders);
        if !times.is_empty() {
            // The desk is gone only when all stops.
            let _ = self.tell.send(News::Orders(times));
        }
    }
}

/// A schedule and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Its number.
    pub id: ScheduleId,
    /// The rest.
    pub schedule: Schedule,
}

/// Which schedules are asked for. All by default.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those that stand so.
    pub status: Option<Vec<Status>>,
    /// Those that call this kind of target.
    pub kind: Option<Arc<str>>,
    /// Those that call this destination.
    pub to: Option<Arc<str>>,
}

impl Filter {
    /// Those that are active or paused.
    pub fn live() -> Self {
        Self { status: Some(vec![Status::Active, Status::Paused]), ..Self::default() }
    }

    fn takes(&self, schedule: &Schedule) -> bool {
        let address = &schedule.spec.address;
        self.status.as_ref().is_none_or(|status| status.contains(&schedule.status))
            && self.kind.as_ref().is_none_or(|kind| address.kind == *kind)
            && self.to.as_ref().is_none_or(|to| address.to == *to)
    }
}

/// What a pass came to for one occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassEntry {
    /// The schedule.
    pub id: ScheduleId,
    /// To whom it went.
    pub to: Arc<str>,
    /// Whether it was delivered.
    pub delivered: bool,
    /// When the schedule is due next, in milliseconds since 1970; none if it is over.
    pub next_ms: Option<i64>,
    /// How often it was delivered by now.
    pub repetitions: u32,
    /// After how many deliveries it is completed.
    pub max_repetitions: Option<u32>,
    /// Whether it is completed by having been delivered as often as it should be.
    pub completed: bool,
}

impl Schedules {
    /// The schedules that `exchange` keeps, for delivery to `targets`.
    pub fn new(exchange: Exchange<Timetable>, targets: Targets, node: NodeId) -> Self {
        Self {
            inner: Arc::new(Inner {
                exchange,
                stats: Stats::of(&targets),
                targets,
                node,
                count: AtomicU64::new(0),
                attended: std::array::from_fn(|_| OnceCell::new()),
                running: OnceLock::new(),
                stop: CancellationToken::new(),
                abandon: CancellationToken::new(),
                tasks: TaskTracker::new(),
                deliveries: TaskTracker::new(),
            }),
        }
    }

    /// Reads all schedules and delivers from now on what is due. Call it before anything else, and again if it failed.
    pub async fn start(&self) -> Result<(), Error> {
        self.run_desk();
        self.look_around().await?;
        if self.inner.exchange.sharing() == Sharing::Shared {
            let this = self.clone();
            let look = async move { this.keep_looking_around().await };
            self.inner.tasks.spawn(self.inner.stop.clone().run_until_cancelled_owned(look));
        }
        Ok(())
    }

    fn run_desk(&self) {
        let inner = &self.inner;
        let (tell, news) = mpsc::unbounded_channel();
        let (orders, reports) = (Orders::default(), OnceLock::new());
        inner.running.get_or_init(|| {
            let reports = reports.get_or_init(|| self.reports(&orders)).clone();
            Arc::new(Running { tell: tell.clone(), orders: orders.clone(), reports })
        });
        let Some(reports) = reports.into_inner() else { return };
        let desk = Desk {
            clock: inner.exchange.clock().clone(),
            news,
            tell,
            orders,
            reports,
            tasks: inner.deliveries.clone(),
            stop: inner.stop.clone(),
            abandon: inner.abandon.clone(),
            kinds: Desk::kinds(&inner.targets, &inner.stats),
            timers: BinaryHeap::new(),
        };
        inner.tasks.spawn(desk.run());
    }

    /// Attends to all streams there are.
    async fn look_around(&self) -> Result<(), Error> {
        let exchange = &self.inner.exchange;
        let all = const { NonZeroUsize::new(Shard::COUNT * 2).unwrap() };
        let known = exchange.streams(Shard::PREFIX, None, all).await.map_err(CommandError::Unreadable)?;
        let shards: Vec<_> = known.iter().filter_map(|head| Shard::of_stream(&head.stream)).collect();
        let attended = stream::iter(shards).map(|shard| self.attend(shard)).buffer_unordered(READ_AT_ONCE);
        attended.try_collect().await
    }

    /// What other nodes made is delivered by this one too, should they be gone.
    async fn keep_looking_around(&self) {
        loop {
            elapse(&**self.inner.exchange.clock(), LOOK_AROUND).await;
            if let Err(error) = self.look_around().await {
                tracing::warn!(%error, "schedules that other servers made are not looked after yet");
            }
        }
    }

    /// What was counted since the start.
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// The kinds of targets there are.
    pub fn targets(&self) -> &Targets {
        &self.inner.targets
    }

    /// The exchange that keeps the schedules.
    pub fn exchange(&self) -> &Exchange<Timetable> {
        &self.inner.exchange
    }

    /// Makes a schedule. With a command id, a repetition makes no second one.
    pub async fn create(&self, spec: Spec, id: Option<CommandId>) -> Result<Made, Error> {
        self.make(spec, None, false, id).await
    }

    /// Makes a schedule whose time, if it has only one, must be to come; else it is refused as [`Rejection::Over`]. A
    /// repetition with the same command id gets the first answer, however late it comes.
    pub async fn create_ahead(&self, spec: Spec, id: Option<CommandId>) -> Result<Made, Error> {
        self.make(spec, None, true, id).await
    }

    /// Makes a schedule that was kept elsewhere before. What has the same [source](crate::More::source) as an earlier one is
    /// refused as [`Rejection::Imported`].
    pub async fn import(&self, spec: Spec, past: Past) -> Result<Made, Error> {
        self.make(spec, Some(past), false, None).await
    }

    async fn make(
        &self,
        spec: Spec,
        past: Option<Past>,
        ahead: bool,
        id: Option<CommandId>,
    ) -> Result<Made, Error> {
        self.check(&spec).map_err(|why| CommandError::Rejected(Rejection::Invalid(why)))?;
        let floor = self.inner.count.fetch_add(1, Relaxed);
        let shard = self.shard_for(&spec, floor, id.as_ref());
        self.attend(shard).await?;
        let command = Create { spec, shard, floor, past, ahead };
        let made = self.inner.exchange.send(&shard.stream(), command, id).await?;
        self.inner.count.fetch_max(made.id.count(), Relaxed);
        Ok(made)
    }

    /// What is wrong with whom `spec` calls, or with what it says.
    fn check(&self, spec: &Spec) -> Result<(), String> {
        let kind = &*spec.address.kind;
        let Some(target) = self.inner.targets.get(kind) else {
            let kinds = self.inner.targets.kinds().join(", ");
            return Err(format!("there are no targets of kind '{kind}': the kinds are {kinds}"));
        };
        target.check(&spec.address.to, &spec.message)
    }

    fn shard_for(&self, spec: &Spec, number: u64, id: Option<&CommandId>) -> Shard {
        let ordered =
            self.inner.targets.get(&spec.address.kind).is_some_and(|target| target.manners().ordered);
        match (ordered, spec.source(), id) {
            // What has to keep an order, or must not be made twice, has to be in one place.
            (true, ..) => Shard::of(&spec.address.to_string()),
            (false, Some(source), _) => Shard::of(source),
            (false, None, Some(id)) => Shard::nth(stable_hash(id.to_string().as_bytes())),
            (false, None, None) => Shard::nth(number),
        }
    }

    /// Changes what is said of it in `change`.
    pub async fn update(&self, id: ScheduleId, change: Change, call: Option<CommandId>) -> Result<(), Error> {
        if let Some(message) = &change.message {
            let info = self.get(id).await?.ok_or(CommandError::Rejected(Rejection::Unknown { id }))?;
            let spec = Spec { message: message.clone(), ..info.schedule.spec };
            self.check(&spec).map_err(|why| CommandError::Rejected(Rejection::Invalid(why)))?;
        }
        self.send(id, Update { id, change }, call).await
    }

    /// Nothing is due until it is resumed.
    pub async fn pause(&self, id: ScheduleId, call: Option<CommandId>) -> Result<(), Error> {
        self.send(id, Pause { id }, call).await
    }

    /// It goes on.
    pub async fn resume(&self, id: ScheduleId, call: Option<CommandId>) -> Result<(), Error> {
        self.send(id, Resume { id }, call).await
    }

    /// Ends it for good.
    pub async fn cancel(&self, id: ScheduleId, call: Option<CommandId>) -> Result<Cancelled, Error> {
        self.send(id, Cancel { id }, call).await
    }

    /// Ends it and forgets it.
    pub async fn delete(&self, id: ScheduleId, call: Option<CommandId>) -> Result<(), Error> {
        self.send(id, Delete { id }, call).await
    }

    /// Delivers it once, now. Gives the occurrence, whose fate [`settled`](Self::settled) waits for.
    pub async fn run_now(&self, id: ScheduleId, call: Option<CommandId>) -> Result<OccurrenceId, Error> {
        let due_ms = self.send(id, RunNow { id }, call).await?;
        Ok(OccurrenceId { due_ms, schedule: id })
    }

    /// Waits until an occurrence is over, and says what became of it; none if that is not known any more.
    pub async fn settled(&self, occurrence: OccurrenceId) -> Result<Option<Record>, Error> {
        let OccurrenceId { due_ms, schedule: id } = occurrence;
        let over = move |timetable: &Timetable| {
            let open = timetable.get(id).is_some_and(|schedule| schedule.occurrence(due_ms).is_some());
            let record = || timetable.history(id).rev().find(|record| record.due_ms == due_ms).cloned();
            (!open).then(record)
        };
        self.inner.exchange.wait_for(&id.shard().stream(), over).await
    }

    /// The schedule `id`.
    pub async fn get(&self, id: ScheduleId) -> Result<Option<Info>, Error> {
        if !self.reach(id.shard()).await? {
            return Ok(None);
        }
        let look = move |timetable: &Timetable| timetable.get(id).cloned();
        let schedule = self.inner.exchange.look(&id.shard().stream(), look).await?;
        Ok(schedule.map(|schedule| Info { id, schedule }))
    }

    /// What became of its due times, newest first, at most `limit`.
    pub async fn history(&self, id: ScheduleId, limit: usize) -> Result<Vec<Record>, Error> {
        if !self.reach(id.shard()).await? {
            return Ok(Vec::new());
        }
        let look = move |timetable: &Timetable| timetable.history(id).rev().take(limit).cloned().collect();
        self.inner.exchange.look(&id.shard().stream(), look).await
    }

    /// The schedules that `filter` takes, in the order in which they were made.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Info>, Error> {
        let lists = try_join_all(self.shards().await?.map(|shard| self.list_shard(shard, filter))).await?;
        let mut all: Vec<_> = lists.into_iter().flatten().collect();
        all.sort_by_key(|info| info.id);
        Ok(all)
    }

    async fn list_shard(&self, shard: Shard, filter: &Filter) -> Result<Vec<Info>, Error> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let filter = filter.clone();
            let look = move |timetable: &Timetable| {
                let mut page = Vec::new();
                let mut last = None;
                for (id, schedule) in timetable.after(after).take(PAGE) {
                    last = Some(id);
                    if filter.takes(schedule) {
                        page.push(Info { id, schedule: schedule.clone() });
                    }
                }
                (page, last)
            };
            let (page, last) = self.inner.exchange.look(&shard.stream(), look).await?;
            found.extend(page);
            if last.is_none() {
                return Ok(found);
            }
            after = last;
        }
    }

    /// What became of due times of all schedules, newest first, at most `limit`.
    pub async fn records(&self, limit: usize) -> Result<Vec<(ScheduleId, Record)>, Error> {
        let look = |shard: Shard| async move {
            let look = move |timetable: &Timetable| {
                let mut records: Vec<_> =
                    timetable.records().map(|(id, record)| (id, record.clone())).collect();
                newest_first(&mut records, limit);
                records
            };
            self.inner.exchange.look(&shard.stream(), look).await
        };
        let mut all: Vec<_> =
            try_join_all(self.shards().await?.map(look)).await?.into_iter().flatten().collect();
        newest_first(&mut all, limit);
        Ok(all)
    }

    /// Delivers once all that is due of `kind`, waits until each was tried, and says what came of it, by due time and number.
    pub async fn pass(&self, kind: &str) -> Result<Vec<PassEntry>, Error> {
        let kind: Arc<str> = kind.into();
        let pass = |shard: Shard| {
            let command = Pass { kind: kind.clone() };
            async move {
                let passed = self.inner.exchange.send(&shard.stream(), command, None).await?;
                self.tried(shard, passed).await
            }
        };
        let tried = try_join_all(self.shards().await?.map(pass)).await?;
        let mut tried: Vec<_> = tried.into_iter().flatten().collect();
        tried.sort_by_key(|(occurrence, _)| *occurrence);
        Ok(tried.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Waits until all that was passed in one stream was tried. What was withdrawn before is left out.
    async fn tried(
        &self,
        shard: Shard,
        passed: Vec<Passed>,
    ) -> Result<Vec<(OccurrenceId, PassEntry)>, Error> {
        if passed.is_empty() {
            return Ok(Vec::new());
        }
        // Looked at after every change, so never all of them: those that were due first are tried first.
        let mut left = passed.into_iter();
        let mut next: Vec<_> = left.by_ref().take(TRIED).collect();
        let mut tried = Vec::new();
        let all_tried = move |timetable: &Timetable| {
            loop {
                next.retain(|passed| match entry_of(timetable, passed) {
                    Tried::NotYet => true,
                    Tried::Withdrawn => false,
                    Tried::Was(entry) => {
                        tried.push((passed.occurrence, entry));
                        false
                    }
                });
                let room = TRIED - next.len();
                let before = next.len();
                next.extend(left.by_ref().take(room));
                if next.len() == before {
                    return next.is_empty().then(|| std::mem::take(&mut tried));
                }
            }
        };
        self.inner.exchange.wait_for(&shard.stream(), all_tried).await
    }

    /// Begins no more deliveries, waits at most `at_most` for those that are under way, and takes no more calls. What was not
    /// over is delivered after the next start, under the same key.
    pub async fn stop(&self, at_most: Duration) {
        self.inner.stop.cancel();
        self.inner.deliveries.close();
        let clock = self.inner.exchange.clock().clone();
        tokio::select! {
            () = self.inner.deliveries.wait() => {}
            () = elapse(&*clock, at_most) => {
                tracing::warn!("deliveries are still under way: they are made again after the next start");
            }
        }
        self.inner.abandon.cancel();
        self.inner.tasks.close();
        tokio::select! {
            () = self.inner.tasks.wait() => {}
            () = elapse(&*clock, LAST_REPORTS) => {
                tracing::warn!("what came of the last deliveries is not recorded: they are made again");
            }
        }
        self.inner.exchange.stop().await;
        self.inner.tasks.wait().await;
    }

    async fn send<C>(
        &self,
        id: ScheduleId,
        command: C,
        call: Option<CommandId>,
    ) -> Result<<Timetable as Decide<C>>::Reply, Error>
    where
        Timetable: Decide<C>,
        C: Send + 'static,
    {
        // Nothing is asked of streams that nobody wrote to: they would be held in memory for nothing.
        if !self.reach(id.shard()).await? {
            return Err(CommandError::Rejected(Rejection::Unknown { id }));
        }
        self.inner.exchange.send(&id.shard().stream(), command, call).await
    }

    // ---- delivery ----------------------------------------------------------------------------------------------

    fn exists(&self, shard: Shard) -> bool {
        self.inner.attended[shard.index()].initialized()
    }

    /// Whether `shard` was ever written to, by any node: then this one attends to it.
    async fn reach(&self, shard: Shard) -> Result<bool, Error> {
        if !self.exists(shard) && self.inner.exchange.sharing() == Sharing::Shared {
            self.look_around().await?;
        }
        Ok(self.exists(shard))
    }

    /// Those that were ever written to.
    async fn shards(&self) -> Result<impl Iterator<Item = Shard> + '_, Error> {
        if self.inner.exchange.sharing() == Sharing::Shared {
            self.look_around().await?;
        }
        Ok(Shard::all().filter(|shard| self.exists(*shard)))
    }

    /// Takes the deliveries of `shard` from now on.
    async fn attend(&self, shard: Shard) -> Result<(), Error> {
        let attend = || async {
            let command = Attend { node: self.inner.node.clone() };
            self.inner.exchange.send(&shard.stream(), command, None).await?;
            let count = self.inner.exchange.look(&shard.stream(), |timetable| timetable.count).await?;
            self.inner.count.fetch_max(count, Relaxed);
            let this = self.clone();
            let follow = async move { this.follow(shard).await };
            self.inner.tasks.spawn(self.inner.stop.clone().run_until_cancelled_owned(follow));
            Ok(())
        };
        self.inner.attended[shard.index()].get_or_try_init(attend).await.copied()
    }

    /// Tells the desk what this node has claimed of `shard`, for as long as the stream lives, and anew when it lives again.
    async fn follow(&self, shard: Shard) {
        let Some(running) = self.inner.running.get() else { return };
        loop {
            let (running, node) = (running.clone(), self.inner.node.clone());
            let mut seen = None;
            let watch = move |timetable: &Timetable| {
                seen = Some(tell_news(timetable, shard, &node, seen, &running));
                None::<()>
            };
            let ended = self.inner.exchange.wait_for(&shard.stream(), watch).await;
            if let Err(error) = ended {
                tracing::warn!(%shard, %error, "nothing of this stream is delivered until it can be read again");
            }
            let clock = self.inner.exchange.clock();
            clock.sleep_until(clock.now() + FAULT_PAUSE).await;
            let command = Attend { node: self.inner.node.clone() };
            // If it fails, so does what follows, and it is tried again.
            let _ = self.inner.exchange.send(&shard.stream(), command, None).await;
        }
    }

    /// A way to report attempts: one task per stream sends what has gathered while the last report was on its way.
    fn reports(&self, orders: &Orders) -> Reports {
        let ways: Vec<_> = Shard::all()
            .map(|shard| {
                let (sender, receiver) = mpsc::unbounded_channel();
                // Not the service itself: its last clone ends the exchange's tasks.
                let (exchange, node) = (self.inner.exchange.clone(), self.inner.node.clone());
                // Once deliveries are abandoned there is nothing more to report.
                let no_more = self.inner.abandon.clone();
                self.inner.tasks.spawn(report(exchange, node, shard, receiver, orders.clone(), no_more));
                sender
            })
            .collect();
        Arc::new(move |shard: Shard, report| {
            // The task ends with the exchange: what is not settled by then is delivered again under the same key.
            let _ = ways[shard.index()].send(report);
        })
    }
}

/// What became of an occurrence that was passed.
enum Tried {
    NotYet,
    Withdrawn,
    Was(PassEntry),
}

fn entry_of(timetable: &Timetable, passed: &Passed) -> Tried {
    let OccurrenceId { due_ms, schedule: id } = passed.occurrence;
    let Some(schedule) = timetable.get(id) else { return Tried::Withdrawn };
    let record = || timetable.history(id).rev().find(|record| record.due_ms == due_ms);
    let delivered = match schedule.occurrence(due_ms) {
        Some(open) if open.claimed_by.is_some() || open.attempts <= passed.attempts => return Tried::NotYet,
        Some(_) => false,
        None => match record().map(|record| &record.fate) {
            Some(Fate::Delivered { .. }) => true,
            Some(Fate::Dead { .. }) => false,
            Some(Fate::Skipped { .. }) | None => return Tried::Withdrawn,
        },
    };
    let max = schedule.spec.max_repetitions.map(std::num::NonZeroU32::get);
    Tried::Was(PassEntry {
        id,
        to: passed.to.clone(),
        delivered,
        next_ms: schedule.next_run_ms().filter(|_| schedule.status.is_live()),
        repetitions: schedule.delivered,
        max_repetitions: max,
        completed: delivered && max.is_some_and(|max| schedule.delivered >= max),
    })
}

fn newest_first(records: &mut Vec<(ScheduleId, Record)>, limit: usize) {
    records.sort_by_key(|(id, record)| std::cmp::Reverse((record.at_ms, record.due_ms, *id)));
    records.truncate(limit);
}

/// Tells the desk what is new for `node` since `seen`, or all it has claimed. Gives how much was seen.
fn tell_news(
    timetable: &Timetable,
    shard: Shard,
    node: &NodeId,
    seen: Option<u64>,
    running: &Running,
) -> u64 {
    let index = &timetable.index;
    let order = |occurrence: OccurrenceId| Order::of(occurrence, timetable.get(occurrence.schedule)?, node);
    let mut orders = Vec::new();
    let mut not_begun = Vec::new();
    let Some((news, total)) = seen.and_then(|seen| index.news(seen)) else {
        let claims = index.claims_of(node);
        orders.extend(claims.iter().copied().filter_map(order));
        running.orders.keep_only(shard, &orders);
        not_begun.extend(claims.into_iter().filter_map(|claim| called_off(timetable, claim, node, running)));
        running.tell(orders);
        if !not_begun.is_empty() {
            (running.reports)(shard, Report::NotBegun(not_begun));
        }
        return index.noticed();
    };
    for notice in news {
        match notice {
            Notice::Claimed(occurrence) => orders.extend(order(occurrence)),
            Notice::Withdrawn(occurrence) => {
                running.tell(std::mem::take(&mut orders));
                running.orders.withdraw(occurrence);
                not_begun.extend(called_off(timetable, occurrence, node, running));
            }
        }
    }
    running.tell(orders);
    if !not_begun.is_empty() {
        (running.reports)(shard, Report::NotBegun(not_begun));
    }
    total
}

/// An occurrence that `node` still has claimed, and will not begin because it was called off; and the attempt it had.
fn called_off(
    timetable: &Timetable,
    occurrence: OccurrenceId,
    node: &NodeId,
    running: &Running,
) -> Option<(OccurrenceId, u32)> {
    let schedule = timetable.get(occurrence.schedule)?;
    let open = schedule.occurrence(occurrence.due_ms)?;
    let waits = open.claimed_by.as_ref() == Some(node)
        && schedule.is_called_off(open)
        && !running.orders.is_under_way(occurrence, open.attempts);
    waits.then_some((occurrence, open.attempts))
}

/// Sends what is reported to a stream, in order, until all is sent and no more will come.
async fn report(
    exchange: Exchange<Timetable>,
    node: NodeId,
    shard: Shard,
    mut reports: mpsc::UnboundedReceiver<Report>,
    orders: Orders,
    no_more: CancellationToken,
) {
    let mut gathered = Vec::new();
    loop {
        let count = tokio::select! {
            biased;
            count = reports.recv_many(&mut gathered, REPORT) => count,
            () = no_more.cancelled() => 0,
        };
        if count == 0 {
            return;
        }
        let (mut attempts, mut claims) = (Vec::new(), Vec::new());
        for report in gathered.drain(..) {
            match report {
                Report::Attempts(more) => attempts.extend(more),
                Report::NotBegun(more) => claims.extend(more),
            }
        }
        // What came of attempts first: what is over is not given back.
        let made: Vec<_> = attempts.iter().map(|attempt| (attempt.occurrence, attempt.number)).collect();
        let settle = Settle { node: node.clone(), attempts };
        if !made.is_empty() && send_report(&exchange, shard, settle).await.is_break() {
            return;
        }
        orders.recorded(&made);
        let give_back = Return { node: node.clone(), claims };
        if !give_back.claims.is_empty() && send_report(&exchange, shard, give_back).await.is_break() {
            return;
        }
    }
}

/// Sends `command` until it is taken.
async fn send_report<C>(exchange: &Exchange<Timetable>, shard: Shard, command: C) -> ControlFlow<()>
where
    Timetable: Decide<C>,
    C: Clone + Send + 'static,
{
    loop {
        match exchange.send(&shard.stream(), command.clone(), None).await {
            Ok(_) => return ControlFlow::Continue(()),
            Err(CommandError::Stopping) => return ControlFlow::Break(()),
            Err(error) => {
                tracing::warn!(%shard, %error, "what came of deliveries is not recorded yet");
                let clock = exchange.clock();
                clock.sleep_until(clock.now() + FAULT_PAUSE).await;
            }
        }
    }
}
