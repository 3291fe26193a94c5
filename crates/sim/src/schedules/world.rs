//! One run: nodes over one store, clients that ask for schedules, targets they call, and what goes wrong, from one seed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use switchboard_exchange::{Clock as _, CommandError, CommandId, Exchange, Options};
use switchboard_journal::{Sharing, StreamId};
use switchboard_schedule::{
    Error, Filter, NodeId, OccurrenceId, Rejection, ScheduleId, Schedules, Settings, Targets, Timetable,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::checks::Shadow;
use crate::clock::SimClock;
use crate::journal::{Faults, Rates, Reader, SimJournal, Store};
use crate::schedules::books::Books;
use crate::schedules::clock::NodeClock;
use crate::schedules::targets::{BY_PASS, Moods, Site};
use crate::schedules::wishes::{self, Call, Pace, Wish};
use crate::trace::Trace;
use crate::world::{Summary, lock};

/// What a run is like, besides what happens in it.
#[derive(Debug)]
struct Plan {
    sharing: Sharing,
    nodes: usize,
    steps: usize,
    pace: Pace,
    rates: Rates,
    moods: Moods,
    settings: Settings,
    options: Options,
    /// A reply is lost on its way.
    lost_reply: f64,
    /// A call comes without a command id.
    without_id: f64,
    /// A node is killed or stopped between two calls.
    restart: f64,
    /// A clock goes wrong.
    clock: f64,
    /// By how much at most, in seconds.
    clock_jump: i64,
    storm: f64,
    /// Whether a node that is dead when the faults stop stays so, if there are others.
    bury: bool,
}

impl Plan {
    fn draw(rng: &mut StdRng, seed: u64) -> Self {
        let shared = !seed.is_multiple_of(2);
        let nodes = if shared { rng.random_range(1..=3) } else { 1 };
        // Each run has some kinds of fault and not others: a run with all of them gets nowhere interesting.
        let calm = rng.random_bool(0.1);
        let rate = |rng: &mut StdRng, most: f64| {
            if calm || rng.random_bool(0.5) { 0.0 } else { rng.random_range(0.1..1.0) * most }
        };
        let rates = Rates {
            refuse: rate(rng, 0.06),
            unknown_written: rate(rng, 0.06),
            unknown_lost: rate(rng, 0.04),
            unknown_late: rate(rng, 0.04),
            crash_before: rate(rng, 0.01),
            crash_after: rate(rng, 0.01),
            delay: rate(rng, 0.5),
            read_error: rate(rng, 0.05),
            tail_error: rate(rng, 0.05),
        };
        let moods = Moods {
            fail: rate(rng, 0.4),
            lie: rate(rng, 0.2),
            refuse: rate(rng, 0.1),
            hang: rate(rng, 0.1),
            slow: rate(rng, 0.3),
            panic: rate(rng, 0.1),
            silent: rate(rng, 0.1),
        };
        let clock = rate(rng, 0.08);
        let clock_jump = if clock > 0.0 { *[2, 60, 3_600, 3_600].choose(rng).expect("some") } else { 0 };
        let pace = if clock_jump > 60 || rng.random_bool(0.2) { Pace::Calm } else { Pace::Brisk };
        let options = Options {
            queue: *[6, 4_096, 4_096].choose(rng).expect("some"),
            batch: *[1, 3, 512, 512].choose(rng).expect("some"),
            idle_after: SignedDuration::from_secs(*[1, 60, 600].choose(rng).expect("some")),
            snapshot_every: *[5, 20, 60, 2_000].choose(rng).expect("some"),
            snapshot_bytes: *[1 << 10, 8 << 20].choose(rng).expect("some"),
            snapshot_on_leave: *[1, 10, 200].choose(rng).expect("some"),
            keep_entries: *[0, 3, 20, 10_000].choose(rng).expect("some"),
            // Longer than any two clocks of a run are apart, so that an id is remembered throughout.
            reply_window: SignedDuration::from_hours(24),
        };
        Self {
            sharing: if shared { Sharing::Shared } else { Sharing::Exclusive },
            nodes,
            steps: rng.random_range(40..=110),
            pace,
            rates,
            moods,
            settings: Settings {
                lookahead_ms: *[0, 250, 250, 2_000].choose(rng).expect("some"),
                grace_ms: *[3_000, 60_000].choose(rng).expect("some"),
                lease_ms: *[10_000, 60_000].choose(rng).expect("some"),
                keep_ms: *[300_000, 7 * 86_400_000].choose(rng).expect("some"),
                shared,
                ..Settings::default()
            },
            options,
            lost_reply: rate(rng, 0.1),
            without_id: rate(rng, 0.2),
            restart: rate(rng, 0.05),
            clock,
            clock_jump,
            storm: rate(rng, 0.03),
            bury: rng.random_bool(0.5),
        }
    }

    /// Whether nothing but the targets goes wrong.
    fn is_calm(&self) -> bool {
        let Rates {
            refuse,
            unknown_written,
            unknown_lost,
            unknown_late,
            crash_before,
            crash_after,
            delay: _,
            read_error,
            tail_error,
        } = self.rates;
        let rates = [refuse, unknown_written, unknown_lost, unknown_late, crash_before, crash_after];
        rates.into_iter().chain([read_error, tail_error, self.clock]).sum::<f64>() == 0.0
            && self.options.queue > 100
    }
}

/// A node between two crashes.
#[derive(Debug)]
struct Node {
    id: NodeId,
    /// Cancelled when it crashes.
    dead: CancellationToken,
    /// Whether it has started.
    ready: AtomicBool,
    clock: Arc<NodeClock>,
    schedules: Schedules,
}

#[derive(Debug)]
struct Slot {
    clock: Arc<SimClock>,
    node: Mutex<Arc<Node>>,
    generation: Mutex<u32>,
}

/// One run.
#[derive(Debug)]
struct World {
    plan: Plan,
    trace: Arc<Trace>,
    store: Arc<Store>,
    books: Arc<Mutex<Books>>,
    site: Arc<Site>,
    slots: Vec<Slot>,
    /// The schedules whose creation was acknowledged.
    known: Mutex<Vec<ScheduleId>>,
    shadows: Mutex<BTreeMap<StreamId, Shadow<Timetable>>>,
    audits: Mutex<u64>,
}

/// What a client learns from one attempt at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It is done, or will never be.
    Settled,
    /// Nothing happened.
    Nothing,
    /// It may have happened.
    Unclear,
}

