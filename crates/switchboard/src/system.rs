//! The parts of a server below its doors, wired together: journal, machines, tools.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use switchboard_access::Access;
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, ServiceOptions, Settings};
use switchboard_exchange::{Exchange, Options, SystemClock};
use switchboard_journal::{Journal, MemoryJournal, OpenError, Sharing, SqliteJournal, SqliteOptions};
use switchboard_schedule::{Schedules, Zone};
use switchboard_tools::{PromptYoSelf, Registry, Services};

use crate::config::{Config, JournalUrl};
use crate::failure::with_causes;
use crate::wake::{Wake, webhook_secret};
use crate::{Exit, Failure};

/// Everything that runs on a data directory. Nothing else does as long as this exists.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) access: Access,
    pub(crate) coordination: Coordination,
    pub(crate) bus: Bus,
    pub(crate) schedules: Schedules,
    pub(crate) zone: Zone,
    pub(crate) registry: Arc<Registry>,
    store: Store,
}

/// What has to be closed at the end.
#[derive(Debug)]
enum Store {
    Sqlite(Arc<SqliteJournal>),
    /// The directory is locked all the same: it holds what the commands find the server by.
    Memory(#[expect(dead_code, reason = "locked until it is dropped")] File),
}

impl System {
    /// Opens the journal in `data_dir` and everything that stands on it.
    pub(crate) async fn open(config: &Config, data_dir: &Path) -> Result<Self, Failure> {
        let (journal, store) = open_journal(config, data_dir)?;
        let secret = webhook_secret(data_dir)?;
        Self::over(config, journal, store, &secret).await
    }

    /// A system that keeps nothing, for whoever wants to see what there is.
    pub(crate) fn tools() -> Result<Arc<Registry>, Failure> {
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
        let config = Config::default();
        let (coordination, bus) = (coordination(&config, &journal), bus(&config, &journal));
        let wake = Wake::new(&config, &journal, &coordination, &bus, &[])?;
        registry(&config, &coordination, &bus, &wake)
    }

    async fn over(
        config: &Config,
        journal: Arc<dyn Journal>,
        store: Store,
        webhook_secret: &[u8],
    ) -> Result<Self, Failure> {
        let keys = Exchange::new(journal.clone(), Arc::new(SystemClock), (), Options::default());
        let access = Access::open(keys)
            .await
            .map_err(|error| Failure::failed(format!("the keys cannot be read: {}", with_causes(&error))))?;
        let coordination = coordination(config, &journal);
        let bus = bus(config, &journal);
        let wake = Wake::new(config, &journal, &coordination, &bus, webhook_secret)?;
        let registry = registry(config, &coordination, &bus, &wake)?;
        // Also so that the bus knows where it is before anybody asks.
        bus.newest()
            .await
            .map_err(|error| Failure::failed(format!("the bus cannot be read: {}", with_causes(&error))))?;
        bus.start();
        // Last, since it delivers at once what is due.
        wake.schedules.start().await.map_err(|error| {
            Failure::failed(format!("the schedules cannot be read: {}", with_causes(&error)))
        })?;
        let (schedules, zone) = (wake.schedules, wake.zone);
        Ok(Self { journal, access, coordination, bus, schedules, zone, registry, store })
    }

