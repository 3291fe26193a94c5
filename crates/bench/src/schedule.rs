//! Wake-up calls: how late, how many, how large.
//!
//! Deliveries run in this process, on the same code as in the server (machine, desk, journal, targets); the HTTP target is
//! a process of its own that does nothing but note how late each call comes. Memory, restart and idling are those of a
//! whole server over a data directory that was filled before.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use switchboard_bus::{Bus, Data, NewEvent, Retention, Topic};
use switchboard_exchange::{Clock as _, Exchange, Options, SystemClock};
use switchboard_journal::{SqliteJournal, SqliteOptions};
use switchboard_outbound::{Limits, Outbound, Reach};
use switchboard_schedule::{
    Address, Message, Missed, NodeId, Overlap, Schedules, Settings, Spec, Target, Targets, Timing, Zone,
};
use switchboard_targets::{BusTarget, Webhook, WebhookOptions};
use tokio::task::LocalSet;

use crate::client::{Client, expect_success};
use crate::post::{Post, Stats};
use crate::report::{figure, grouped, heading, megabytes, millis, note, rate, target};
use crate::server::{Server, data_dir};

/// How much is measured.
struct Size {
    active: usize,
    lateness_for: Duration,
    delivered: usize,
    published: usize,
    restarted: usize,
    called_for: Duration,
}

pub(crate) fn run(quick: bool) {
    let size = if quick {
        Size {
            active: 10_000,
            lateness_for: Duration::from_secs(4),
            delivered: 5_000,
            published: 20_000,
            restarted: 50_000,
            called_for: Duration::from_secs(2),
        }
    } else {
        Size {
            active: 100_000,
            lateness_for: Duration::from_secs(30),
            delivered: 50_000,
            published: 200_000,
            restarted: 1_000_000,
            called_for: Duration::from_secs(10),
        }
    };
    heading("Wake-up calls (SQLite journal, every step durable)");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(lateness(&size));
    runtime.block_on(deliveries(&size));
    runtime.block_on(publications(&size));
    drop(runtime);
    calls(&size);
    restart(&size);
    idle(&size);
}

/// Schedules over a journal of their own.
struct Engine {
    bus: Bus,
    schedules: Schedules,
    journal: Arc<SqliteJournal>,
}

impl Engine {
    async fn open(data: &Path) -> Self {
        let journal = Arc::new(SqliteJournal::open(data, &SqliteOptions::default()).expect("a journal"));
        let bus = Bus::new(journal.clone(), Arc::new(SystemClock), Retention::default());
        let webhooks =
            WebhookOptions { allow_private: true, ..WebhookOptions::new(*b"a key for a benchmark alone") };
        let targets: [Arc<dyn Target>; 2] =
            [Arc::new(Webhook::new(webhooks)), Arc::new(BusTarget::new(bus.clone()))];
        let targets = Targets::new(targets);
        let settings = Settings::of(&targets, &[]);
        let exchange = Exchange::new(journal.clone(), Arc::new(SystemClock), settings, Options::default());
        let schedules = Schedules::new(exchange, targets, NodeId("bench".into()));
        schedules.start().await.expect("the schedules can be read");
        Self { bus, schedules, journal }
    }

    /// Makes `count` schedules, many at a time, and says how long that took.
    async fn fill(&self, count: usize, spec: impl Fn(usize) -> Spec) -> Duration {
        let began = Instant::now();
        stream::iter(0..count)
            .map(|index| self.schedules.create(spec(index), None))
            .buffer_unordered(1_024)
            .for_each(async |made| {
                made.expect("a schedule is made");
            })
            .await;
        began.elapsed()
    }

    async fn close(self) {
        self.schedules.stop(Duration::from_secs(5)).await;
        self.bus.stop().await;
        self.journal.close().await;
    }