/// Runs `seed`: on one node with a journal of its own if it is even, on up to three that share one if it is odd.
///
/// # Panics
/// With the latest lines of the trace if a rule is broken.
pub fn run(seed: u64, shown: bool) -> Summary {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let mut rng = StdRng::seed_from_u64(seed);
        let plan = Plan::draw(&mut rng, seed);
        let trace = Arc::new(Trace::new(shown));
        trace.note(format_args!("seed {seed}: {plan:?}"));
        let world = World::new(plan, trace, &mut rng);
        world.clone().live(&mut rng).await;
        world.heal_and_settle(&mut rng).await;
        world.summary()
    })
}

impl World {
    fn new(mut plan: Plan, trace: Arc<Trace>, rng: &mut StdRng) -> Arc<Self> {
        let kinds = Settings::of(&Targets::new(Site::kinds()), &[BY_PASS]).kinds;
        plan.settings.kinds = kinds;
        let exclusive = plan.sharing == Sharing::Exclusive;
        let books = Arc::new(Mutex::new(Books::new(plan.settings.clone(), exclusive, plan.is_calm())));
        let site = Arc::new(Site::new(rng.random(), plan.moods, books.clone(), trace.clone()));
        let reader = {
            let books = books.clone();
            Reader::new(move |stream, json| lock(&books).enter(stream, json))
        };
        let faults = Faults::random(rng.random(), plan.rates);
        let store = Arc::new(Store::read_by(reader, plan.sharing, faults, trace.clone()));
        site.report_to(&store);
        let began = Instant::now();
        let slots = (0..plan.nodes)
            .map(|slot| {
                let clock = Arc::new(SimClock::new(began));
                let node = build(&plan, &store, &books, &site, &clock, format!("n{slot}.0"));
                Slot { clock, node: Mutex::new(node), generation: Mutex::default() }
            })
            .collect();
        let world = Arc::new(Self {
            plan,
            trace,
            store,
            books,
            site,
            slots,
            known: Mutex::default(),
            shadows: Mutex::default(),
            audits: Mutex::default(),
        });
        for slot in 0..world.slots.len() {
            world.start(world.node(slot));
        }
        world
    }

