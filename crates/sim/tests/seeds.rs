//! Runs of many seeds. Each test is a part of them, so that the parts run side by side.

use switchboard_sim::seeds::{Suite, run_part};
use switchboard_sim::world;

const SUITE: Suite = Suite { test: "seeds", run: world::run };

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
    agents_never_share_a_lock_and_lose_no_message_00 0
    agents_never_share_a_lock_and_lose_no_message_01 1
    agents_never_share_a_lock_and_lose_no_message_02 2
    agents_never_share_a_lock_and_lose_no_message_03 3
    agents_never_share_a_lock_and_lose_no_message_04 4
    agents_never_share_a_lock_and_lose_no_message_05 5
    agents_never_share_a_lock_and_lose_no_message_06 6
    agents_never_share_a_lock_and_lose_no_message_07 7
    agents_never_share_a_lock_and_lose_no_message_08 8
    agents_never_share_a_lock_and_lose_no_message_09 9
    agents_never_share_a_lock_and_lose_no_message_10 10
    agents_never_share_a_lock_and_lose_no_message_11 11
    agents_never_share_a_lock_and_lose_no_message_12 12
    agents_never_share_a_lock_and_lose_no_message_13 13
    agents_never_share_a_lock_and_lose_no_message_14 14
    agents_never_share_a_lock_and_lose_no_message_15 15
    agents_never_share_a_lock_and_lose_no_message_16 16
    agents_never_share_a_lock_and_lose_no_message_17 17
    agents_never_share_a_lock_and_lose_no_message_18 18
    agents_never_share_a_lock_and_lose_no_message_19 19
}
