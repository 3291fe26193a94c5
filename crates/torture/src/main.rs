//! Torments a server: `switchboard-torture kill [--schedules] | race`, with `--rounds N` and `--seed N`. Run by `cargo xtask kill` and
//! `cargo xtask race`, which build the server first.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is this program's output")]

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_torture::{Torment, binary, kill, kill_schedules, race};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let rounds = number("--rounds").and_then(|rounds| u32::try_from(rounds).ok());
    let done = match arguments.first().map(String::as_str) {
        Some("kill") => {
            let schedules = arguments.iter().any(|argument| argument == "--schedules");
            torment_by_kill(schedules, rounds.unwrap_or(1_000), number("--seed"))
        }
        Some("race") => torment_by_race(rounds.unwrap_or(500)),
        _ => {
            eprintln!(
                "usage: switchboard-torture kill [--schedules] [--rounds N] [--seed N] | race [--rounds N]"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn torment_by_kill(schedules: bool, rounds: u32, seed: Option<u64>) -> Result<(), Torment> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = seed.unwrap_or(now.as_secs());
    println!("{rounds} rounds, seed {seed}");
    let options = kill::Options { binary: binary(), rounds, seed, meddle: |_| {} };
    let progress = |round: u32| {
        if round.is_multiple_of(50) {
            println!("{round} rounds");
        }
    };
    if schedules {
        println!("{}", kill_schedules::run(&options, progress)?);
    } else {
        println!("{}", kill::run(&options, progress)?);
    }
    Ok(())
}

fn torment_by_race(rounds: u32) -> Result<(), Torment> {
    for door in [race::Door::Announce, race::Door::Acquire] {
        let report = race::run(&binary(), door, 8, rounds as usize)?;
        println!("{report}");
        if report.unfair_rounds() > 0 {
            return Err(Torment::Broken("a lock was granted to several, or to nobody".to_owned()));
        }
    }
    Ok(())
}
