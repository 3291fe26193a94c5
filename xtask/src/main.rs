//! What a developer runs: `cargo xtask setup | test | lint | bench | kill | race | fuzz`.
//!
//! To add a subcommand, write a file with a `run` and list it in [`COMMANDS`].

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "telling a developer what happens is the job here"
)]

mod bench;
mod fuzz;
mod lint;
mod setup;
mod shell;
mod test;
mod torture;
mod workspace;

use std::process::ExitCode;

use crate::workspace::Workspace;

/// Why a subcommand gave up, in words for the one who ran it.
#[derive(Debug)]
struct Failure(String);

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

type Outcome<T = ()> = Result<T, Failure>;

struct Subcommand {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&Workspace, &[String]) -> Outcome,
}

const COMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "setup",
        usage: "setup",
        about: "install what the tests need into .tools/ and tests/node_modules/",
        run: setup::run,
    },
    Subcommand {
        name: "test",
        usage: "test [rust|doc|python|typescript|clients|conformance|cron]... [-- ARGS]",
        about: "build once, then run all tests or the named parts; ARGS go to their runners",
        run: test::run,
    },
    Subcommand {
        name: "lint",
        usage: "lint [fmt|clippy|tidy]...",
        about: "formatting, lints, and what only this repository can check about itself",
        run: lint::run,
    },
    Subcommand {
        name: "bench",
        usage: "bench [--quick]",
        about: "measure a release build: throughput beside its ceiling, latency, memory",
        run: bench::run,
    },
    Subcommand {
        name: "kill",
        usage: "kill [--schedules] [--rounds N] [--seed N]",
        about: "kill -9 a release build under load, again and again; nothing acknowledged may be lost",
        run: torture::kill,
    },
    Subcommand {
        name: "race",
        usage: "race [--rounds N]",
        about: "let eight clients race for one lock of a release build; exactly one may win each round",
        run: torture::race,
    },
    Subcommand {
        name: "fuzz",
        usage: "fuzz [TARGET [FILE]]... [--seconds N]",
        about: "look for inputs that break a parser, N seconds for each target; FILE runs one input again",
        run: fuzz::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print_usage();
        return ExitCode::FAILURE;
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: there is no subcommand '{name}'\n");
        print_usage();
        return ExitCode::FAILURE;
    };
    match Workspace::locate().and_then(|workspace| (command.run)(&workspace, rest)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(reason)) => {
            eprintln!("xtask {name}: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn print_usage() {
    eprintln!("usage:");
    for command in COMMANDS {
        eprintln!("  cargo xtask {}\n      {}", command.usage, command.about);
    }
}