    fn node(&self, slot: usize) -> Arc<Node> {
        lock(&self.slots[slot].node).clone()
    }

    fn summary(&self) -> Summary {
        let conflicts = (0..self.slots.len())
            .map(|slot| self.node(slot))
            .map(|node| node.schedules.exchange().stats().conflicts.load(Relaxed));
        let books = lock(&self.books);
        Summary {
            digest: self.trace.digest(),
            entries: books.entries(),
            audits: *lock(&self.audits),
            conflicts: conflicts.sum(),
            deliveries: books.deliveries(),
        }
    }

    fn check(&self) {
        for slot in 0..self.slots.len() {
            let node = self.node(slot);
            if node.clock.spins() {
                self.broken(format!("nobody runs in circles: {}", node.id.0));
            }
        }
        let broken = self.store.broken();
        assert!(broken.is_empty(), "{}\n\nThe latest lines:\n{}", broken.join("\n"), self.trace.latest());
    }

    fn broken(&self, rule: String) {
        self.store.note_broken(rule);
    }

    fn note(&self, check: Result<(), String>) {
        if let Err(rule) = check {
            self.broken(rule);
        }
    }

    // ---- nodes -----------------------------------------------------------------------------------------------------

    fn start(self: &Arc<Self>, node: Arc<Node>) {
        self.trace.note(format_args!("{} starts", node.id.0));
        let world = self.clone();
        tokio::spawn(async move {
            let started = tokio::select! {
                biased;
                started = node.schedules.start() => started,
                () = node.dead.cancelled() => return,
            };
            match started {
                Ok(()) => node.ready.store(true, Relaxed),
                Err(error) => {
                    // As the program does: it ends, and whoever looks after it starts it again.
                    world.trace.note(format_args!("{} cannot start: {error}", node.id.0));
                    world.kill(&node);
                }
            }
        });
    }

    fn kill(&self, node: &Node) {
        self.trace.note(format_args!("{} is killed", node.id.0));
        node.clock.mark();
        node.dead.cancel();
        lock(&self.books).crashed(&node.id);
    }

    /// Lets a node end in good order, as far as it can.
    fn stop(self: &Arc<Self>, node: Arc<Node>) {
        self.trace.note(format_args!("{} is stopped", node.id.0));
        let world = self.clone();
        tokio::spawn(async move {
            let at_most = Duration::from_secs(110);
            let stopped = tokio::select! {
                biased;
                stopped = timeout(2 * at_most, node.schedules.stop(at_most)) => stopped.is_ok(),
                () = node.dead.cancelled() => false,
            };
            if stopped && world.plan.is_calm() {
                world.note(lock(&world.books).stopped(&node.id));
            }
            world.kill(&node);
        });
    }

    /// Starts a new node in the place of one that crashed.
    fn restart(self: &Arc<Self>, slot: usize) {
        let generation = {
            let mut generation = lock(&self.slots[slot].generation);
            *generation += 1;
            *generation
        };
        let clock = &self.slots[slot].clock;
        lock(&self.books).crashed(&self.node(slot).id);
        let node =
            build(&self.plan, &self.store, &self.books, &self.site, clock, format!("n{slot}.{generation}"));
        *lock(&self.slots[slot].node) = node.clone();
        self.start(node);
    }

