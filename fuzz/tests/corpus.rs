//! Every seed, and a few thousand inputs made of them, through every target. `cargo xtask fuzz` goes further.

#![allow(clippy::expect_used, reason = "tests")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use switchboard_fuzz::{Mutator, Target, all, by_name};

/// How many inputs are made of a target's seeds.
const MADE: u64 = 2_000;

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Counts panics of this thread, also those that the server itself catches: it must not come to that.
fn count_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |why| {
        PANICS.set(PANICS.get() + 1);
        before(why);
    }));
}

fn survives(target: Target, input: &[u8]) -> bool {
    let before = PANICS.get();
    let ended_well = catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok();
    ended_well && PANICS.get() == before
}

fn check(name: &str) {
    count_panics();
    let target = by_name(name).expect("there is such a target");
    let seeds = target.seeds();
    assert!(!seeds.is_empty(), "there are no seeds for {name}");
    let mutator = Mutator::new(&seeds);
    let made = (0..MADE).map(|number| mutator.make(number));
    for input in seeds.iter().cloned().chain(made) {
        assert!(survives(target, &input), "{name}: {}", String::from_utf8_lossy(&input));
    }
}

#[test]
fn every_target_is_tested() {
    let tested = ["paths", "tools", "http", "journal"];
    assert!(all().iter().all(|target| tested.contains(&target.name)));
}

#[test]
fn paths_and_patterns() {
    check("paths");
}

#[test]
fn tool_calls() {
    check("tools");
}

#[test]
fn http_requests() {
    check("http");
}

#[test]
fn entries_and_snapshots() {
    check("journal");
}
