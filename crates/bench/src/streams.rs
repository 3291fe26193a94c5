//! Many projects, many events: memory stays bounded, and a restart does not read what a snapshot covers.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::client::{Client, expect_success};
use crate::report::{figure, grouped, heading, megabytes, millis, rate, target};
use crate::server::{Server, data_dir};

const CONNECTIONS: usize = 64;

pub(crate) fn run(quick: bool) {
    let (projects, events) = if quick { (500, 20_000) } else { (10_000, 1_000_000) };
    heading(&format!("{} streams, {} events", grouped(projects as u64), grouped(events as u64)));
    let data = data_dir();
    let server = Server::start(data.path());
    let began = Instant::now();
    fill(&server, projects, events);
    #[expect(clippy::cast_precision_loss, reason = "a count of events")]
    figure("written", &rate(events as f64 / began.elapsed().as_secs_f64()));
    figure("memory afterwards, all streams live", &megabytes(server.memory()));
    server.kill();
    let server = Server::start(data.path());
    let started = server.started_in;
    target(
        "restart after kill -9 to listening",
        &millis(started),
        "<= 1 s",
        started <= Duration::from_secs(1),
    );
    figure("memory after the restart", &megabytes(server.memory()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let first = runtime.block_on(async {
        let mut client = Client::connect(server.address).await;
        let began = Instant::now();
        expect_success(client.call("get_all_todos", r#"{"project_id":"project-0"}"#).await);
        began.elapsed()
    });
    figure("first answer of one of its projects", &millis(first));
}

fn fill(server: &Server, projects: usize, events: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let next = Rc::new(Cell::new(0_usize));
    LocalSet::new().block_on(&runtime, async {
        let tasks: Vec<_> = (0..CONNECTIONS)
            .map(|_| tokio::task::spawn_local(write(server.address, next.clone(), projects, events)))
            .collect();
        for task in tasks {
            task.await.expect("a connection ends well");
        }
    });
}

async fn write(address: std::net::SocketAddr, next: Rc<Cell<usize>>, projects: usize, events: usize) {
    let mut client = Client::connect(address).await;
    loop {
        let index = next.replace(next.get() + 1);
        if index >= events {
            return;
        }
        let project = index % projects;
        let (tool, arguments) = if index < projects {
            (
                "register_agent",
                format!(
                    r#"{{"project_id":"project-{project}","session_name":"one","task_id":"1","branch":"main","description":"work"}}"#
                ),
            )
        } else if index.is_multiple_of(2) {
            (
                "announce_file_change",
                format!(
                    r#"{{"project_id":"project-{project}","session_name":"one","file_path":"src/a.rs","change_type":"modify"}}"#
                ),
            )
        } else {
            (
                "register_interface",
                format!(
                    r#"{{"project_id":"project-{project}","session_name":"one","interface_name":"User","definition":"version {index}"}}"#
                ),
            )
        };
        let body = client.call(tool, &arguments).await;
        // An agent that was silent while the others' projects were filled registers again.
        if find_not_registered(body) {
            let again = format!(
                r#"{{"project_id":"project-{project}","session_name":"one","task_id":"1","branch":"main","description":"work"}}"#
            );
            expect_success(client.call("register_agent", &again).await);
        }
    }
}

fn find_not_registered(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("not_registered")
}