    // ---- while things go wrong -------------------------------------------------------------------------------------

    async fn live(self: Arc<Self>, rng: &mut StdRng) {
        let mut calls: Vec<JoinHandle<()>> = Vec::new();
        for number in 0..self.plan.steps as u64 {
            self.trouble(rng);
            let now_ms = self.slots[0].clock.now().as_millisecond();
            let known = lock(&self.known).clone();
            let wish = wishes::wish(rng, self.plan.pace, now_ms, number, &known);
            let id = (!rng.random_bool(self.plan.without_id))
                .then(|| CommandId::new(format!("c{number}")).expect("an id"));
            let call = Call { number, wish, id };
            calls.push(tokio::spawn(self.clone().insist(StdRng::seed_from_u64(rng.random()), call)));
            calls.retain(|call| !call.is_finished());
            sleep(self.pause(rng)).await;
            if rng.random_bool(0.3) {
                let slot = rng.random_range(0..self.slots.len());
                calls.push(tokio::spawn(self.clone().audit_node(slot)));
            }
            self.check();
        }
        self.trace.note(format_args!("faults stop"));
        self.store.heal();
        self.site.heal();
        for slot in &self.slots {
            lock(&slot.node).clock.mark();
            slot.clock.set_offset(SignedDuration::ZERO);
        }
        self.restart_the_dead(self.plan.bury);
        for call in calls {
            self.clone().until_it_ends(call).await;
            self.check();
        }
    }

    /// Waits for a call. What failed and waits for a pass gets one now and then.
    async fn until_it_ends(self: Arc<Self>, mut call: JoinHandle<()>) {
        for _ in 0..150 {
            if let Ok(ended) = timeout(Duration::from_mins(1), &mut call).await {
                return ended.expect("a call does not panic");
            }
            let (world, number) = (self.clone(), 1_000_000);
            let pass = Call { number, wish: Wish::Pass, id: None };
            tokio::spawn(world.insist(StdRng::seed_from_u64(number), pass));
        }
        panic!("every call ends\n{}", self.trace.latest());
    }

    /// How long until the next call.
    fn pause(&self, rng: &mut StdRng) -> Duration {
        let slower = if self.plan.pace == Pace::Calm { 10 } else { 1 };
        slower
            * match rng.random_range(0..100) {
                0..30 => Duration::ZERO,
                30..60 => Duration::from_millis(rng.random_range(1..30)),
                60..95 => Duration::from_millis(rng.random_range(100..3_000)),
                _ => Duration::from_secs(rng.random_range(5..40)),
            }
    }

    /// What goes wrong beside the journal and the targets.
    fn trouble(self: &Arc<Self>, rng: &mut StdRng) {
        let slot = rng.random_range(0..self.slots.len());
        if rng.random_bool(self.plan.restart) {
            let node = self.node(slot);
            if rng.random_bool(0.7) { self.kill(&node) } else { self.stop(node) }
        }
        if rng.random_bool(self.plan.clock) {
            lock(&self.slots[slot].node).clock.mark();
            let clock = &self.slots[slot].clock;
            if rng.random_bool(0.3) {
                let stands = rng.random_bool(0.5);
                self.trace.note(format_args!("the clock of n{slot} stands still: {stands}"));
                clock.set_standing(stands);
            } else {
                let most = self.plan.clock_jump;
                let offset = SignedDuration::from_millis(rng.random_range(-most * 1_000..=most * 1_000));
                self.trace.note(format_args!("the clock of n{slot} is now {offset} off"));
                clock.set_offset(offset);
            }
        }
        if rng.random_bool(self.plan.storm) {
            let storms = rng.random_bool(0.4);
            self.trace.note(format_args!("storm: {storms}"));
            self.store.set_storm(storms);
        }
        for index in 0..self.slots.len() {
            if self.node(index).dead.is_cancelled() && rng.random_bool(0.4) {
                self.restart(index);
            }
        }
    }

