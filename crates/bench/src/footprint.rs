//! How much memory, how long a start, how large a program.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::{Client, expect_success};
use crate::report::{figure, heading, median, megabytes, millis, target};
use crate::server::{Server, binary, data_dir, resident};

const AGENTS: usize = 10_000;
const STARTS: usize = 11;

pub(crate) fn run() {
    heading("Footprint");
    let size = std::fs::metadata(binary()).map(|file| file.len()).unwrap_or_default();
    target("binary", &megabytes(size), "<= 25 MB", size <= 25_000_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    cold_start(&runtime);
    let data = data_dir();
    let server = Server::start(data.path());
    runtime.block_on(first_answer(&server));
    let idle = server.memory();
    target("memory, idle", &megabytes(idle), "<= 25 MB", idle <= 25_000_000);
    bridge(data.path());
    runtime.block_on(register_all(&server));
    let per_agent = server.memory().saturating_sub(idle) / AGENTS as u64;
    target(
        "memory per idle registered agent (10,000 in 100 projects)",
        &format!("{per_agent} bytes"),
        "<= 4,000",
        per_agent <= 4_000,
    );
}

async fn first_answer(server: &Server) {
    let mut client = Client::connect(server.address).await;
    expect_success(client.call("list_active_agents", r#"{"project_id":"p"}"#).await);
}

fn cold_start(runtime: &tokio::runtime::Runtime) {
    let times = (0..STARTS).map(|_| {
        let data = data_dir();
        let began = Instant::now();
        let server = Server::start(data.path());
        runtime.block_on(first_answer(&server));
        began.elapsed().as_secs_f64()
    });
    let start = Duration::from_secs_f64(median(times.collect()));
    target(
        "cold start on a fresh directory to first answer, median of 11",
        &millis(start),
        "<= 50 ms",
        start <= Duration::from_millis(50),
    );
}

async fn register_all(server: &Server) {
    let mut client = Client::connect(server.address).await;
    for index in 0..AGENTS {
        let agent = format!(
            r#"{{"project_id":"project-{}","session_name":"task-{index:05}","task_id":"{index}","branch":"feature/{index}","description":"Implement part {index} of the whole"}}"#,
            index % 100
        );
        expect_success(client.call("register_agent", &agent).await);
    }
}

fn bridge(data: &std::path::Path) {
    let mut child = Command::new(binary())
        .args(["mcp", "--data-dir"])
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the bridge starts");
    let (mut input, mut output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let began = Instant::now();
    writeln!(input, "{hello}").expect("the bridge reads");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(&mut output), &mut line)
        .expect("the bridge answers");
    figure("bridge: from its start to the answer to initialize", &millis(began.elapsed()));
    let memory = resident(child.id());
    target("bridge: memory", &megabytes(memory), "<= 10 MB", memory <= 10_000_000);
    let began = Instant::now();
    drop(input);
    let _ = child.wait();
    let left = began.elapsed();
    target("bridge: gone after its parent", &millis(left), "<= 2 s", left <= Duration::from_secs(2));
}
