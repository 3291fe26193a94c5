//! One run: nodes over one store, agents that call them, and what goes wrong, all drawn from one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use switchboard_coordination::{Coordination, CoordinationError, Name, Project, ServiceOptions, Settings};
use switchboard_exchange::{CommandError, CommandId, Exchange, Options};
use switchboard_journal::{ReadError, Seq, Sharing, StreamId};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::calls::{Call, Memory, Wish, name};
use crate::checks::{Receipts, Shadow};
use crate::clock::SimClock;
use crate::journal::{Faults, Rates, SimJournal, Store};
use crate::trace::Trace;

const AGENTS: [&str; 5] = ["ada", "bob", "cyd", "dan", "eve"];
const PROJECTS: [&str; 2] = ["shop", "site"];

/// What a run is like, besides what happens in it.
#[derive(Debug)]
struct Plan {
    nodes: usize,
    agents: usize,
    projects: usize,
    steps: usize,
    rates: Rates,
    settings: Settings,
    options: Options,
    /// A reply is lost on its way.
    lost_reply: f64,
    /// A caller leaves before the reply.
    vanish: f64,
    /// A call is made twice at once.
    duplicate: f64,
    /// A call comes without a command id.
    without_id: f64,
    /// A node is killed or stopped between two calls.
    restart: f64,
    /// A clock goes wrong.
    clock: f64,
    /// By how much at most, in seconds.
    clock_jump: i64,
    storm: f64,
    /// Somebody waits all the time. A stream that nobody waits for leaves memory now and then.
    observed: bool,
    /// Nothing can be read for a while, and some of the nodes are stopped meanwhile.
    blackout: f64,
}

impl Plan {
    fn draw(rng: &mut StdRng, nodes: usize) -> Self {
        // Each run has some kinds of fault and not others: a run with all of them gets nowhere interesting.
        let calm = rng.random_bool(0.08);
        let rate = |rng: &mut StdRng, most: f64| {
            if calm || rng.random_bool(0.45) { 0.0 } else { rng.random_range(0.1..1.0) * most }
        };
        let rates = Rates {
            refuse: rate(rng, 0.08),
            unknown_written: rate(rng, 0.08),
            unknown_lost: rate(rng, 0.05),
            unknown_late: rate(rng, 0.05),
            crash_before: rate(rng, 0.03),
            crash_after: rate(rng, 0.03),
            delay: rate(rng, 0.8),
            read_error: rate(rng, 0.08),
            tail_error: rate(rng, 0.1),
        };
        let settings = Settings {
            heartbeat_timeout: SignedDuration::from_secs(*[30, 120, 600].choose(rng).expect("some")),
            claim_window: SignedDuration::from_secs(*[2, 10, 60].choose(rng).expect("some")),
            strict_rate_limits: rng.random_bool(0.1),
            system_events: rng.random_bool(0.3),
            shared: nodes > 1,
        };
        let options = Options {
            queue: *[4, 4_096, 4_096].choose(rng).expect("some"),
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
            nodes,
            agents: rng.random_range(2..=AGENTS.len()),
            projects: rng.random_range(1..=PROJECTS.len()),
            steps: rng.random_range(60..=180),
            rates,
            settings,
            options,
            lost_reply: rate(rng, 0.1),
            vanish: rate(rng, 0.15),
            duplicate: rate(rng, 0.2),
            without_id: rate(rng, 0.3),
            restart: rate(rng, 0.03),
            clock: rate(rng, 0.06),
            clock_jump: *[2, 60, 3_600].choose(rng).expect("some"),
            storm: rate(rng, 0.03),
            observed: rng.random_bool(0.5),
            blackout: rate(rng, 0.05),
        }
    }
}

/// A node between two crashes.
#[derive(Debug)]
pub struct Node {
    label: String,
    /// Cancelled when it crashes.
    dead: CancellationToken,
    /// What runs on it.
    pub service: Coordination,
}

#[derive(Debug)]
struct Slot {
    clock: Arc<SimClock>,
    node: Mutex<Arc<Node>>,
    generation: Mutex<u32>,
}

/// One run.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    trace: Arc<Trace>,
    store: Arc<Store>,
    slots: Vec<Slot>,
    memories: Mutex<BTreeMap<(usize, usize), Memory>>,
    receipts: Mutex<Receipts>,
    shadows: Mutex<BTreeMap<Name, Shadow>>,
    audits: Mutex<u64>,
    /// The calls that have not ended, with their copies.
    open: Mutex<BTreeMap<u64, u32>>,
}

