//! Which seeds are run, and how a failure says its own.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::world::Summary;

/// A kind of run, and the file of tests that runs it.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// The file's name, to repeat a run.
    pub test: &'static str,
    /// Runs a seed, showing its trace or not.
    pub run: fn(u64, bool) -> Summary,
}

/// How many seeds a run of all tests has, unless `SWITCHBOARD_SIM_SEEDS` says otherwise.
const SEEDS: u64 = 1_000;

fn from_environment(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not '{text}'")))
}

/// Runs the seeds of one of `parts` equal parts. If `SWITCHBOARD_SIM_SEED` names one, it runs that one alone, in the part
/// that it belongs to, and shows its trace.
///
/// # Panics
/// If a seed breaks a rule: with the seed, and the command that repeats it.
pub fn run_part(suite: Suite, part: u64, parts: u64) {
    if let Some(seed) = from_environment("SWITCHBOARD_SIM_SEED") {
        if seed % parts == part {
            run_one(suite, seed, true);
        }
        return;
    }
    let seeds = from_environment("SWITCHBOARD_SIM_SEEDS").unwrap_or(SEEDS);
    let mut all = Totals::default();
    for seed in share(part, parts, seeds) {
        all.add(run_one(suite, seed, false));
    }
    // Written for whoever looks at the output of a test that passed.
    let _ = writeln!(std::io::stdout(), "{}", all.text());
}

fn share(part: u64, parts: u64, seeds: u64) -> impl Iterator<Item = u64> {
    let all: Range<u64> = 0..seeds;
    all.filter(move |seed| seed % parts == part)
}

/// Runs one seed.
///
/// # Panics
/// If it breaks a rule.
pub fn run_one(suite: Suite, seed: u64, shown: bool) -> Summary {
    match catch_unwind(AssertUnwindSafe(|| (suite.run)(seed, shown))) {
        Ok(summary) => summary,
        Err(panic) => {
            let test = suite.test;
            let _ = writeln!(
                std::io::stderr(),
                "\nseed {seed} broke a rule. To see it again, line by line:\n    \
                 SWITCHBOARD_SIM_SEED={seed} cargo nextest run -p switchboard-sim --test {test} --no-capture\n"
            );
            resume_unwind(panic)
        }
    }
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    entries: u64,
    audits: u64,
    conflicts: u64,
    deliveries: u64,
}

impl Totals {
    fn add(&mut self, summary: Summary) {
        self.seeds += 1;
        self.entries += summary.entries;
        self.audits += summary.audits;
        self.conflicts += summary.conflicts;
        self.deliveries += summary.deliveries;
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let _ = write!(
            text,
            "{} seeds, {} entries, {} comparisons of states, {} lost races",
            self.seeds, self.entries, self.audits, self.conflicts
        );
        if self.deliveries > 0 {
            let _ = write!(text, ", {} attempts to deliver", self.deliveries);
        }
        text
    }
}
