//! PromptYoSelf's tools on a clock of the test's own: what takes minutes elsewhere.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use switchboard_access::Caller;
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, Project, ServiceOptions};
use switchboard_exchange::{Clock, Exchange, Options, SignedDuration, Timestamp};
use switchboard_journal::MemoryJournal;
use switchboard_schedule::{
    Delivery, Manners, Message, NodeId, Outcome, Retry, Schedules, Settings, Target, Targets, Zone,
};
use switchboard_tools::{
    Context, DefaultAgents, Origin, PromptYoSelf, PromptYoSelfOptions, Registry, Services, Variables, View,
    catalogue,
};
use tokio::time::Instant;

/// The runtime's time, which passes only when nothing else is left to do.
#[derive(Debug)]
struct RuntimeClock {
    begun: Instant,
    at: Timestamp,
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        self.at + SignedDuration::try_from(self.begun.elapsed()).unwrap()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let wait = deadline.duration_since(self.now()).max(SignedDuration::ZERO);
        tokio::time::sleep(wait.unsigned_abs()).boxed()
    }
}

/// Letta's agents, who take what they are told.
#[derive(Debug, Clone, Default)]
struct Agents {
    told: Arc<Mutex<Vec<String>>>,
}

impl Agents {
    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

impl Target for Agents {
    fn kind(&self) -> &'static str {
        "letta"
    }

    fn manners(&self) -> Manners {
        Manners {
            ordered: true,
            at_once: 8,
            per_group: 1,
            batch: 1,
            timeout: Duration::from_secs(950),
            retry: Retry { first_ms: 60_000, factor: 1, max_ms: 60_000, attempts: None },
        }
    }

    fn check(&self, _: &str, _: &Message) -> Result<(), String> {
        Ok(())
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        let mut told = self.told.lock().unwrap();
        told.extend(deliveries.iter().map(|one| format!("{}: {}", one.address.to, one.message.as_str())));
        std::future::ready(deliveries.iter().map(|_| Outcome::delivered()).collect()).boxed()
    }
}

/// What outlives a server.
struct World {
    clock: Arc<RuntimeClock>,
    journal: Arc<MemoryJournal>,
    agents: Agents,
}

/// A server whose executor is off.
struct Server {
    schedules: Schedules,
    registry: Arc<Registry>,
}

impl World {
    fn at(time: &str) -> Self {
        let clock = RuntimeClock { begun: Instant::now(), at: time.parse().unwrap() };
        Self { clock: Arc::new(clock), journal: Arc::default(), agents: Agents::default() }
    }

    async fn start(&self) -> Server {
        self.start_with(PromptYoSelfOptions::default()).await
    }

    async fn start_with(&self, options: PromptYoSelfOptions) -> Server {
        let (journal, clock) = (&self.journal, &self.clock);
        let targets = Targets::new([Arc::new(self.agents.clone()) as Arc<dyn Target>]);
        let settings = Settings::of(&targets, &["letta"]);
        let exchange = Exchange::new(journal.clone(), clock.clone(), settings, Options::default());
        let schedules = Schedules::new(exchange, targets, NodeId("n".into()));
        schedules.start().await.unwrap();

        let letta = switchboard_letta::Letta::new(switchboard_letta::Options::default()).unwrap();
        let promptyoself = PromptYoSelf::new(schedules.clone(), letta.clone(), options);
        let projects = Exchange::<Project>::new(
            journal.clone(),
            clock.clone(),
            switchboard_coordination::Settings::default(),
            Options::default(),
        );
        let services = Services {
            coordination: &Coordination::new(projects, ServiceOptions { status_dir: None }),
            bus: &Bus::new(journal.clone(), clock.clone(), Retention::default()),
            schedules: &schedules,
            zone: &Zone::UTC,
            letta: &letta,
            promptyoself: &promptyoself,
        };
        let registry = catalogue(services, []).unwrap();
        Server { schedules, registry }
    }
}

