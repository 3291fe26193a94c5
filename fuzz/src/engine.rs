//! libFuzzer over the target that `FUZZ_TARGET` names. Built and run by `cargo xtask fuzz`.

#![no_main]
#![expect(clippy::expect_used, reason = "without a target there is nothing to do")]

use std::cell::RefCell;
use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use switchboard_fuzz::{Mutator, Target, by_name};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names the target");
    by_name(&name).expect("FUZZ_TARGET names a target")
});

thread_local! {
    static MUTATOR: RefCell<Mutator> = RefCell::new(Mutator::new(&TARGET.seeds()));
}

fuzz_target!(|input: &[u8]| (TARGET.run)(input));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // The engine knows bytes; ours knows words. Both are needed to get past a parser and beyond it.
    if seed.is_multiple_of(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let changed = MUTATOR.with_borrow_mut(|mutator| mutator.change(&data[..size], seed.into()));
    let size = changed.len().min(max_size);
    data[..size].copy_from_slice(&changed[..size]);
    size
});
