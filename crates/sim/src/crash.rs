//! One crash, at every write of a script in turn: what comes out is what comes out without a crash.
//!
//! A script is a list of calls, made one after another by clients that repeat a call whose reply they did not get. Time
//! stands still while a node is down, so that not even the times in the state may differ.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use switchboard_coordination::{Coordination, CoordinationError, Name, ServiceOptions, Settings};
use switchboard_exchange::{CommandError, CommandId, Exchange, Options};
use switchboard_journal::Sharing;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::calls::{Call, Memory, Wish, name};
use crate::clock::SimClock;
use crate::journal::{CrashAt, Faults, SimJournal, Store};
use crate::trace::Trace;
use crate::world::lock;

const AGENTS: [&str; 3] = ["ada", "bob", "cyd"];
const CALLS: u64 = 100;

/// What a script came to.
#[derive(Debug)]
struct Played {
    calls: Vec<Call>,
    answers: Vec<String>,
    state: String,
    writes: u64,
    entries: u64,
}

/// Draws a script from `seed` and plays it once without a crash, and once with a crash before and after each of its
/// writes. Answers with how many crashes there were.
///
/// # Panics
/// If any reply, or the state at the end, is not what it is without a crash.
pub fn crash_at_every_write(seed: u64, sharing: Sharing) -> u64 {
    let calm = play(seed, None, sharing, Faults::None);
    assert!(calm.writes > calm.entries, "a script is long enough for a snapshot");
    for write in 1..=calm.writes {
        for after in [false, true] {
            let at = CrashAt { write, after };
            let crashed = play(seed, Some(&calm.calls), sharing, Faults::Crash(at));
            for ((call, calm), crashed) in calm.calls.iter().zip(&calm.answers).zip(&crashed.answers) {
                // When an agent was last heard is not in the journal.
                let soft = matches!(call.wish, Wish::Heartbeat);
                assert!(soft || calm == crashed, "script {seed}, {at:?}: {call:?}\n{calm}\n{crashed}");
            }
            assert_eq!(calm.state, crashed.state, "script {seed}, {at:?}");
        }
    }
    2 * calm.writes
}

fn play(seed: u64, script: Option<&[Call]>, sharing: Sharing, faults: Faults) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    // The stage takes the time, so it must be set up where time is virtual.
    runtime.block_on(async { Stage::new(sharing, faults).play(seed, script).await })
}

struct Stage {
    store: Arc<Store>,
    clock: Arc<SimClock>,
    settings: Settings,
    trace: Arc<Trace>,
    node: Mutex<(Coordination, CancellationToken)>,
}

impl Stage {
    fn new(sharing: Sharing, faults: Faults) -> Arc<Self> {
        let trace = Arc::new(Trace::new(false));
        let store = Arc::new(Store::new(sharing, faults, trace.clone()));
        let clock = Arc::new(SimClock::new(Instant::now()));
        let settings = Settings {
            // A node that starts gives every agent a full period: then the times of leaving would differ.
            heartbeat_timeout: SignedDuration::from_hours(48),
            claim_window: SignedDuration::from_secs(5),
            system_events: true,
            shared: sharing == Sharing::Shared,
            ..Settings::default()
        };
        let node = Mutex::new(start(&store, &clock, &settings));
        Arc::new(Self { store, clock, settings, trace, node })
    }

    async fn play(self: Arc<Self>, seed: u64, script: Option<&[Call]>) -> Played {
        let project = name("shop");
        tokio::spawn(self.clone().keep_running(project.clone()));
        let mut memories = AGENTS.map(|_| Memory::default());
        let mut played =
            Played { calls: Vec::new(), answers: Vec::new(), state: String::new(), writes: 0, entries: 0 };
        for number in 0..CALLS {
            let mut rng = StdRng::seed_from_u64(seed * 1_000 + number);
            let agent = usize::try_from(number).expect("a small number") % AGENTS.len();
            let call = match script {
                Some(script) => script[played.calls.len()].clone(),
                None => draw(&mut rng, number, agent, &memories[agent]),
            };
            let answer = self.make(&call).await;
            if let Ok(reply) = &answer {
                memories[agent].learn(&call, reply);
            }
            played.answers.push(format!("{answer:?}"));
            played.calls.push(call);
            sleep(Duration::from_millis(700)).await;
        }
        sleep(Duration::from_mins(10)).await;
        let stream = Coordination::stream(&project);
        let (service, _) = lock(&self.node).clone();
        let state = service.exchange().look(&stream, |project| serde_json::to_string(project).expect("JSON"));
        played.state = state.await.expect("a healthy node answers");
        let broken = self.store.broken();
        assert!(broken.is_empty(), "{}\n{}", broken.join("\n"), self.trace.latest());
        Played { writes: self.store.writes(), entries: self.store.head(&stream), ..played }
    }

    /// Makes a call until it is answered.
    async fn make(&self, call: &Call) -> Result<Value, CoordinationError> {
        loop {
            let (service, dead) = lock(&self.node).clone();
            let answer = tokio::select! {
                biased;
                answer = call.make(&service) => answer,
                () = dead.cancelled() => {
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            match answer {
                Ok(_) | Err(CommandError::Rejected(_)) => return answer,
                Err(error) => panic!("only a crash goes wrong here: {error}\n{}", self.trace.latest()),
            }
        }
    }

    /// Starts a new node as soon as one crashes, and has it serve the stream.
    async fn keep_running(self: Arc<Self>, project: Name) {
        loop {
            let (_, dead) = lock(&self.node).clone();
            dead.cancelled().await;
            let node = start(&self.store, &self.clock, &self.settings);
            *lock(&self.node) = node.clone();
            let stream = Coordination::stream(&project);
            tokio::spawn(async move { node.0.exchange().look(&stream, |_| ()).await });
        }
    }
}

fn start(
    store: &Arc<Store>,
    clock: &Arc<SimClock>,
    settings: &Settings,
) -> (Coordination, CancellationToken) {
    let dead = CancellationToken::new();
    let journal = SimJournal::new(store.clone(), "node", dead.clone());
    let options = Options {
        snapshot_every: 8,
        snapshot_bytes: 1 << 10,
        keep_entries: 2,
        reply_window: SignedDuration::from_hours(24),
        ..Options::default()
    };
    let exchange = Exchange::new(Arc::new(journal), clock.clone(), settings.clone(), options);
    (Coordination::new(exchange, ServiceOptions { status_dir: None }), dead)
}

fn draw(rng: &mut StdRng, number: u64, agent: usize, memory: &Memory) -> Call {
    let session = AGENTS[agent];
    let wish = if number < AGENTS.len() as u64 { Wish::Register } else { memory.wish(rng, session, &AGENTS) };
    // Nobody waits in a call: a crash ends the wait, and the answer goes another way.
    let wish = match wish {
        Wish::Ask { to, .. } => Wish::Ask { to, wait: None },
        Wish::Acquire { scope, ttl, in_line, .. } => Wish::Acquire { scope, ttl, in_line, wait: None },
        Wish::WaitForAnswer { id, .. } => Wish::Collect { id },
        Wish::WaitForLock { ticket, .. } => Wish::Claim { ticket },
        other => other,
    };
    let id = CommandId::new(format!("c{number}")).ok();
    Call { number, project: name("shop"), session: name(session), wish, id }
}
