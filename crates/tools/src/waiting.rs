//! Calls that wait: how their caller is kept informed, and how it withdraws.

use std::pin::pin;
use std::sync::Arc;

use switchboard_coordination::Patience;
use switchboard_exchange::{Clock, SignedDuration, Timestamp};

use crate::Context;

/// The longest a call waits: several clients end a call that takes a minute.
pub(crate) const LONGEST_WAIT_SECONDS: i64 = 45;

/// How often a caller that waits hears that it still does.
const PROGRESS_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// Waits for `news` for at most `time`, telling the client `message` now and then. None if they did not come in time, or
/// the client withdrew.
pub(crate) async fn until<T>(
    context: &Context,
    clock: &dyn Clock,
    time: SignedDuration,
    message: &str,
    news: impl Future<Output = T>,
) -> Option<T> {
    let mut news = pin!(news);
    // Counted in pauses, not by the time of day: that may jump while somebody waits.
    let mut waited = SignedDuration::ZERO;
    while waited < time {
        let pause = PROGRESS_EVERY.min(time - waited);
        let now = clock.now();
        tokio::select! {
            biased;
            news = &mut news => return Some(news),
            () = context.cancelled.cancelled() => return None,
            () = clock.sleep_until(now.checked_add(pause).unwrap_or(Timestamp::MAX)) => {
                waited += pause;
                context.progress.report(waited.as_secs_f64(), Some(time.as_secs_f64()), message);
            }
        }
    }
    None
}

/// Waits for `time`, telling the client `message` now and then.
pub(crate) fn patience(context: &Context, time: SignedDuration, message: String) -> Patience {
    let progress = context.progress.clone();
    Patience {
        time,
        cancelled: context.cancelled.clone(),
        progress: Arc::new(move |waited, at_most| {
            progress.report(waited.as_secs_f64(), Some(at_most.as_secs_f64()), &message);
        }),
    }
}