/// What became of one attempt at a call.
#[derive(Debug)]
enum Attempt {
    /// The service answered.
    Answered(Result<Value, CoordinationError>),
    /// The client does not know; this is why, for the trace.
    Lost(#[expect(dead_code, reason = "shown by Debug")] &'static str),
}

/// What all attempts at one call have in common, also those made at the same time.
#[derive(Debug, Default)]
struct Fate {
    /// How many clients make it at the same time.
    copies: u32,
    /// Some attempt may have had an effect without an acknowledgement.
    unclear: bool,
    /// Some attempt was acknowledged.
    acknowledged: bool,
}

/// What a run was like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Tells two runs apart that differ in any line of their traces.
    pub digest: u64,
    /// How many entries were written.
    pub entries: u64,
    /// How often a node's state was compared with the journal.
    pub audits: u64,
    /// How many appends lost a race.
    pub conflicts: u64,
    /// How many deliveries targets were asked for.
    pub deliveries: u64,
}

/// Runs `seed`: on one node if it is even, on three if it is odd.
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
        let plan = Plan::draw(&mut rng, if seed.is_multiple_of(2) { 1 } else { 3 });
        let trace = Arc::new(Trace::new(shown));
        trace.note(format_args!("seed {seed}: {plan:?}"));
        let world = World::new(plan, trace, rng.random());
        for slot in 0..world.slots.len() {
            world.follow_all(slot);
        }
        world.clone().live(&mut rng).await;
        world.heal_and_settle(&mut rng).await;
        world.summary()
    })
}

impl World {
    fn new(plan: Plan, trace: Arc<Trace>, fault_seed: u64) -> Arc<Self> {
        let sharing = if plan.nodes == 1 { Sharing::Exclusive } else { Sharing::Shared };
        let store = Arc::new(Store::new(sharing, Faults::random(fault_seed, plan.rates), trace.clone()));
        let began = Instant::now();
        let slots = (0..plan.nodes)
            .map(|slot| {
                let clock = Arc::new(SimClock::new(began));
                let node = start(&plan, &store, &clock, format!("n{slot}.0"));
                Slot { clock, node: Mutex::new(Arc::new(node)), generation: Mutex::default() }
            })
            .collect();
        Arc::new(Self {
            plan,
            trace,
            store,
            slots,
            memories: Mutex::default(),
            receipts: Mutex::default(),
            shadows: Mutex::default(),
            audits: Mutex::default(),
            open: Mutex::default(),
        })
    }

    fn projects(&self) -> impl Iterator<Item = (usize, Name)> + use<> {
        PROJECTS[..self.plan.projects].iter().map(|project| name(project)).enumerate()
    }