    /// Starts those that are dead; only one, if the others stay dead and none lives.
    fn restart_the_dead(self: &Arc<Self>, bury: bool) {
        let lives = |slot: usize| !self.node(slot).dead.is_cancelled();
        for slot in 0..self.slots.len() {
            let is_replaced = bury && (0..self.slots.len()).any(lives);
            if !lives(slot) && !is_replaced {
                self.restart(slot);
            }
        }
    }

    // ---- calls -----------------------------------------------------------------------------------------------------

    /// Makes a call until it is answered, as far as a careful client may.
    async fn insist(self: Arc<Self>, mut rng: StdRng, call: Call) {
        let mut attempts_left = 300;
        while attempts_left > 0 {
            // While things go wrong, no number of attempts need be enough.
            attempts_left -= u32::from(self.store.is_healed());
            let node = self.node(rng.random_range(0..self.slots.len()));
            if node.dead.is_cancelled() || !node.ready.load(Relaxed) {
                sleep(Duration::from_millis(rng.random_range(20..500))).await;
                if self.store.is_healed() {
                    self.restart_the_dead(self.plan.bury);
                }
                continue;
            }
            let loses = !self.store.is_healed() && rng.random_bool(self.plan.lost_reply);
            match self.attempt(&call, &node, loses).await {
                Answer::Settled => return,
                // Without an id, repeating the call might do it twice.
                Answer::Unclear if call.id.is_none() => return,
                Answer::Unclear | Answer::Nothing => {}
            }
            sleep(Duration::from_millis(rng.random_range(5..500))).await;
        }
        self.broken(format!("a healthy node answers: {call:?}"));
    }

    async fn attempt(self: &Arc<Self>, call: &Call, node: &Arc<Node>, loses: bool) -> Answer {
        self.trace.note(format_args!("#{} to {}: {:?}", call.number, node.id.0, call.wish));
        let before = lock(&self.books).present();
        let answer = tokio::select! {
            biased;
            answer = self.make(call, node, loses, &before) => answer,
            () = node.dead.cancelled() => Ok(Answer::Unclear),
        };
        self.trace.note(format_args!("#{}: {answer:?}", call.number));
        match answer {
            Ok(answer) => answer,
            Err(CommandError::Rejected(rejection)) => {
                self.may_reject(&rejection, &before);
                Answer::Settled
            }
            Err(CommandError::Unknown(_)) => Answer::Unclear,
            Err(
                error @ (CommandError::Damaged { .. }
                | CommandError::IdReused { .. }
                | CommandError::TooLarge(_)),
            ) => {
                self.broken(format!("no call fails for this: {error} ({call:?})"));
                Answer::Settled
            }
            Err(_) => Answer::Nothing,
        }
    }

    fn may_reject(&self, rejection: &Rejection, before: &std::collections::BTreeSet<ScheduleId>) {
        let books = lock(&self.books);
        let rule = match rejection {
            Rejection::Unknown { id } if before.contains(id) && books.present().contains(id) => {
                format!("what was acknowledged is there: {id}")
            }
            Rejection::Ended { id, .. } if books.pages.get(id).is_some_and(|page| page.status.is_live()) => {
                format!("what is not over is live: {id}")
            }
            _ => return,
        };
        drop(books);
        self.broken(rule);
    }

