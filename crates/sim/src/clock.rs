//! Time that passes only when nothing else is left to do, and clocks that are wrong about it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use switchboard_exchange::Clock;
use tokio::time::Instant;

/// A node's clock: the runtime's virtual time, moved by an offset that may jump, or standing still.
#[derive(Debug)]
pub struct SimClock {
    began: Instant,
    fault: Mutex<Wrong>,
}

#[derive(Debug, Default)]
struct Wrong {
    offset: SignedDuration,
    stands_at: Option<Timestamp>,
}

impl SimClock {
    /// The longest time without a look at the clock, as of the system's clock.
    const LONGEST_SLEEP: Duration = Duration::from_secs(30);

    /// A clock that is right. All clocks of a run share `began`.
    pub fn new(began: Instant) -> Self {
        Self { began, fault: Mutex::default() }
    }

    /// Puts the clock so far before or behind the true time; it runs on from there.
    pub fn set_offset(&self, offset: SignedDuration) {
        let mut wrong = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        *wrong = Wrong { offset, stands_at: None };
    }

    /// How far it is from the true time.
    pub fn offset(&self) -> SignedDuration {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).offset
    }

    /// Lets the clock stand still, or run again; then it is where it would have been.
    pub fn set_standing(&self, stands: bool) {
        let now = self.now();
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).stands_at = stands.then_some(now);
    }

    fn epoch() -> Timestamp {
        Timestamp::constant(1_800_000_000, 0)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = Instant::now().duration_since(self.began).as_micros();
        let elapsed =
            SignedDuration::from_micros(i64::try_from(elapsed).expect("a run is shorter than an age"));
        let wrong = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.stands_at.unwrap_or_else(|| Self::epoch() + elapsed + wrong.offset)
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let remaining = deadline.duration_since(self.now());
        // Virtual time is in whole milliseconds and so are all deadlines: what is due is done at once.
        let wait = Duration::try_from(remaining).unwrap_or(Duration::ZERO);
        tokio::time::sleep(wait.min(Self::LONGEST_SLEEP)).boxed()
    }
}
