//! Calls that wait: how their caller is kept informed, and how it withdraws.

use std::sync::Arc;

use switchboard_coordination::Patience;
use switchboard_exchange::SignedDuration;

use crate::Context;

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
