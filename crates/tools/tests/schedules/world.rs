//! What the tests share: a clock, targets that note what reaches them, and a server that comes and goes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use switchboard_access::Caller;
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, Project, ServiceOptions};
use switchboard_exchange::{Clock, Exchange, Options, SignedDuration, Timestamp};
use switchboard_journal::MemoryJournal;
use switchboard_schedule::{
    Delivery, Manners, Message, NodeId, Outcome, Retry, Schedules, Settings, Target, Targets, Zone,
};
use switchboard_tools::{
    Context, Origin, Output, PromptYoSelf, PromptYoSelfOptions, Registry, Services, View, catalogue,
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

/// A target that takes what it is told, and notes it as `write` says.
struct Recorder {
    kind: &'static str,
    manners: Manners,
    write: Box<dyn Fn(&Delivery) -> String + Send + Sync>,
    told: Mutex<Vec<String>>,
}

impl Recorder {
    /// Letta's agents, each of whom is told one thing at a time.
    fn agents() -> Self {
        Self {
            kind: "letta",
            manners: Manners {
                ordered: true,
                at_once: 8,
                per_group: 1,
                batch: 1,
                timeout: Duration::from_secs(950),
                retry: Retry { first_ms: 60_000, factor: 1, max_ms: 60_000, attempts: None },
            },
            write: Box::new(|told| format!("{}: {}", told.address.to, told.message.as_str())),
            told: Mutex::default(),
        }
    }

    /// Topics, on which it is noted when an event came.
    fn topics(clock: Arc<RuntimeClock>) -> Self {
        Self {
            kind: "topic",
            manners: Manners {
                ordered: false,
                at_once: 4,
                per_group: 4,
                batch: 256,
                timeout: Duration::from_secs(30),
                retry: Retry { first_ms: 200, factor: 2, max_ms: 60_000, attempts: None },
            },
            write: Box::new(move |told| {
                format!("{} {} on {}", to_the_second(clock.now()), told.name, told.address.to)
            }),
            told: Mutex::default(),
        }
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

/// A handle on a recorder, as the schedules call it.
struct Recording(Arc<Recorder>);

impl Target for Recording {
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    fn manners(&self) -> Manners {
        self.0.manners.clone()
    }

    fn check(&self, _: &str, _: &Message) -> Result<(), String> {
        Ok(())
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        self.0.told.lock().unwrap().extend(deliveries.iter().map(&self.0.write));
        std::future::ready(deliveries.iter().map(|_| Outcome::delivered()).collect()).boxed()
    }
}

/// What outlives a server.
pub(crate) struct World {
    clock: Arc<RuntimeClock>,
    zone: Zone,
    journal: Arc<MemoryJournal>,
    agents: Arc<Recorder>,
    topics: Arc<Recorder>,
}

/// A server that delivers events when they are due, and prompts when it is asked to.
pub(crate) struct Server {
    schedules: Schedules,
    pub(crate) registry: Arc<Registry>,
}

impl World {
    /// In which it is `time`, and the server's clock shows UTC.
    pub(crate) fn at(time: &str) -> Self {
        let clock = Arc::new(RuntimeClock { begun: Instant::now(), at: time.parse().unwrap() });
        Self {
            zone: Zone::UTC,
            journal: Arc::default(),
            agents: Arc::new(Recorder::agents()),
            topics: Arc::new(Recorder::topics(clock.clone())),
            clock,
        }
    }

    /// The same where the server's clock shows the time of `zone`.
    pub(crate) fn in_zone(self, zone: &str) -> Self {
        Self { zone: Zone::named(zone).unwrap(), ..self }
    }

    /// What agents were told, as `agent: prompt`.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.agents.told()
    }

    /// What was published, as `time task on topic`.
    pub(crate) fn events(&self) -> Vec<String> {
        self.topics.told()
    }

    pub(crate) async fn start(&self) -> Server {
        self.start_with(PromptYoSelfOptions::default()).await
    }

    pub(crate) async fn start_with(&self, options: PromptYoSelfOptions) -> Server {
        let (journal, clock) = (&self.journal, &self.clock);
        let recorders = [&self.agents, &self.topics].map(Arc::clone);
        let targets = Targets::new(recorders.map(|one| Arc::new(Recording(one)) as Arc<dyn Target>));
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
            zone: &self.zone,
            letta: &letta,
            promptyoself: &promptyoself,
        };
        let registry = catalogue(services, []).unwrap();
        Server { schedules, registry }
    }
}

impl Server {
    /// Calls a tool as somebody on this machine.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Output {
        self.call_from(Origin::default(), tool, arguments).await
    }

    pub(crate) async fn call_from(&self, origin: Origin, tool: &str, arguments: Value) -> Output {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let context = Context { origin, ..Context::new(Caller::local()) };
        let output = self.registry.call(&View::ALL, tool, arguments, context).await.unwrap();
        assert!(!output.is_error, "{}", output.text);
        output
    }

    pub(crate) async fn stop(self) {
        self.schedules.stop(Duration::from_secs(1)).await;
    }
}

pub(crate) async fn pass_time(minutes: u64) {
    tokio::time::sleep(Duration::from_mins(minutes)).await;
}

/// `at` without what there is of a second.
pub(crate) fn to_the_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}
