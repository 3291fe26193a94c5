//! Runs of many seeds with schedules. Each test is a part of them, so that the parts run side by side.

use switchboard_sim::schedules::world;
use switchboard_sim::seeds::{Suite, run_part};

const SUITE: Suite = Suite { test: "schedules", run: world::run };

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..16 {
        let (first, second) = (world::run(seed, false), world::run(seed, false));
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(world::run(0, false).digest, world::run(2, false).digest);
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => {
        const PARTS: u64 = [$($part),*].len() as u64;
        $(
            #[test]
            fn $name() {
                run_part(SUITE, $part, PARTS);
            }
        )*
    };
}

parts! {
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_00 0
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_01 1
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_02 2
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_03 3
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_04 4
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_05 5
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_06 6
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_07 7
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_08 8
    every_due_time_is_decided_once_and_nothing_is_delivered_without_a_claim_09 9
}