    /// Waits until so many schedules are completed.
    async fn completed(&self, count: usize) {
        let done = switchboard_schedule::Filter {
            status: Some(vec![switchboard_schedule::Status::Completed]),
            ..Default::default()
        };
        // Listing them costs much, counting nothing.
        let delivered =
            || self.schedules.stats().iter().map(|(_, kind)| kind.delivered.load(Relaxed)).sum::<u64>();
        while delivered() < count as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while self.schedules.list(&done).await.expect("schedules are listed").len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn spec(kind: &str, to: &str, timing: Timing) -> Spec {
    Spec {
        name: "".into(),
        address: Address::new(kind, to),
        message: Message::Text("Summarise what happened since yesterday.".into()),
        timing,
        value: "0 9 * * *".into(),
        missed: Missed::Once,
        overlap: Overlap::Queue,
        max_repetitions: None,
        more: None,
    }
}

fn now_ms() -> i64 {
    SystemClock.now().as_millisecond()
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

#[expect(clippy::cast_possible_wrap, reason = "counts far from 2^63")]
async fn lateness(size: &Size) {
    let (data, post) = (data_dir(), Post::start());
    let engine = Engine::open(data.path()).await;
    let url = format!("http://{}/", post.address);
    // 500 a second, whatever their number: each is due once per round.
    let round_ms = size.active as i64 * 2;
    let from = now_ms() + 3_600_000;
    let anchor = |index: usize| from + index as i64 * 2;
    let every = |index: usize| Timing::every(round_ms.unsigned_abs(), anchor(index)).expect("a period");
    let took = engine.fill(size.active, |index| spec("webhook", &url, every(index))).await;
    figure(
        &format!("making {} schedules", grouped(size.active as u64)),
        &rate(per_second(size.active, took)),
    );
    // They were made for an hour from now, so that making them disturbs nothing: now they begin.
    let begin = now_ms() + 2_000;
    let all =
        engine.schedules.list(&switchboard_schedule::Filter::live()).await.expect("schedules are listed");
    let mut index = 0;
    stream::iter(all)
        .map(|info| {
            let timing =
                Timing::every(round_ms.unsigned_abs(), begin + 30_000 + index * 2).expect("a period");
            index += 1;
            let change = switchboard_schedule::Change {
                timing: Some((timing, "200s".into())),
                ..switchboard_schedule::Change::default()
            };
            engine.schedules.update(info.id, change, None)
        })
        .buffer_unordered(1_024)
        .for_each(async |updated| updated.expect("a schedule is changed"))
        .await;
    let wait = begin + 30_000 - now_ms();
    assert!(wait > 0, "schedules could not be changed in half a minute");
    tokio::time::sleep(Duration::from_millis(wait.unsigned_abs()) + Duration::from_secs(1)).await;
    post.stats();
    tokio::time::sleep(size.lateness_for).await;
    let Stats { count, p50, p99, max } = post.stats();
    let seen = per_second(count, size.lateness_for);
    note(&format!(
        "{} active schedules, {} delivered at {} to a local HTTP target",
        grouped(size.active as u64),
        grouped(count as u64),
        rate(seen)
    ));
    figure("lateness, median", &millis(p50));
    target("lateness, p99", &millis(p99), "<= 10 ms", p99 <= Duration::from_millis(10));
    target("lateness, longest", &millis(max), "<= 50 ms", max <= Duration::from_millis(50));
    engine.close().await;
}

async fn deliveries(size: &Size) {
    let (data, post) = (data_dir(), Post::start());
    let url = format!("http://{}/", post.address);
    let ceiling = posts(&url, size.delivered).await;
    figure("the same POST without schedules, 64 at a time", &rate(ceiling));
    let engine = Engine::open(data.path()).await;
    let due = now_ms() + 3_600_000;
    engine.fill(size.delivered, |_| spec("webhook", &url, Timing::once(due))).await;
    let took = bring_forward(&engine, size.delivered).await;
    let reached = per_second(size.delivered, took);
    target("durable occurrences to a local HTTP target", &rate(reached), ">= 5,000/s", reached >= 5_000.0);
    figure("as a share of the ceiling", &format!("{:.2}", reached / ceiling));
    engine.close().await;
}

async fn publications(size: &Size) {
    let data = data_dir();
    let engine = Engine::open(data.path()).await;
    let ceiling = batches(&engine.bus, size.published).await;
    figure("the bus alone, batches of 256, 4 at a time", &rate(ceiling));
    let due = now_ms() + 3_600_000;
    engine
        .fill(size.published, |index| spec("topic", &format!("topic.{}", index % 100), Timing::once(due)))
        .await;
    let took = bring_forward(&engine, size.published).await;
    let reached = per_second(size.published, took);
    target("durable occurrences published to the bus", &rate(reached), ">= 30,000/s", reached >= 30_000.0);
    figure("as a share of the ceiling", &format!("{:.2}", reached / ceiling));
    engine.close().await;
}

/// Makes all schedules due at one instant, and says how long after it all were delivered and recorded.
async fn bring_forward(engine: &Engine, count: usize) -> Duration {
    let due = now_ms() + 20_000;
    let all =
        engine.schedules.list(&switchboard_schedule::Filter::live()).await.expect("schedules are listed");
    stream::iter(all)
        .map(|info| {
            let change = switchboard_schedule::Change {
                timing: Some((Timing::once(due), "once".into())),
                ..switchboard_schedule::Change::default()
            };
            engine.schedules.update(info.id, change, None)
        })
        .buffer_unordered(1_024)
        .for_each(async |updated| updated.expect("a schedule is changed"))
        .await;
    let wait = due - now_ms();
    assert!(wait > 0, "schedules could not be changed in 20 s");
    tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
    let began = Instant::now();
    engine.completed(count).await;
    began.elapsed()
}

/// How many POSTs of the size of a webhook a second, 64 at a time.
async fn posts(url: &str, count: usize) -> f64 {
    let out = Outbound::new(switchboard_outbound::Options {
        reach: Reach::Anywhere,
        connect_timeout: Duration::from_secs(5),
        idle_per_host: 64,
    });
    let body = format!(r#"{{"schedule":"93","due":"2025-01-02T09:00:00Z","message":"{}"}}"#, "x".repeat(120));
    let limits = Limits { timeout: Duration::from_secs(5), keep_bytes: 0, read_bytes: 1_024 };
    let began = Instant::now();
    stream::iter(0..count)
        .map(|_| {
            let request = http::Request::post(url).body(body.clone().into()).expect("a request");
            out.send(request, limits)
        })
        .buffer_unordered(64)
        .for_each(async |answer| {
            answer.expect("the target answers");
        })
        .await;
    per_second(count, began.elapsed())
}

async fn batches(bus: &Bus, count: usize) -> f64 {
    let event = |index: usize| NewEvent {
        topic: Topic::new(format!("topic.{}", index % 100)).expect("a topic"),
        data: Data::of(&"Summarise what happened since yesterday.").expect("data"),
        key: None,
        source: None,
    };
    let began = Instant::now();
    stream::iter(0..count.div_ceil(256))
        .map(|batch| bus.publish((batch * 256..(batch + 1) * 256).map(event).collect()))
        .buffer_unordered(4)
        .for_each(async |published| {
            published.expect("events are published");
        })
        .await;
    per_second(count, began.elapsed())
}

/// `promptyoself_schedule_cron` over MCP, as many connections as Letta keeps.
fn calls(size: &Size) {
    const CONNECTIONS: usize = 16;
    let data = data_dir();
    let server = Server::start(data.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let measure = |tool: &'static str, arguments: &'static str| {
        let count = std::rc::Rc::new(std::cell::Cell::new(0_usize));
        LocalSet::new().block_on(&runtime, async {
            let end = Instant::now() + size.called_for;
            let tasks: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    let (count, address) = (count.clone(), server.address);
                    tokio::task::spawn_local(async move {
                        let mut client = Client::connect(address).await;
                        while Instant::now() < end {
                            expect_success(client.call(tool, arguments).await);
                            count.set(count.get() + 1);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a connection ends well");
            }
        });
        per_second(count.get(), size.called_for)
    };
    let ceiling = measure("echo", r#"{"text":"thirty bytes of ordinary text."}"#);
    figure("16 connections, echo", &rate(ceiling));
    let cron = measure(
        "promptyoself_schedule_cron",
        r#"{"agent_id":"agent-1","prompt":"Daily report","cron":"0 9 * * *","skip_validation":true}"#,
    );
    target("16 connections, promptyoself_schedule_cron", &rate(cron), ">= 3,000/s", cron >= 3_000.0);
    figure("as a share of echo", &format!("{:.2}", cron / ceiling));
    figure("the system it replaces, as its users measured it, 1 connection", "34/s");
}

/// A server over a directory that somebody filled with `count` schedules, none of which is due soon.
fn filled(count: usize) -> tempfile::TempDir {
    let data = data_dir();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let engine = Engine::open(data.path()).await;
        let zone = Zone::named("Europe/Berlin").expect("a zone");
        let yearly = Timing::cron("0 9 1 1 *", zone).expect("an expression");
        engine
            .fill(count, |index| Spec {
                name: format!("report {index}").into(),
                ..spec("topic", &format!("agent-{:036}", index % 1_000), yearly.clone())
            })
            .await;
        engine.close().await;
    });
    data
}

fn restart(size: &Size) {
    let empty = data_dir();
    let server = Server::start(empty.path());
    let (base, base_start) = (server.memory(), server.started_in);
    drop(server);
    let data = filled(size.restarted);
    let server = Server::start(data.path());
    let (started, memory) = (server.started_in, server.memory());
    let each = memory.saturating_sub(base) / size.restarted as u64;
    let what = grouped(size.restarted as u64);
    figure("restart to ready, no schedules", &millis(base_start));
    target(
        &format!("restart to ready, {what} schedules"),
        &millis(started),
        "<= 5 s",
        started <= Duration::from_secs(5),
    );
    figure(&format!("memory with {what} schedules"), &megabytes(memory));
    target("memory per active schedule", &format!("{each} bytes"), "<= 700", each <= 700);
}

fn idle(size: &Size) {
    let data = filled(size.active);
    let server = Server::start(data.path());
    std::thread::sleep(Duration::from_secs(5));
    let seconds = 20;
    let before = server.cpu();
    std::thread::sleep(Duration::from_secs(seconds));
    let used = server.cpu().saturating_sub(before);
    let share = used.as_secs_f64() / Duration::from_secs(seconds).as_secs_f64() * 100.0;
    target(
        &format!("CPU of a core, {} schedules, nothing due", grouped(size.active as u64)),
        &format!("{share:.2} %"),
        "<= 0.5 %",
        share <= 0.5,
    );
}
