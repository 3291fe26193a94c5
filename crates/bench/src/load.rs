//! A mix of durable operations over MCP, beside the ceiling: a tool that does nothing.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::client::{Client, expect_success};
use crate::report::{figure, heading, median, millis, note, percentile, rate, target};
use crate::server::{Server, data_dir};
use crate::{FULL_PACE, Pace, report};

/// Agents that share a project: their messages go to each other, and each lists all of them.
const TEAM: usize = 8;

/// What the connections do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mix {
    /// The tool that touches no state.
    Echo,
    /// Register, announce, release, add a todo, list agents, send a message, check messages: in equal shares.
    Team,
    /// Only what is written to the journal.
    Writes,
}

struct Measured {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    server_cpu_per_call: Duration,
}

pub(crate) fn run(pace: Pace) {
    heading(
        "Operations over MCP (Streamable HTTP, protocol 2026-07-28, keep-alive, durable before answered)",
    );
    note(&format!(
        "teams of {TEAM}; register, announce, release, todo, list, send, check in equal shares; median of {} rounds",
        pace.rounds
    ));
    let data = data_dir();
    let sync = sync_time(data.path());
    figure("this disk: append 4 KiB and fdatasync, median", &millis(sync));
    let server = Server::start(data.path());
    for connections in [1, 16, 64] {
        compare(&server, connections, pace, sync);
    }
    let writes = measure(&server, Mix::Writes, 64, pace);
    figure("64 connections, only writes", &rate(writes.per_second));
}

/// One mix at 64 connections for ten seconds: for whoever looks at the server with a profiler meanwhile.
pub(crate) fn sustain(mix: &str) {
    let data = data_dir();
    let mix = match mix {
        "echo" => Mix::Echo,
        "team" => Mix::Team,
        "writes" => Mix::Writes,
        "both" => {
            let sync = sync_time(data.path());
            return compare(&Server::start(data.path()), 64, FULL_PACE, sync);
        }
        other => panic!("there is no mix '{other}': echo, team, writes, or both turn about"),
    };
    let server = Server::start(data.path());
    let pace = Pace { warm_up: Duration::from_secs(1), measure: Duration::from_secs(10), rounds: 1 };
    let measured = measure(&server, mix, 64, pace);
    figure("64 connections", &rate(measured.per_second));
    let cpu = measured.server_cpu_per_call.as_secs_f64() * 1e6;
    figure("64 connections, server CPU per call", &format!("{cpu:.1} us"));
}