    fn agents(&self) -> &'static [&'static str] {
        &AGENTS[..self.plan.agents]
    }

    fn node(&self, slot: usize) -> Arc<Node> {
        lock(&self.slots[slot].node).clone()
    }

    /// What the trace and the books say so far.
    fn summary(&self) -> Summary {
        let entries =
            self.projects().map(|(_, project)| self.store.head(&Coordination::stream(&project))).sum();
        let conflicts = (0..self.slots.len())
            .map(|slot| self.node(slot))
            .map(|node| node.service.exchange().stats().conflicts.load(std::sync::atomic::Ordering::Relaxed));
        Summary {
            digest: self.trace.digest(),
            entries,
            audits: *lock(&self.audits),
            conflicts: conflicts.sum(),
            deliveries: 0,
        }
    }

    fn check(&self) {
        let broken = self.store.broken();
        assert!(broken.is_empty(), "{}\n\nThe latest lines:\n{}", broken.join("\n"), self.trace.latest());
    }

    fn broken(&self, rule: String) {
        self.store.note_broken(rule);
    }

    // ---- while things go wrong -----------------------------------------------------------------------------------

    async fn live(self: Arc<Self>, rng: &mut StdRng) {
        let mut calls: Vec<JoinHandle<()>> = Vec::new();
        let mut audit: Option<JoinHandle<()>> = None;
        let mut number = 0;
        for step in 0..self.plan.steps {
            self.trouble(rng);
            number += 1;
            if let Some(call) = self.next_call(rng, number, step) {
                calls.extend(self.begin(rng, call));
            }
            calls.retain(|call| !call.is_finished());
            sleep(pause(rng)).await;
            if audit.as_ref().is_none_or(JoinHandle::is_finished) {
                let slot = rng.random_range(0..self.slots.len());
                audit = Some(tokio::spawn(self.clone().audit_all(slot)));
            }
            self.check();
        }
        self.trace.note(format_args!("faults stop"));
        self.store.heal();
        for slot in &self.slots {
            slot.clock.set_standing(false);
        }
        for call in calls.into_iter().chain(audit) {
            let ended = timeout(Duration::from_mins(10), call).await;
            let Ok(ended) = ended else {
                let open = lock(&self.open);
                panic!("every waiting call ends: {open:?} do not\n{}", self.trace.latest());
            };
            ended.expect("a call does not panic");
            self.check();
        }
        // What is being stopped has ended by then.
        sleep(Duration::from_secs(30)).await;
    }

    /// What goes wrong beside the journal.
    fn trouble(self: &Arc<Self>, rng: &mut StdRng) {
        let slot = rng.random_range(0..self.slots.len());
        if rng.random_bool(self.plan.restart) {
            let node = self.node(slot);
            if rng.random_bool(0.5) {
                self.trace.note(format_args!("{} is killed", node.label));
                node.dead.cancel();
            } else {
                self.stop(node);
            }
        }
        if rng.random_bool(self.plan.blackout) {
            self.black_out(rng);
        }
        if rng.random_bool(self.plan.clock) {
            let clock = &self.slots[slot].clock;
            if rng.random_bool(0.3) {
                self.trace.note(format_args!("the clock of n{slot} stands still, or runs again"));
                clock.set_standing(rng.random_bool(0.5));
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
        for (index, slot) in self.slots.iter().enumerate() {
            let died = lock(&slot.node).dead.is_cancelled();
            if died && rng.random_bool(0.5) {
                self.restart(index);
            }
        }
    }

    /// Lets a node end in good order, as far as it can.
    fn stop(&self, node: Arc<Node>) {
        self.trace.note(format_args!("{} is stopped", node.label));
        tokio::spawn(async move {
            let _ = timeout(Duration::from_secs(20), node.service.exchange().stop()).await;
            node.dead.cancel();
        });
    }

    fn black_out(self: &Arc<Self>, rng: &mut StdRng) {
        self.trace.note(format_args!("nothing can be read"));
        self.store.set_blind(true);
        let until_stop = Duration::from_millis(rng.random_range(0..1_500));
        let stops = rng.random_bool(0.5).then(|| rng.random_range(0..self.slots.len()));
        let until_end = Duration::from_millis(rng.random_range(0..2_000));
        let world = self.clone();
        tokio::spawn(async move {
            sleep(until_stop).await;
            if let Some(slot) = stops.filter(|_| !world.store.is_healed()) {
                world.stop(world.node(slot));
            }
            sleep(until_end).await;
            world.store.set_blind(false);
        });
    }

    /// Starts a new node in the place of one that crashed.
    fn restart(self: &Arc<Self>, slot: usize) {
        let generation = {
            let mut generation = lock(&self.slots[slot].generation);
            *generation += 1;
            *generation
        };
        let label = format!("n{slot}.{generation}");
        self.trace.note(format_args!("{label} starts"));
        let node = start(&self.plan, &self.store, &self.slots[slot].clock, label);
        *lock(&self.slots[slot].node) = Arc::new(node);
        self.follow_all(slot);
    }

    fn next_call(&self, rng: &mut StdRng, number: u64, step: usize) -> Option<Call> {
        let project = rng.random_range(0..self.plan.projects);
        // Everybody registers before anything else.
        let agent = if step < self.plan.agents { step } else { rng.random_range(0..self.plan.agents) };
        let session = self.agents()[agent];
        let wish = if step < self.plan.agents {
            Wish::Register
        } else {
            let mut memories = lock(&self.memories);
            memories.entry((project, agent)).or_default().wish(rng, session, self.agents())
        };
        let (_, project) = self.projects().nth(project)?;
        let with_id = !rng.random_bool(self.plan.without_id);
        let id = with_id.then(|| CommandId::new(format!("c{number}")).expect("an id"));
        Some(Call { number, project, session: name(session), wish, id })
    }

    fn begin(self: &Arc<Self>, rng: &mut StdRng, call: Call) -> Vec<JoinHandle<()>> {
        let copies = if call.id.is_some() && rng.random_bool(self.plan.duplicate) { 2 } else { 1 };
        let fate = Arc::new(Mutex::new(Fate { copies, ..Fate::default() }));
        lock(&self.receipts).begun(&call, &Coordination::stream(&call.project));
        (0..copies)
            .map(|_| {
                let rng = StdRng::seed_from_u64(rng.random());
                *lock(&self.open).entry(call.number).or_default() += 1;
                let (world, call, fate) = (self.clone(), call.clone(), fate.clone());
                tokio::spawn(async move {
                    let number = call.number;
                    world.insist(rng, call, fate).await;
                    let mut open = lock(&world.open);
                    let copies = open.entry(number).or_default();
                    *copies -= 1;
                    if *copies == 0 {
                        open.remove(&number);
                    }
                })
            })
            .collect()
    }

    /// Makes a call until it is answered, as far as a careful client may.
    async fn insist(self: &Arc<Self>, mut rng: StdRng, call: Call, fate: Arc<Mutex<Fate>>) {
        // An agent mostly talks to the same node.
        let home = AGENTS.iter().position(|known| *known == call.session.as_str()).unwrap_or(0);
        for attempt in 0.. {
            sleep(Duration::from_millis(rng.random_range(0..3))).await;
            let slot = if rng.random_bool(0.7) { home } else { rng.random_range(0..3) } % self.slots.len();
            let node = self.node(slot);
            if node.dead.is_cancelled() {
                if attempt > 200 {
                    self.restart(slot);
                }
                sleep(Duration::from_millis(rng.random_range(20..200))).await;
                if self.store.is_healed() {
                    self.restart_the_dead();
                }
                continue;
            }
            let sole = {
                let fate = lock(&fate);
                fate.copies == 1 && !fate.unclear
            };
            match self.attempt(&mut rng, &call, &node, sole).await {
                Attempt::Answered(Ok(_)) => {
                    lock(&fate).acknowledged = true;
                    return;
                }
                Attempt::Answered(Err(CommandError::Rejected(_))) => return,
                Attempt::Answered(Err(CommandError::Unknown(_))) | Attempt::Lost(_) => {
                    lock(&fate).unclear = true;
                    // Without an id, repeating the call might do it twice.
                    let letters = call.wish.takes_letters().is_some();
                    if call.id.is_none() || (!letters && rng.random_bool(0.1)) {
                        lock(&self.receipts).gave_up(&call);
                        return;
                    }
                }
                // Nothing happened: anybody may call again.
                Attempt::Answered(Err(_)) => {
                    if call.id.is_none() && rng.random_bool(0.3) {
                        let fate = lock(&fate);
                        if !fate.unclear && !fate.acknowledged {
                            lock(&self.receipts).refused(&call);
                        }
                        return;
                    }
                }
            }
            sleep(Duration::from_millis(rng.random_range(5..500))).await;
        }
    }

    fn restart_the_dead(self: &Arc<Self>) {
        for slot in 0..self.slots.len() {
            if self.node(slot).dead.is_cancelled() {
                self.restart(slot);
            }
        }
    }

    async fn attempt(&self, rng: &mut StdRng, call: &Call, node: &Node, sole: bool) -> Attempt {
        let stream = Coordination::stream(&call.project);
        let healed = self.store.is_healed();
        let leaves = (!healed && rng.random_bool(self.plan.vanish))
            .then(|| Duration::from_millis(rng.random_range(0..8_000)));
        let loses = !healed && rng.random_bool(self.plan.lost_reply);
        let began_at = self.store.head(&stream);
        let first = call
            .id
            .as_ref()
            .and_then(|id| self.store.ledger(&stream, |ledger| ledger.first_reply(&id.to_string()).cloned()));
        self.trace
            .note(format_args!("{} calls {} #{}: {:?}", call.session, node.label, call.number, call.wish));
        let attempt = tokio::select! {
            biased;
            answer = call.make(&node.service) => Attempt::Answered(answer),
            () = node.dead.cancelled() => Attempt::Lost("the node crashed"),
            () = leave(leaves) => Attempt::Lost("the caller left"),
        };
        self.trace.note(format_args!("{} #{}: {attempt:?}", call.session, call.number));
        if let Attempt::Answered(answer) = &attempt {
            let broken = self.store.ledger(&stream, |ledger| {
                crate::checks::answer_is_right(call, answer, first.as_ref(), sole, ledger, began_at)
            });
            if let Err(rule) = broken {
                self.broken(format!("{rule} ({call:?})"));
            }
        }
        match attempt {
            Attempt::Answered(Ok(reply)) if !loses => {
                self.receive(call, &reply);
                Attempt::Answered(Ok(reply))
            }
            Attempt::Answered(Ok(_)) => Attempt::Lost("the reply was lost"),
            Attempt::Answered(Err(CommandError::Rejected(rejection))) => {
                if matches!(rejection, switchboard_coordination::Rejection::NotRegistered { .. }) {
                    self.memory(call, |memory| memory.must_register = true);
                }
                Attempt::Answered(Err(CommandError::Rejected(rejection)))
            }
            other => other,
        }
    }

    fn memory<T>(&self, call: &Call, use_it: impl FnOnce(&mut Memory) -> T) -> T {
        let project = PROJECTS.iter().position(|known| *known == call.project.as_str()).unwrap_or(0);
        let agent = AGENTS.iter().position(|known| *known == call.session.as_str()).unwrap_or(0);
        use_it(lock(&self.memories).entry((project, agent)).or_default())
    }

    fn receive(&self, call: &Call, reply: &Value) {
        self.memory(call, |memory| memory.learn(call, reply));
        let received = lock(&self.receipts).received(call, reply);
        if let Err(rule) = received {
            self.broken(format!("{rule} ({call:?})"));
        }
    }

    /// Watches every project on a node, for as long as it lives.
    fn follow_all(self: &Arc<Self>, slot: usize) {
        for (_, project) in self.projects() {
            let (world, node) = (self.clone(), self.node(slot));
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = node.dead.cancelled() => {}
                    () = world.follow(&node, &project) => {}
                    () = world.wait_for_ever(&node, &project) => {}
                }
            });
        }
    }

    /// A watcher misses no entry and gets none twice, whatever happens to its connection.
    async fn follow(&self, node: &Node, project: &Name) {
        let stream = Coordination::stream(project);
        let mut after = Seq::START;
        loop {
            if let Ok(mut entries) = node.service.exchange().watch(&stream, after).await {
                while let Some(entry) = entries.next().await {
                    match entry {
                        Ok(entry) => {
                            let written = self.store.entry(&stream, entry.seq.get());
                            if entry.seq != after.next() || written.as_ref() != Some(&entry.payload) {
                                self.broken(format!(
                                    "a watcher sees what is written: {entry:?} after {after}"
                                ));
                            }
                            after = entry.seq;
                        }
                        Err(ReadError::Trimmed { trimmed, .. }) => after = trimmed,
                        Err(ReadError::Unavailable(_)) => {}
                    }
                }
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Whoever waits for a condition sees only states that the journal holds, each after the one it saw before.
    async fn wait_for_ever(&self, node: &Node, project: &Name) {
        let stream = Coordination::stream(project);
        let shadow = Arc::new(Mutex::new(Shadow::<Project>::new(&self.plan.settings)));
        if !self.plan.observed {
            return std::future::pending().await;
        }
        loop {
            let from = self.store.head(&stream);
            let (store, of, shadow) = (self.store.clone(), stream.clone(), shadow.clone());
            let sees = move |project: &Project| {
                let state = serde_json::to_string(project).expect("a state is JSON");
                let head = store.head(&of);
                let seen = lock(&shadow)
                    .equals_live_state(&state, from, head, |seq| store.entry(&of, seq).expect("an entry"));
                seen.err()
            };
            if let Ok(rule) = node.service.exchange().wait_for(&stream, sees).await {
                self.broken(format!("who waits sees what is durable: {rule} ({project} of {})", node.label));
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    // ---- at every step -------------------------------------------------------------------------------------------

    async fn audit_all(self: Arc<Self>, slot: usize) {
        for (_, project) in self.projects() {
            let node = self.node(slot);
            tokio::select! {
                biased;
                () = self.audit(&node, &project) => {}
                () = node.dead.cancelled() => {}
            }
        }
    }

    /// Compares what a node says with what the journal says. Answers nothing if the node cannot say.
    async fn audit(&self, node: &Node, project: &Name) {
        if let Err(rule) = self.replayed_state_equals_live_state(node, project).await {
            self.broken(format!("{rule} ({} of {})", project, node.label));
        }
        if let Err(rule) = self.locks_are_those_of_the_journal(node, project).await {
            self.broken(format!("{rule} ({} of {})", project, node.label));
        }
    }

    async fn replayed_state_equals_live_state(&self, node: &Node, project: &Name) -> Result<(), String> {
        let stream = Coordination::stream(project);
        let from = self.store.head(&stream);
        let (store, of) = (self.store.clone(), stream.clone());
        let look = move |project: &Project| {
            let state = serde_json::to_string(project).expect("a state is JSON");
            (state, store.head(&of))
        };
        let Ok((live, to)) = node.service.exchange().look(&stream, look).await else { return Ok(()) };
        // Alone, a node knows all that is written. Among others, all that was written when it was asked.
        let from = if self.plan.nodes == 1 { to } else { from };
        *lock(&self.audits) += 1;
        self.store.ledger(&stream, |ledger| {
            if from == to && ledger.seq() == to {
                ledger.agrees_with(&serde_json::from_str(&live).expect("a state is JSON"))
            } else {
                Ok(())
            }
        })?;
        let mut shadows = lock(&self.shadows);
        let shadow = shadows.entry(project.clone()).or_insert_with(|| Shadow::new(&self.plan.settings));
        shadow.equals_live_state(&live, from, to, |seq| self.store.entry(&stream, seq).expect("an entry"))
    }

    async fn locks_are_those_of_the_journal(&self, node: &Node, project: &Name) -> Result<(), String> {
        let stream = Coordination::stream(project);
        let from = self.store.head(&stream);
        let list = switchboard_coordination::ListLocks { within: None };
        let Ok(locks) = node.service.send(project, list, None).await else { return Ok(()) };
        crate::checks::at_most_one_holder_per_path(&locks)?;
        self.store.ledger(&stream, |ledger| {
            crate::checks::locks_are_those_of_the_journal(&locks, ledger.held_between(from, ledger.seq()))
        })
    }

    // ---- once the faults have stopped ----------------------------------------------------------------------------

    async fn heal_and_settle(self: &Arc<Self>, rng: &mut StdRng) {
        self.restart_the_dead();
        let mut number = 1_000_000;
        for (index, project) in self.projects() {
            self.serve_the_line(&project, &mut number).await;
            self.hand_over_everything(index, &project, &mut number).await;
            self.check();
        }
        self.audit_every_node().await;
        // A node that knows nothing finds the same state.
        let slot = rng.random_range(0..self.slots.len());
        self.node(slot).dead.cancel();
        self.restart(slot);
        self.audit_every_node().await;
        self.deadlines_fire().await;
        self.audit_every_node().await;
        for (_, project) in self.projects() {
            let stream = Coordination::stream(&project);
            let end = self.store.ledger(&stream, |ledger| lock(&self.receipts).end(&stream, ledger));
            if let Err(rule) = end {
                self.broken(format!("{rule} ({project})"));
            }
        }
        self.check();
    }

    async fn audit_every_node(self: &Arc<Self>) {
        let before = *lock(&self.audits);
        for slot in 0..self.slots.len() {
            let audited = timeout(Duration::from_mins(5), self.clone().audit_all(slot)).await;
            assert!(audited.is_ok(), "a healthy node answers\n{}", self.trace.latest());
        }
        let expected = (self.slots.len() * self.plan.projects) as u64;
        assert_eq!(*lock(&self.audits) - before, expected, "a healthy node answers\n{}", self.trace.latest());
        self.check();
    }

    /// Makes a call that has no reason to fail but a rule.
    async fn call(self: &Arc<Self>, call: Call) -> Result<Value, CoordinationError> {
        let slot = usize::try_from(call.number).unwrap_or(0) % self.slots.len();
        let node = self.node(slot);
        let mut rng = StdRng::seed_from_u64(call.number);
        lock(&self.receipts).begun(&call, &Coordination::stream(&call.project));
        for _ in 0..100 {
            let made = timeout(Duration::from_mins(5), self.attempt(&mut rng, &call, &node, false)).await;
            match made {
                Ok(Attempt::Answered(answer @ (Ok(_) | Err(CommandError::Rejected(_))))) => {
                    self.check();
                    return answer;
                }
                Ok(other) => self.trace.note(format_args!("again, after {other:?}")),
                Err(elapsed) => panic!("every call ends: {call:?}, {elapsed}\n{}", self.trace.latest()),
            }
            sleep(Duration::from_secs(1)).await;
        }
        panic!("a healthy node answers: {call:?}\n{}", self.trace.latest())
    }

    fn settling_call(project: &Name, session: &str, wish: Wish, number: &mut u64) -> Call {
        *number += 1;
        let id = CommandId::new(format!("c{number}")).ok();
        Call { number: *number, project: project.clone(), session: name(session), wish, id }
    }

    /// Every holder gives back what it holds, until nobody waits any more. Whoever is served comes for its lock.
    async fn serve_the_line(self: &Arc<Self>, project: &Name, number: &mut u64) {
        let stream = Coordination::stream(project);
        for _ in 0..200 {
            let (registered, held, waiting) = self.store.ledger(&stream, |ledger| {
                let registered: Vec<String> = ledger.inboxes.keys().cloned().collect();
                (registered, ledger.held.clone(), ledger.line.len())
            });
            if held.is_empty() && waiting == 0 {
                return;
            }
            for session in registered {
                let _ = self.call(Self::settling_call(project, &session, Wish::Heartbeat, number)).await;
            }
            for (scope, hold) in held.iter() {
                if let Some(ticket) = hold.ticket.filter(|_| hold.unclaimed) {
                    let ticket = format!("ticket-{}", crate::ledger::stamp_text(ticket));
                    let _ = self
                        .call(Self::settling_call(project, &hold.session, Wish::Claim { ticket }, number))
                        .await;
                }
                let text = crate::scopes::SCOPES.iter().map(|(text, _)| *text);
                let text = text.filter(|text| crate::scopes::scope(text).as_str() == scope);
                for scope in text {
                    let wish = Wish::Release { scope, token: Some(hold.token) };
                    let _ = self.call(Self::settling_call(project, &hold.session, wish, number)).await;
                }
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("everybody in the line is served\n{}", self.trace.latest());
    }

    /// Everybody reads all letters and asks for all answers.
    async fn hand_over_everything(self: &Arc<Self>, index: usize, project: &Name, number: &mut u64) {
        for (agent, session) in self.agents().iter().enumerate() {
            let asked = lock(&self.memories).get(&(index, agent)).map(|memory| memory.asked.clone());
            for id in asked.into_iter().flatten() {
                let _ = self.call(Self::settling_call(project, session, Wish::Collect { id }, number)).await;
            }
            let _ = self.call(Self::settling_call(project, session, Wish::Take, number)).await;
        }
    }

    /// Nobody calls any more: all agents are taken for gone, and their locks with them.
    async fn deadlines_fire(&self) {
        // No clock of a run was ever further off than an hour, in either direction.
        for _ in 0..20 {
            sleep(Duration::from_mins(10)).await;
            let streams = self.projects().map(|(_, project)| Coordination::stream(&project));
            let left = |stream: &StreamId| {
                self.store
                    .ledger(stream, |ledger| ledger.inboxes.len() + ledger.held.len() + ledger.line.len())
            };
            if streams.map(|stream| left(&stream)).sum::<usize>() == 0 {
                return;
            }
            self.check();
        }
        panic!("deadlines fire: somebody is still here\n{}", self.trace.latest());
    }
}

fn start(plan: &Plan, store: &Arc<Store>, clock: &Arc<SimClock>, label: String) -> Node {
    let dead = CancellationToken::new();
    let journal = SimJournal::new(store.clone(), label.clone(), dead.clone());
    let exchange =
        Exchange::new(Arc::new(journal), clock.clone(), plan.settings.clone(), plan.options.clone());
    let service = Coordination::new(exchange, ServiceOptions { status_dir: None });
    Node { label, dead, service }
}

/// How long until the next call: mostly at once or soon, now and then long enough for something to be over.
fn pause(rng: &mut StdRng) -> Duration {
    match rng.random_range(0..100) {
        0..50 => Duration::ZERO,
        50..85 => Duration::from_millis(rng.random_range(1..30)),
        85..97 => Duration::from_millis(rng.random_range(100..5_000)),
        _ => Duration::from_secs(rng.random_range(5..90)),
    }
}

async fn leave(after: Option<Duration>) {
    match after {
        Some(after) => sleep(after).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
