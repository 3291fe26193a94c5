//! What the server acknowledged survives `kill -9`. `KILL_ROUNDS` and `KILL_SEED` ask for more or other rounds; a name
//! that begins like an option of the server would be refused by every server that other tests start meanwhile.

#![expect(clippy::print_stdout, reason = "how fast it came back is part of the result")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use switchboard_torture::{binary, kill};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let rounds = u32::try_from(number("KILL_ROUNDS", 25)).expect("so many rounds take years");
    let seed = number("KILL_SEED", 1);
    let options = kill::Options { binary: binary(), rounds, seed, meddle: |_| {} };
    let report = kill::run(&options, |_| {}).unwrap_or_else(|why| panic!("{why}"));
    println!("{report}");
    assert!(report.acknowledged() > u64::from(rounds), "there was hardly any load");
    assert!(report.unanswered() > 0, "no kill met a call under way");
    // The target is a second for each; on machines that test, the disk is busy now and then.
    assert!(report.start_at(50) < Duration::from_secs(1), "restarts usually took {:?}", report.start_at(50));
    assert!(report.slowest_start() < Duration::from_secs(15), "a restart took {:?}", report.slowest_start());
}

/// Takes the last entries of one project out of the journal.
fn forget_a_little(data: &Path) {
    let journal = Connection::open(data.join("journal.db")).unwrap();
    let last = "select position from entries join streams on streams.id = stream where name = 'project/team0'
                order by position desc limit 20";
    let gone = journal.execute(&format!("delete from entries where position in ({last})"), []).unwrap();
    assert!(gone > 0, "there was nothing to forget");
}

#[test]
fn a_server_that_forgets_is_found_out() {
    let options = kill::Options { binary: binary(), rounds: 3, seed: 1, meddle: forget_a_little };
    let data = tempfile::tempdir().unwrap();
    let why = kill::run_in(data.path(), &options, |_| {})
        .expect_err("it forgot what it had acknowledged")
        .to_string();
    assert!(why.starts_with("team team0: "), "{why}");
}
