//! "May I write this path?", as a hook asks before every edit.

use std::time::{Duration, Instant};

use crate::Pace;
use crate::client::{Client, expect_success};
use crate::report::{figure, heading, millis, percentile, target};
use crate::server::{Server, data_dir};

const LOCKS: usize = 10_000;

pub(crate) fn run(pace: Pace) {
    heading(
        "\"May session S write path P now?\" (POST /api/coordination/check, 1 connection, 10,000 locks held)",
    );
    let data = data_dir();
    let server = Server::start(data.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut times = runtime.block_on(ask(&server, pace));
    times.sort_unstable();
    figure("p50", &millis(percentile(&times, 0.5)));
    let p99 = percentile(&times, 0.99);
    target("p99", &millis(p99), "<= 1 ms", p99 <= Duration::from_millis(1));
}

async fn ask(server: &Server, pace: Pace) -> Vec<Duration> {
    let mut client = Client::connect(server.address).await;
    let register = r#"{"project":"shop","session":"holder"}"#;
    expect_success(client.call("agent_register", register).await);
    for index in 0..LOCKS {
        let lock =
            format!(r#"{{"project":"shop","session":"holder","path":"src/{}/file_{index}.rs"}}"#, index % 97);
        expect_success(client.call("lock_acquire", &lock).await);
    }
    let mut times = Vec::new();
    let end = Instant::now() + pace.measure;
    for index in 0.. {
        let began = Instant::now();
        if began >= end {
            break;
        }
        let path = index % (2 * LOCKS);
        let body =
            format!(r#"{{"project":"shop","session":"writer","path":"src/{}/file_{path}.rs"}}"#, path % 97);
        client.post("/api/coordination/check", "", &body).await;
        times.push(began.elapsed());
    }
    times
}
