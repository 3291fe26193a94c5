//! The parts of a server that deliveries go to, over a journal in memory.

use std::sync::Arc;

use serde_json::Value;
use switchboard_access::Caller;
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, Project, ServiceOptions};
use switchboard_exchange::{Exchange, Options, SystemClock};
use switchboard_journal::MemoryJournal;
use switchboard_letta::Letta;
use switchboard_schedule::{NodeId, Schedules, Targets, Zone};
use switchboard_tools::{Context, PromptYoSelf, PromptYoSelfOptions, Registry, Services, View, catalogue};

pub(crate) struct Server {
    pub(crate) bus: Bus,
    pub(crate) coordination: Coordination,
    pub(crate) registry: Arc<Registry>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let journal = Arc::new(MemoryJournal::new());
        let clock = Arc::new(SystemClock);
        let bus = Bus::new(journal.clone(), clock.clone(), Retention::default());
        let exchange = Exchange::new(
            journal.clone(),
            clock.clone(),
            switchboard_schedule::Settings::default(),
            Options::default(),
        );
        let schedules = Schedules::new(exchange, Targets::default(), NodeId("n".into()));
        let letta = Letta::new(switchboard_letta::Options::default()).unwrap();
        let exchange = Exchange::<Project>::new(
            journal,
            clock,
            switchboard_coordination::Settings::default(),
            Options::default(),
        );
        let coordination = Coordination::new(exchange, ServiceOptions { status_dir: None });
        let promptyoself =
            PromptYoSelf::new(schedules.clone(), letta.clone(), PromptYoSelfOptions::default());
        let services = Services {
            coordination: &coordination,
            bus: &bus,
            schedules: &schedules,
            zone: &Zone::UTC,
            letta: &letta,
            promptyoself: &promptyoself,
        };
        let registry = catalogue(services, []).unwrap();
        Self { bus, coordination, registry }
    }

    /// Calls a tool as somebody at this machine.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let output =
            self.registry.call(&View::ALL, tool, arguments, Context::new(Caller::local())).await.unwrap();
        serde_json::from_str(&output.text).unwrap()
    }
}
