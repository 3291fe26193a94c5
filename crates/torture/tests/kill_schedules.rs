//! What is due is delivered, whenever the server is killed. `KILL_ROUNDS` and `KILL_SEED` ask for more or other rounds.

#![expect(clippy::print_stdout, reason = "how much was due is part of the result")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use rusqlite::Connection;
use switchboard_torture::{binary, kill, kill_schedules};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

#[test]
fn what_is_due_is_delivered_under_one_key_whenever_the_server_is_killed() {
    let rounds = u32::try_from(number("KILL_ROUNDS", 25)).expect("so many rounds take years");
    let seed = number("KILL_SEED", 1);
    let options = kill::Options { binary: binary(), rounds, seed, meddle: |_| {} };
    let report = kill_schedules::run(&options, |_| {}).unwrap_or_else(|why| panic!("{why}"));
    println!("{report}");
    assert!(report.acknowledged() > u64::from(rounds), "there was hardly any load");
    assert!(report.due() > u64::from(rounds), "hardly anything was due");
    assert!(report.unanswered() > 0, "no kill met a call under way");
}

/// Takes the last entries of every stream of schedules out of the journal.
fn forget_a_little(data: &Path) {
    let journal = Connection::open(data.join("journal.db")).unwrap();
    let last =
        "select position from entries join streams on streams.id = stream where name like 'schedules/%'
                order by position desc limit 40";
    let gone = journal.execute(&format!("delete from entries where position in ({last})"), []).unwrap();
    assert!(gone > 0, "there was nothing to forget");
}

#[test]
fn a_server_that_forgets_schedules_is_found_out() {
    let options = kill::Options { binary: binary(), rounds: 3, seed: 1, meddle: forget_a_little };
    let data = tempfile::tempdir().unwrap();
    let why = kill_schedules::run_in(data.path(), &options, |_| {})
        .expect_err("it forgot what it had acknowledged")
        .to_string();
    assert!(why.contains("schedule"), "{why}");
}