impl Server {
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_from(Origin::default(), tool, arguments).await
    }

    async fn call_from(&self, origin: Origin, tool: &str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let tool = format!("promptyoself_{tool}");
        let context = Context { origin, ..Context::new(Caller::local()) };
        let answer = self.registry.call(&View::ALL, &tool, arguments, context).await;
        answer.unwrap().structured.unwrap()
    }

    async fn every(&self, every: &str) -> Value {
        let wish = json!({"agent_id": "a", "prompt": "p", "every": every, "skip_validation": true});
        self.call("schedule_every", wish).await
    }

    async fn stop(self) {
        self.schedules.stop(Duration::from_secs(1)).await;
    }
}

async fn pass_time(minutes: u64) {
    tokio::time::sleep(Duration::from_mins(minutes)).await;
}

/// An acceptance check of PromptYoSelf's contract.
#[tokio::test(start_paused = true)]
async fn check_19_what_was_missed_in_35_minutes_is_made_up_for_once() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    assert_eq!(server.every("10m").await["next_run"], "2025-01-02T09:10:00+00:00");
    server.stop().await;

    pass_time(35).await;
    let server = world.start().await;
    let passed = server.call("execute", json!({})).await;
    assert_eq!(passed["message"], "1 prompts executed");
    assert_eq!(passed["executed"][0]["repetition_count"], 1);
    assert_eq!(passed["executed"][0]["next_run"], "2025-01-02T09:40:00+00:00");
    assert_eq!(server.call("execute", json!({})).await["message"], "0 prompts executed");
    assert_eq!(world.agents.told(), ["a: p"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_late_stays_on_its_grid() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    server.every("10m").await;
    pass_time(14).await;
    let passed = server.call("execute", json!({})).await;
    assert_eq!(passed["executed"][0]["next_run"], "2025-01-02T09:20:00+00:00");
    // One that is due at the very moment is due.
    pass_time(6).await;
    let passed = server.call("execute", json!({})).await;
    assert_eq!(passed["executed"][0]["next_run"], "2025-01-02T09:30:00+00:00");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_once_is_delivered_however_late() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    let wish =
        json!({"agent_id": "a", "prompt": "p", "time": "2025-01-02 09:30 UTC", "skip_validation": true});
    server.call("schedule_time", wish).await;
    server.stop().await;
    pass_time(60 * 24 * 3).await;
    let server = world.start().await;
    let passed = server.call("execute", json!({})).await;
    assert_eq!(
        (&passed["executed"][0]["delivered"], &passed["executed"][0]["next_run"]),
        (&json!(true), &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn a_loop_passes_at_once_and_at_its_interval_until_it_is_withdrawn() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    server.every("1m").await;
    pass_time(1).await;
    let context = Context::new(Caller::local());
    let cancelled = context.cancelled.clone();
    let arguments = json!({"loop": true, "interval": "120"}).as_object().unwrap().clone();
    let registry = server.registry.clone();
    let looping = tokio::spawn(async move {
        registry.call(&View::ALL, "promptyoself_execute", arguments, context).await.unwrap().structured
    });
    // Passes at 9:01, 9:03 and 9:05.
    tokio::time::sleep(Duration::from_secs(250)).await;
    assert_eq!(world.agents.told().len(), 3);
    cancelled.cancel();
    let answer = looping.await.unwrap();
    assert_eq!(answer, Some(json!({"status": "success", "message": "Scheduler loop completed"})));
    pass_time(10).await;
    assert_eq!(world.agents.told().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn cron_is_in_utc_also_when_clocks_change() {
    let world = World::at("2025-03-29T09:00:00Z");
    let server = world.start().await;
    let wish = json!({"agent_id": "a", "prompt": "p", "cron": "0 9 * * MON-FRI", "skip_validation": true});
    // Strictly after now, and over a weekend on which clocks change in Europe.
    assert_eq!(server.call("schedule_cron", wish).await["next_run"], "2025-03-31T09:00:00+00:00");
}

#[tokio::test(start_paused = true)]
async fn what_one_call_schedules_another_lists_in_the_order_in_which_it_is_due() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    for every in ["30m", "10m", "20m", "10m"] {
        server.every(every).await;
    }
    let listed = server.call("list", json!({"agent_id": " A "})).await;
    assert_eq!(listed["count"], 0, "an agent's id is as it is written");
    let listed = server.call("list", json!({"agent_id": "NONE"})).await;
    let of = |key: &str| -> Vec<Value> {
        listed["schedules"].as_array().unwrap().iter().map(|schedule| schedule[key].clone()).collect()
    };
    assert_eq!(of("schedule_value"), ["10m", "10m", "20m", "30m"]);
    let ids: Vec<_> = of("id").iter().map(|id| id.as_u64().unwrap()).collect();
    assert!(ids[0] < ids[1], "{ids:?}");
    let keys = listed["schedules"][0].as_object().unwrap().len();
    assert_eq!(keys, 11);
}

/// Whose prompt it is where the client and the server have variables, such as `D=x L=y`: `D` is
/// `PROMPTYOSELF_DEFAULT_AGENT_ID`, `L` is `LETTA_AGENT_ID`, `X` is `LETTA_DEFAULT_AGENT_ID`.
async fn inferred(client: &str, server: &str) -> String {
    let of = |variables: &str, letter: &str| {
        let mut set = variables.split_whitespace().filter_map(|variable| variable.split_once('='));
        set.find(|(name, _)| *name == letter).map_or_else(String::new, |(_, agent)| agent.replace('_', " "))
    };
    let agents = DefaultAgents {
        promptyoself_default: of(server, "D"),
        letta: of(server, "L"),
        letta_default: of(server, "X"),
        single_agent_fallback: false,
    };
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start_with(PromptYoSelfOptions { agents, ..PromptYoSelfOptions::default() }).await;
    let mut variables = Variables::default();
    for (name, letter) in Variables::NAMES.into_iter().zip(["D", "L", "X"]) {
        variables.set(name, &of(client, letter));
    }
    let origin = Origin { variables, ..Origin::default() };
    let told = server.call_from(origin, "inference_diagnostics", json!({})).await;
    let set: String = Variables::NAMES
        .iter()
        .zip(["D", "L", "X"])
        .filter_map(|(name, letter)| told["env"][*name].as_bool().unwrap().then_some(letter))
        .collect();
    let debug = &told["inference_debug"];
    assert_eq!(debug["env_checked"], told["env"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!(
        "{} by {} {} of {set}",
        text(&told["inferred_agent_id"]),
        text(&debug["source"]),
        text(&debug["key"])
    )
}

#[tokio::test(start_paused = true)]
async fn all_variables_of_a_client_are_asked_before_those_of_the_server() {
    assert_eq!(inferred("", "").await, "- by - - of ");
    assert_eq!(inferred("", "L=s X=t").await, "s by env LETTA_AGENT_ID of LX");
    assert_eq!(inferred("X=c", "D=s").await, "c by env LETTA_DEFAULT_AGENT_ID of DX");
    assert_eq!(inferred("X=b L=c", "D=s L=t").await, "c by env LETTA_AGENT_ID of DLX");
    assert_eq!(inferred("L=b D=_c_", "").await, "c by env PROMPTYOSELF_DEFAULT_AGENT_ID of DL");
    assert_eq!(inferred("D=_", "X=s").await, "s by env LETTA_DEFAULT_AGENT_ID of X");
    let longest = "c".repeat(Variables::MAX_VALUE);
    assert_eq!(inferred(&format!("L={longest}"), "").await, format!("{longest} by env LETTA_AGENT_ID of L"));
    assert_eq!(inferred(&format!("L={longest}c"), "X=s").await, "s by env LETTA_DEFAULT_AGENT_ID of X");
}

#[tokio::test(start_paused = true)]
async fn what_is_set_by_a_tool_or_told_beside_a_call_beats_the_variables_of_the_client() {
    let server = World::at("2025-01-02T09:00:00Z").start().await;
    let mut origin = Origin::default();
    origin.variables.set("PROMPTYOSELF_DEFAULT_AGENT_ID", "c");
    let inferred = async |origin: &Origin| {
        server.call_from(origin.clone(), "inference_diagnostics", json!({})).await["inferred_agent_id"]
            .clone()
    };
    assert_eq!(inferred(&origin).await, "c");
    server.call("set_default_agent", json!({"agent_id": "y"})).await;
    assert_eq!(inferred(&origin).await, "y");
    origin.agent = Some("h".into());
    assert_eq!(inferred(&origin).await, "h");
}
