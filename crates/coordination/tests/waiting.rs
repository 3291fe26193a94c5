//! What a caller that waits gets when the wait is cut short.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test ends where it cannot go on; its clock is paused"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use switchboard_coordination::{
    Acquire, Acquired, Ask, ChangeType, Collected, Coordination, Name, Patience, Register, Scope,
    ServiceOptions, Settings, Text,
};
use switchboard_exchange::{Clock, Exchange, Options, SignedDuration, Timestamp};
use switchboard_journal::MemoryJournal;
use tokio::time::Instant;

/// Virtual time, off by so many seconds.
#[derive(Debug)]
struct OffClock {
    began: Instant,
    off: AtomicI64,
}

impl Clock for OffClock {
    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.began.elapsed().as_secs()).unwrap();
        Timestamp::from_second(1_800_000_000 + seconds + self.off.load(Ordering::Relaxed)).unwrap()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let wait = Duration::try_from(deadline.duration_since(self.now())).unwrap_or_default();
        tokio::time::sleep(wait.min(Duration::from_secs(30)) + Duration::from_millis(1)).boxed()
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn patience(seconds: i64) -> Patience {
    Patience {
        time: SignedDuration::from_secs(seconds),
        cancelled: tokio_util::sync::CancellationToken::new(),
        progress: Arc::new(|_, _| {}),
    }
}

fn question() -> Ask {
    Ask {
        from: name("ada"),
        to: name("bob"),
        question_type: name("help"),
        content: Text::new("?").unwrap(),
        requires_response: true,
        waits_until: None,
    }
}

fn wish(session: &str) -> Acquire {
    Acquire {
        session: name(session),
        scope: Scope::parse("src/").unwrap(),
        path: name("src/"),
        change_type: ChangeType::Modify,
        description: Text::default(),
        ttl: None,
        wait: false,
    }
}

async fn service() -> (Coordination, Arc<OffClock>) {
    let clock = Arc::new(OffClock { began: Instant::now(), off: AtomicI64::new(0) });
    let journal = Arc::new(MemoryJournal::new());
    let settings = Settings { heartbeat_timeout: SignedDuration::from_hours(24), ..Settings::default() };
    let exchange = Exchange::new(journal, clock.clone(), settings, Options::default());
    let service = Coordination::new(exchange, ServiceOptions { status_dir: None });
    for session in ["ada", "bob"] {
        let (task_id, branch, description) = (name("task"), Text::default(), Text::default());
        let register = Register { session: name(session), task_id, branch, description };
        service.send(&name("shop"), register, None).await.unwrap();
    }
    (service, clock)
}

async fn soon<T>(then: impl Future<Output = T>) -> T {
    tokio::time::sleep(Duration::from_secs(1)).await;
    then.await
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_asked_is_answered_with_its_id_however_the_wait_ends() {
    let (service, _) = service().await;
    let shop = name("shop");
    let asked = service.ask(&shop, question(), Some(patience(40)), None);
    let (asked, ()) = tokio::join!(asked, soon(service.exchange().stop()));
    let (_, collected) = asked.unwrap();
    assert!(matches!(collected, Some(Collected::Pending { .. })), "{collected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_place_in_the_line_is_answered_with_its_ticket_however_the_wait_ends() {
    let (service, _) = service().await;
    let shop = name("shop");
    service.acquire(&shop, wish("bob"), None, None).await.unwrap();
    let patience = patience(40);
    let waiting = service.acquire(&shop, wish("ada"), Some(&patience), None);
    let (waiting, ()) = tokio::join!(waiting, soon(service.exchange().stop()));
    assert!(matches!(waiting.unwrap(), Acquired::Waiting(_)));
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_as_long_as_was_said_also_when_the_clock_goes_back() {
    let (service, clock) = service().await;
    let shop = name("shop");
    let began = Instant::now();
    let asked = service.ask(&shop, question(), Some(patience(40)), None);
    let (asked, ()) = tokio::join!(asked, soon(async { clock.off.store(-3_600, Ordering::Relaxed) }));
    asked.unwrap();
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}
