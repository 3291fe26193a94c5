//! Progress of a call on its way to the client that follows it: bounded, and never in the tool's way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use switchboard_tools::Progress;
use tokio::sync::Notify;

/// How many reports wait for a slow client; after that the newest replaces the one before it.
const WAITING: usize = 16;

/// How long the answer waits for the reports that came before it.
const FLUSH: Duration = Duration::from_millis(200);

struct Report {
    done: f64,
    total: Option<f64>,
    message: String,
}

#[derive(Default)]
struct Queue {
    reports: Mutex<VecDeque<Report>>,
    news: Notify,
}

impl Queue {
    fn push(&self, report: Report) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() == WAITING {
            reports.pop_back();
        }
        reports.push_back(report);
        drop(reports);
        self.news.notify_one();
    }

    fn pop(&self) -> Option<Report> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Makes a call with progress that `peer` is told of under `token`.
pub(super) async fn followed<T, F: Future<Output = T>>(
    peer: &Peer<RoleServer>,
    token: &ProgressToken,
    call: impl FnOnce(Progress) -> F,
) -> T {
    let queue = Arc::new(Queue::default());
    let reports = queue.clone();
    let call = call(Progress::to(move |done, total, message| {
        reports.push(Report { done, total, message: message.to_owned() });
    }));
    let tell = async {
        loop {
            tell_all(peer, token, &queue).await;
            queue.news.notified().await;
        }
    };
    let answer = match select(std::pin::pin!(call), std::pin::pin!(tell)).await {
        Either::Left((answer, _)) => answer,
        Either::Right((never, _)) => never,
    };
    // A client that does not read must not hold up the answer, which has its own way of being late.
    let _ = tokio::time::timeout(FLUSH, tell_all(peer, token, &queue)).await;
    answer
}

async fn tell_all(peer: &Peer<RoleServer>, token: &ProgressToken, queue: &Queue) {
    while let Some(report) = queue.pop() {
        let mut news =
            ProgressNotificationParam::new(token.clone(), report.done).with_message(report.message);
        news.total = report.total;
        // A client that is gone is noticed by the transport.
        let _ = peer.notify_progress(news).await;
    }
}