    /// Answers what waits, closes the journal and frees the directory. Nothing acknowledged depends on it.
    pub(crate) async fn stop(self, at_most: std::time::Duration) {
        let stopped = async {
            // First, since it calls the others.
            self.schedules.stop(at_most / 2).await;
            self.coordination.exchange().stop().await;
            self.bus.stop().await;
            self.access.stop().await;
        };
        if tokio::time::timeout(at_most, stopped).await.is_err() {
            tracing::warn!("not everything that was under way came to its end in time");
        }
        if let Store::Sqlite(journal) = &self.store
            && tokio::time::timeout(at_most, journal.close()).await.is_err()
        {
            tracing::warn!("the journal did not close in time");
        }
    }
}

fn coordination(config: &Config, journal: &Arc<dyn Journal>) -> Coordination {
    let settings = Settings {
        heartbeat_timeout: config.a2amcp.heartbeat_timeout.signed(),
        claim_window: config.a2amcp.claim_window.signed(),
        strict_rate_limits: config.a2amcp.strict_rate_limits,
        system_events: config.a2amcp.events,
        shared: journal.sharing() == Sharing::Shared,
    };
    let options = ServiceOptions { status_dir: Some(config.a2amcp.status_dir.clone()) };
    let exchange = Exchange::new(journal.clone(), Arc::new(SystemClock), settings, Options::default());
    Coordination::new(exchange, options)
}

fn bus(config: &Config, journal: &Arc<dyn Journal>) -> Bus {
    let retention = Retention {
        age: config.bus.retention.signed(),
        bytes: config.bus.max_bytes.bytes(),
        events: config.bus.max_events.into(),
    };
    Bus::new(journal.clone(), Arc::new(SystemClock), retention)
}

fn registry(
    config: &Config,
    coordination: &Coordination,
    bus: &Bus,
    wake: &Wake,
) -> Result<Arc<Registry>, Failure> {
    let for_tests = [switchboard_tools::echo(), (switchboard_server::CONFORMANCE, Vec::new())];
    let for_tests = config.test_toolset.then_some(for_tests);
    let options = crate::promptyoself::options(config);
    let promptyoself = PromptYoSelf::new(wake.schedules.clone(), wake.letta.clone(), options);
    let services = Services {
        coordination,
        bus,
        schedules: &wake.schedules,
        zone: &wake.zone,
        letta: &wake.letta,
        promptyoself: &promptyoself,
    };
    let registry = switchboard_tools::catalogue(services, for_tests.into_iter().flatten())
        .map_err(|error| Failure::failed(format!("the list of tools is wrong: {error}")))?;
    wake.tool_target.connect(&registry);
    Ok(registry)
}

fn open_journal(config: &Config, data_dir: &Path) -> Result<(Arc<dyn Journal>, Store), Failure> {
    match config.journal {
        JournalUrl::Sqlite => {
            let mut options = SqliteOptions::default();
            options.max_bytes = config.journal_max_bytes.map(crate::config::ByteSize::bytes);
            let journal = SqliteJournal::open(data_dir, &options).map_err(|error| not_opened(&error))?;
            let journal = Arc::new(journal);
            Ok((journal.clone(), Store::Sqlite(journal)))
        }
        JournalUrl::Memory => Ok((Arc::new(MemoryJournal::new()), Store::Memory(lock_directory(data_dir)?))),
    }
}

fn not_opened(error: &OpenError) -> Failure {
    let exit = if matches!(error, OpenError::InUse { .. }) { Exit::InUse } else { Exit::Failed };
    Failure::new(exit, with_causes(error))
}

/// Creates the directory for its owner alone, if it is missing.
pub(crate) fn create_directory(data_dir: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
        .map_err(|error| Failure::failed(format!("cannot create '{}': {error}", data_dir.display())))
}

/// Locks the directory as the SQLite journal does.
fn lock_directory(data_dir: &Path) -> Result<File, Failure> {
    create_directory(data_dir)?;
    let unusable = |error: std::io::Error| {
        Failure::failed(format!("the data directory '{}' cannot be used: {error}", data_dir.display()))
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut lock = options.open(data_dir.join("lock")).map_err(unusable)?;
    if lock.try_lock().is_err() {
        let mut holder = String::new();
        let _ = lock.read_to_string(&mut holder);
        let error = OpenError::InUse { dir: data_dir.to_owned(), holder: holder.trim().parse().ok() };
        return Err(not_opened(&error));
    }
    lock.set_len(0).and_then(|()| lock.rewind()).map_err(unusable)?;
    writeln!(lock, "{}", std::process::id()).map_err(unusable)?;
    Ok(lock)
}
