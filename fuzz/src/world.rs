//! A server in memory whose time passes only while everybody waits.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use switchboard_access::{Access, Caller};
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, Project, ServiceOptions, Settings};
use switchboard_exchange::{Clock, Exchange, Options, SignedDuration, Timestamp};
use switchboard_journal::{Journal, MemoryJournal};
use switchboard_letta::Letta;
use switchboard_schedule::{NodeId, Schedules, Target, Targets, Zone};
use switchboard_targets::BusTarget;
use switchboard_tools::{Context, PromptYoSelf, PromptYoSelfOptions, Registry, Services, catalogue};
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The runtime's virtual time, as a time of day.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    began: Instant,
}

impl VirtualClock {
    const EPOCH: Timestamp = Timestamp::constant(1_795_244_220, 0);
    const LONGEST_SLEEP: Duration = Duration::from_hours(24 * 365);
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::MAX);
        let now = Self::EPOCH.checked_add(elapsed).unwrap_or(Timestamp::MAX);
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let remaining = deadline.duration_since(self.now());
        let wait = Duration::try_from(remaining).unwrap_or(Duration::ZERO) + Duration::from_millis(1);
        tokio::time::sleep(wait.min(Self::LONGEST_SLEEP)).boxed()
    }
}

/// A runtime of one thread, whose time is virtual.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime can be made")
}

/// The parts below the doors. To be made within a runtime.
pub(crate) struct World {
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) coordination: Coordination,
    pub(crate) bus: Bus,
    pub(crate) schedules: Schedules,
    pub(crate) registry: Arc<Registry>,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self::over(Arc::new(MemoryJournal::new()), options)
    }

    pub(crate) fn over(journal: Arc<MemoryJournal>, options: Options) -> Self {
        let coordination = coordination(&journal, options.clone());
        let bus = Bus::new(journal.clone(), clock(), Retention::default());
        let schedules = schedules(&journal, &bus, options);
        let letta = Letta::new(switchboard_letta::Options::default()).expect("the defaults are sound");
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
        let registry = catalogue(services, []).expect("the catalogue is sound");
        Self { journal, coordination, bus, schedules, registry }
    }

    /// The keys, as the journal has them.
    pub(crate) async fn access(&self) -> Option<Access> {
        let journal: Arc<dyn Journal> = self.journal.clone();
        Access::open(Exchange::new(journal, clock(), (), Options::default())).await.ok()
    }
}

pub(crate) fn clock() -> Arc<VirtualClock> {
    Arc::new(VirtualClock { began: Instant::now() })
}

pub(crate) fn coordination(journal: &Arc<MemoryJournal>, options: Options) -> Coordination {
    let settings = Settings { system_events: true, ..Settings::default() };
    let journal: Arc<dyn Journal> = journal.clone();
    let exchange: Exchange<Project> = Exchange::new(journal, clock(), settings, options);
    Coordination::new(exchange, ServiceOptions { status_dir: None })
}

/// Schedules that publish: nothing that an input makes can reach anything else. They deliver once they are started.
fn schedules(journal: &Arc<MemoryJournal>, bus: &Bus, options: Options) -> Schedules {
    let publishes: Arc<dyn Target> = Arc::new(BusTarget::new(bus.clone()));
    let targets = Targets::new([publishes]);
    let settings = switchboard_schedule::Settings::of(&targets, &[]);
    let exchange = Exchange::new(journal.clone(), clock(), settings, options);
    Schedules::new(exchange, targets, NodeId("fuzz".into()))
}

pub(crate) fn context() -> Context {
    Context::new(Caller::local())
}

/// How many inputs a world sees before it makes room for the next.
const INPUTS_PER_WORLD: u32 = 400;

/// Something that is costly to make, so that many inputs share it; each input gets a project of its own.
pub(crate) struct Shared<T> {
    inner: RefCell<Inner<T>>,
}

struct Inner<T> {
    inputs: u32,
    /// The value, and before it the runtime that all of its tasks end with.
    made: Option<(T, Runtime)>,
}

impl<T> Shared<T> {
    pub(crate) fn new() -> Self {
        Self { inner: RefCell::new(Inner { inputs: 0, made: None }) }
    }

    /// Runs `task` with the value, made by `make` if need be, and the name of a project that no other input uses.
    pub(crate) fn run(&self, make: impl AsyncFn() -> T, task: impl AsyncFn(&mut T, &str)) {
        let Inner { inputs, made } = &mut *self.inner.borrow_mut();
        if inputs.is_multiple_of(INPUTS_PER_WORLD) {
            *made = None;
        }
        *inputs += 1;
        let (value, runtime) = made.get_or_insert_with(|| {
            let runtime = runtime();
            (runtime.block_on(make()), runtime)
        });
        runtime.block_on(task(value, &format!("P{inputs:06}")));
    }
}

/// Inputs name their project so; it is replaced by a name that is as long.
pub(crate) const PROJECT: &str = "PROJECT";
