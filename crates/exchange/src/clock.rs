//! Where time comes from.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;

/// The only source of time for an exchange. Tests and the simulation bring their own.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// The time of day, in whole microseconds. May jump in either direction.
    fn now(&self) -> Timestamp;

    /// Resolves when `now()` has probably reached `deadline`. Waking early is harmless, the caller looks again.
    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()>;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The longest time without a look at the clock, so that a jump of the time of day is noticed.
    const LONGEST_SLEEP: Duration = Duration::from_secs(30);
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes in")]
        let now = Timestamp::now();
        // Journalled times are whole microseconds: enough to tell two calls apart, and they read well.
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let remaining = deadline.duration_since(self.now());
        // Rounded up to the timer's resolution, else the last millisecond is spent in a loop of early wake-ups.
        let wait = Duration::try_from(remaining).unwrap_or(Duration::ZERO) + Duration::from_millis(1);
        #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes in")]
        tokio::time::sleep(wait.min(Self::LONGEST_SLEEP)).boxed()
    }
}
