//! What the server acknowledged survives `kill -9`. `SWITCHBOARD_KILL_ROUNDS` and `SWITCHBOARD_KILL_SEED` ask for more or
//! other rounds.

#![expect(clippy::print_stdout, reason = "how fast it came back is part of the result")]

use std::time::Duration;

use switchboard_torture::{binary, kill};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let rounds = u32::try_from(number("SWITCHBOARD_KILL_ROUNDS", 25)).expect("so many rounds take years");
    let options = kill::Options { binary: binary(), rounds, seed: number("SWITCHBOARD_KILL_SEED", 1) };
    let report = kill::run(&options, |_| {}).unwrap_or_else(|why| panic!("{why}"));
    println!("{report}");
    assert!(report.acknowledged() > u64::from(rounds), "there was hardly any load");
    assert!(report.unanswered() > 0, "no kill met a call under way");
    // The target is a second; machines that test are busy.
    assert!(report.slowest_start() < Duration::from_secs(5), "a restart took {:?}", report.slowest_start());
}