    async fn make(
        self: &Arc<Self>,
        call: &Call,
        node: &Arc<Node>,
        loses: bool,
        before: &std::collections::BTreeSet<ScheduleId>,
    ) -> Result<Answer, Error> {
        let (schedules, id) = (&node.schedules, call.id.clone());
        let answered = if loses { Answer::Unclear } else { Answer::Settled };
        match &call.wish {
            Wish::Create(spec) => {
                let made = schedules.create((**spec).clone(), id).await?;
                self.note(lock(&self.books).acknowledged(made.id, &spec.name, made.next_ms));
                if !loses {
                    lock(&self.known).push(made.id);
                }
            }
            Wish::Update(of, change) => schedules.update(*of, (**change).clone(), id).await?,
            Wish::Pause(of) => schedules.pause(*of, id).await?,
            Wish::Resume(of) => schedules.resume(*of, id).await?,
            Wish::Cancel(of) => {
                schedules.cancel(*of, id).await?;
                self.note(lock(&self.books).acknowledged_end(*of, false));
            }
            Wish::Delete(of) => {
                schedules.delete(*of, id).await?;
                self.note(lock(&self.books).acknowledged_end(*of, true));
                lock(&self.known).retain(|known| known != of);
            }
            Wish::RunNow(of) => {
                let occurrence = schedules.run_now(*of, id).await?;
                if !loses {
                    self.settled(node, occurrence).await;
                }
            }
            Wish::Get(of) => {
                let there = schedules.get(*of).await?.is_some();
                let present = lock(&self.books).present();
                if !there && before.contains(of) && present.contains(of) {
                    self.broken(format!("what was acknowledged is there: {of}"));
                }
            }
            Wish::List => {
                let listed = schedules.list(&Filter::default()).await?;
                let present = lock(&self.books).present();
                let missing =
                    before.intersection(&present).find(|id| !listed.iter().any(|info| info.id == **id));
                if let Some(id) = missing {
                    self.broken(format!("all schedules are listed: {id} is not, by {}", node.id.0));
                }
            }
            Wish::Pass => drop(schedules.pass(BY_PASS).await?),
        }
        Ok(answered)
    }

    /// Whoever asked for a delivery learns what became of it.
    async fn settled(&self, node: &Node, occurrence: OccurrenceId) {
        if node.schedules.settled(occurrence).await.is_ok() && !lock(&self.books).is_closed(occurrence) {
            self.broken(format!("who waits for an occurrence waits until it is over: {occurrence:?}"));
        }
    }

    // ---- comparisons -----------------------------------------------------------------------------------------------

    async fn audit_node(self: Arc<Self>, slot: usize) {
        let node = self.node(slot);
        if node.ready.load(Relaxed) {
            tokio::select! {
                biased;
                () = self.audit(&node) => {}
                () = node.dead.cancelled() => {}
            }
        }
    }

    /// Compares what a node knows with what the journal says.
    async fn audit(&self, node: &Node) {
        for stream in self.store.streams() {
            let from = self.store.head(&stream);
            let (store, of) = (self.store.clone(), stream.clone());
            let look = move |timetable: &Timetable| {
                (serde_json::to_string(timetable).expect("a state is JSON"), store.head(&of))
            };
            let Ok((live, to)) = node.schedules.exchange().look(&stream, look).await else { continue };
            // Alone, a node knows all that is written. Among others, all that was written when it was asked.
            let from = if self.plan.sharing == Sharing::Exclusive { to } else { from };
            *lock(&self.audits) += 1;
            let entry = |seq| self.store.entry(&stream, seq).expect("an entry");
            let mut shadows = lock(&self.shadows);
            let new = || Shadow::new(&self.plan.settings);
            let shadow = shadows.entry(stream.clone()).or_insert_with(new);
            if shadow.is_past(from) {
                *shadow = new();
            }
            let same = shadow.equals_live_state(&live, from, to, entry);
            drop(shadows);
            self.note(same.map_err(|rule| format!("{rule} ({stream} of {})", node.id.0)));
        }
    }

    async fn audit_every_node(self: &Arc<Self>) {
        for slot in 0..self.slots.len() {
            let audited = timeout(Duration::from_mins(5), self.clone().audit_node(slot)).await;
            assert!(audited.is_ok(), "a healthy node answers\n{}", self.trace.latest());
        }
        self.check();
    }

