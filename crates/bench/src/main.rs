//! Measures Switchboard. Run by `cargo xtask bench`, which builds the server in release mode first.
//!
//! Every figure is printed beside its target and beside a ceiling measured in the same run, since machines differ and are
//! noisy: only the ratios carry over. The server runs as its own process on a fresh data directory, the load comes from
//! this process on the same cores.

#![expect(clippy::print_stdout, reason = "the report is this program's output")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run stops with the reason")]

mod check;
mod client;
mod footprint;
mod load;
mod machine;
mod post;
mod report;
mod schedule;
mod server;
mod streams;

use std::time::Duration;

/// How long each measurement lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
    pub(crate) rounds: usize,
}

/// Many short rounds, so that a slow moment of the machine meets few of them.
const FULL_PACE: Pace =
    Pace { warm_up: Duration::from_millis(300), measure: Duration::from_millis(1_200), rounds: 9 };

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == post::ROLE) {
        return post::serve();
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let pace = if quick {
        Pace { warm_up: Duration::from_millis(300), measure: Duration::from_secs(1), rounds: 1 }
    } else {
        FULL_PACE
    };
    let chosen: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with("--")).collect();
    let wants = |name: &str| chosen.is_empty() || chosen.contains(&name);
    report::set_up();
    if let ["sustain", mix] = chosen.as_slice() {
        return load::sustain(mix);
    }
    if wants("machine") {
        machine::run(pace);
    }
    if wants("load") {
        load::run(pace);
    }
    if wants("check") {
        check::run(pace);
    }
    if wants("footprint") {
        footprint::run();
    }
    if wants("streams") {
        streams::run(quick);
    }
    if wants("schedule") {
        schedule::run(quick);
    }
}
