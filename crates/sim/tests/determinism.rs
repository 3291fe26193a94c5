//! A seed reproduces a run.

use switchboard_sim::world::run;

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..24 {
        let (first, second) = (run(seed, false), run(seed, false));
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(run(0, false).digest, run(2, false).digest);
}
