//! The clock of one node between two crashes.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use switchboard_exchange::Clock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::SimClock;
use crate::world::lock;

/// How often a node may look at its clock before any time passes.
const MOST_LOOKS: u64 = 50_000;

/// The clock of a machine, as the process on it sees it: a process that crashed is woken no more.
#[derive(Debug)]
pub struct NodeClock {
    clock: Arc<SimClock>,
    dead: CancellationToken,
    latest_ms: AtomicI64,
    looks: AtomicU64,
    looked_at: Mutex<Option<Instant>>,
    spins: AtomicBool,
}

impl NodeClock {
    /// A process that sees `clock` until it is `dead`.
    pub fn new(clock: Arc<SimClock>, dead: CancellationToken) -> Self {
        Self {
            clock,
            dead,
            latest_ms: AtomicI64::new(i64::MIN),
            looks: AtomicU64::new(0),
            looked_at: Mutex::default(),
            spins: AtomicBool::new(false),
        }
    }

    /// The latest time that the process may have seen, in milliseconds since 1970, also before the clock was put back.
    pub fn latest_ms(&self) -> i64 {
        self.now().as_millisecond().max(self.latest_ms.load(Relaxed))
    }

    /// Notes what the clock says before it is changed.
    pub fn mark(&self) {
        self.latest_ms.fetch_max(self.clock.now().as_millisecond(), Relaxed);
    }

    /// Whether the process ever ran in circles, without any time passing.
    pub fn spins(&self) -> bool {
        self.spins.load(Relaxed)
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        let instant = Instant::now();
        if lock(&self.looked_at).replace(instant) == Some(instant) {
            if self.looks.fetch_add(1, Relaxed) > MOST_LOOKS {
                self.spins.store(true, Relaxed);
                // Ends the task that does it, so that the run comes to where it is noticed.
                panic!("a node looks at its clock again and again");
            }
        } else {
            self.looks.store(0, Relaxed);
        }
        self.clock.now()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let (sleep, dead) = (self.clock.sleep_until(deadline), self.dead.clone());
        async move {
            sleep.await;
            if dead.is_cancelled() {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}