    // ---- once the faults have stopped --------------------------------------------------------------------------------

    async fn heal_and_settle(self: &Arc<Self>, rng: &mut StdRng) {
        // Leases and times that a wrong clock wrote, the longest call of a target, and a clock's longest sleep.
        let jump = self.plan.clock_jump.unsigned_abs();
        sleep(Duration::from_secs(jump + 100 + 60 + 40)).await;
        self.restart_the_dead(self.plan.bury);
        self.check();
        // What was due while nobody ran is late already.
        sleep(Duration::from_secs(30)).await;
        lock(&self.books).expect_punctuality(2_000);
        sleep(Duration::from_secs(30)).await;
        self.everything_is_done();
        self.audit_every_node().await;
        self.pass().await;
        // A node that knows nothing finds the same state.
        let slot = rng.random_range(0..self.slots.len());
        let node = self.node(slot);
        if !node.dead.is_cancelled() {
            self.kill(&node);
        }
        self.restart(slot);
        sleep(Duration::from_secs(1)).await;
        self.audit_every_node().await;
        sleep(Duration::from_secs(self.plan.settings.lease_ms.into()) / 1_000).await;
        sleep(Duration::from_secs(40)).await;
        self.everything_is_done();
        self.audit_every_node().await;
        self.history_is_that_of_the_journal(slot).await;
    }

    /// What a node says became of each due time is what the journal says, once.
    async fn history_is_that_of_the_journal(&self, slot: usize) {
        let node = self.node(slot);
        let present = lock(&self.books).present();
        for id in present {
            match node.schedules.history(id, usize::MAX).await {
                Ok(records) => {
                    let broken = lock(&self.books).history_is_right(id, &records);
                    for rule in broken {
                        self.broken(rule);
                    }
                }
                Err(error) => self.broken(format!("a healthy node says what became of {id}: {error}")),
            }
        }
        self.check();
    }

    fn everything_is_done(&self) {
        let now_ms = self.slots[0].clock.now().as_millisecond();
        for rule in lock(&self.books).nothing_is_left(now_ms, 5_000) {
            self.broken(rule);
        }
        self.check();
    }

    /// A pass delivers all that waits for one.
    async fn pass(self: &Arc<Self>) {
        let live = (0..self.slots.len()).map(|slot| self.node(slot));
        let Some(node) = live.into_iter().find(|node| !node.dead.is_cancelled()) else { return };
        for _ in 0..3 {
            let now_ms = self.slots[0].clock.now().as_millisecond();
            let passed = timeout(Duration::from_mins(10), node.schedules.pass(BY_PASS)).await;
            let Ok(passed) = passed else { panic!("a pass ends\n{}", self.trace.latest()) };
            self.trace.note(format_args!("the last pass: {passed:?}"));
            self.check();
            if passed.is_ok() {
                for rule in lock(&self.books).waits_for_a_pass(now_ms) {
                    self.broken(rule);
                }
                self.check();
                return;
            }
        }
        panic!("a healthy node passes\n{}", self.trace.latest());
    }
}

fn build(
    plan: &Plan,
    store: &Arc<Store>,
    books: &Arc<Mutex<Books>>,
    site: &Arc<Site>,
    clock: &Arc<SimClock>,
    label: String,
) -> Arc<Node> {
    let dead = CancellationToken::new();
    let id = NodeId(label.as_str().into());
    let journal = SimJournal::new(store.clone(), label, dead.clone());
    let clock = Arc::new(NodeClock::new(clock.clone(), dead.clone()));
    lock(books).node(id.clone(), clock.clone());
    let exchange =
        Exchange::new(Arc::new(journal), clock.clone(), plan.settings.clone(), plan.options.clone());
    let schedules = Schedules::new(exchange, site.targets(&id, &dead), id.clone());
    Arc::new(Node { id, dead, ready: AtomicBool::new(false), clock, schedules })
}
