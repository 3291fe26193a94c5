//! A lock that several clients want at the same instant goes to one of them.

#![expect(clippy::print_stdout, reason = "the count is quoted beside that of the system replaced")]

use switchboard_torture::{binary, race};

fn check(door: race::Door) {
    let report = race::run(&binary(), door, 8, 500).unwrap_or_else(|why| panic!("{why}"));
    println!("{report}");
    assert_eq!((report.rounds(), report.unfair_rounds()), (500, 0), "{report}");
}

#[test]
fn a_file_is_locked_for_one_client_only() {
    check(race::Door::Announce);
}

#[test]
fn a_lock_has_one_winner() {
    check(race::Door::Acquire);
}