fn compare(server: &Server, connections: usize, pace: Pace, sync: Duration) {
    let mut measured: [Vec<Measured>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..pace.rounds {
        // Turn about, so that what else the machine does meets both alike.
        for (mix, results) in [Mix::Echo, Mix::Team].into_iter().zip(&mut measured) {
            results.push(measure(server, mix, connections, pace));
        }
    }
    let [echo, team] = &measured;
    let of =
        |measured: &[Measured], value: fn(&Measured) -> f64| median(measured.iter().map(value).collect());
    let (ceiling, durable) = (of(echo, |m| m.per_second), of(team, |m| m.per_second));
    let time =
        |measured: &[Measured], value: fn(&Measured) -> f64| Duration::from_secs_f64(of(measured, value));
    let (p50, p99) = (time(team, |m| m.p50.as_secs_f64()), time(team, |m| m.p99.as_secs_f64()));
    figure(&format!("{connections} connections, echo"), &rate(ceiling));
    figure(&format!("{connections} connections, durable mix"), &rate(durable));
    let cpu = |measured: &[Measured]| of(measured, |m| m.server_cpu_per_call.as_secs_f64() * 1e6);
    figure(
        &format!("{connections} connections, server CPU per call: echo, mix"),
        &format!("{:.1}, {:.1} us", cpu(echo), cpu(team)),
    );
    match connections {
        1 => {
            let over = p50.saturating_sub(sync);
            figure("1 connection, durable mix, median", &millis(p50));
            target(
                "1 connection, median over the disk's sync",
                &format!("+{}", millis(over)),
                "<= +0.3 ms",
                over <= Duration::from_micros(300),
            );
        }
        64 => {
            // Of neighbours in time, since the speed of a shared machine drifts.
            let shares =
                echo.iter().zip(team).map(|(echo, team)| team.per_second / echo.per_second).collect();
            let share = median(shares);
            target(
                "64 connections, mix as a share of echo",
                &format!("{share:.2}"),
                ">= 0.75",
                share >= 0.75,
            );
            target("64 connections, mix", &rate(durable), ">= 20,000/s", durable >= 20_000.0);
            target("64 connections, mix, p99", &millis(p99), "<= 10 ms", p99 <= Duration::from_millis(10));
        }
        _ => figure(
            &format!("{connections} connections, mix, p50 and p99"),
            &format!("{} {}", millis(p50), millis(p99)),
        ),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of calls")]
fn measure(server: &Server, mix: Mix, connections: usize, pace: Pace) -> Measured {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = LocalSet::new();
    let times = Rc::new(RefCell::new(Vec::with_capacity(1 << 20)));
    let (elapsed, cpu) = local.block_on(&runtime, async {
        let begin = Instant::now() + pace.warm_up;
        let end = begin + pace.measure;
        let tasks: Vec<_> = (0..connections)
            .map(|index| {
                tokio::task::spawn_local(one_connection(
                    server.address,
                    mix,
                    index,
                    begin,
                    end,
                    times.clone(),
                ))
            })
            .collect();
        tokio::time::sleep(pace.warm_up).await;
        let before = server.cpu();
        for task in tasks {
            task.await.expect("a connection ends well");
        }
        (begin.elapsed(), server.cpu().saturating_sub(before))
    });
    let mut times = times.take();
    times.sort_unstable();
    let calls = times.len();
    Measured {
        per_second: calls as f64 / elapsed.as_secs_f64(),
        p50: percentile(&times, 0.50),
        p99: percentile(&times, 0.99),
        server_cpu_per_call: cpu.div_f64((calls as f64).max(1.0)),
    }
}

async fn one_connection(
    address: SocketAddr,
    mix: Mix,
    index: usize,
    begin: Instant,
    end: Instant,
    times: Rc<RefCell<Vec<Duration>>>,
) {
    let mut client = Client::connect(address).await;
    let me = Agent::new(index);
    for step in 0.. {
        let (tool, arguments) = match mix {
            Mix::Echo => ("echo", r#"{"text":"thirty bytes of ordinary text."}"#.to_owned()),
            Mix::Team => me.step(step, 7),
            Mix::Writes => me.step(step, 4),
        };
        let sent = Instant::now();
        if sent >= end {
            return;
        }
        expect_success(client.call(tool, &arguments).await);
        if sent >= begin {
            times.borrow_mut().push(sent.elapsed());
        }
    }
}

struct Agent {
    project: String,
    session: String,
    neighbour: String,
    index: usize,
}

impl Agent {
    fn new(index: usize) -> Self {
        let (team, member) = (index / TEAM, index % TEAM);
        Self {
            project: format!("team-{team}"),
            session: format!("task-{member:03}"),
            // The first of a team writes to itself if it is alone, which is refused; so it registers a second.
            neighbour: format!("task-{:03}", (member + 1) % TEAM),
            index,
        }
    }

    fn step(&self, step: usize, kinds: usize) -> (&'static str, String) {
        let Self { project, session, neighbour, index } = self;
        let (register, me) = (
            |name: &str| {
                format!(
                    r#"{{"project_id":"{project}","session_name":"{name}","task_id":"{index}","branch":"feature/{index}","description":"Implement part {index}"}}"#
                )
            },
            format!(r#""project_id":"{project}","session_name":"{session}""#),
        );
        if step == 0 {
            return ("register_agent", register(neighbour));
        }
        match (step - 1) % kinds {
            0 => ("register_agent", register(session)),
            1 => (
                "announce_file_change",
                format!(
                    r#"{{{me},"file_path":"src/module_{index}/file.rs","change_type":"modify","description":"work"}}"#
                ),
            ),
            2 => ("release_file_lock", format!(r#"{{{me},"file_path":"src/module_{index}/file.rs"}}"#)),
            3 => ("add_todo", format!(r#"{{{me},"todo_item":"Write the next part","priority":2}}"#)),
            4 => ("list_active_agents", format!(r#"{{"project_id":"{project}"}}"#)),
            5 => (
                "message_send",
                format!(
                    r#"{{"project":"{project}","session":"{session}","to":["{neighbour}"],"text":"part {step} is done"}}"#
                ),
            ),
            _ => ("check_messages", format!("{{{me}}}")),
        }
    }
}

/// What an append of 4 KiB with fdatasync takes on the disk that holds `directory`.
fn sync_time(directory: &std::path::Path) -> Duration {
    use std::io::Write as _;
    let path = directory.join("sync-probe");
    let mut file = std::fs::File::create(&path).expect("a file in the data directory");
    let block = [7_u8; 4096];
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            let began = Instant::now();
            file.write_all(&block).expect("the disk takes a block");
            file.sync_data().expect("the disk syncs");
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let _ = std::fs::remove_file(path);
    report::percentile(&times, 0.5)
}
