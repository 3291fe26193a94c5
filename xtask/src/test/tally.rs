//! Counting what the different runners report.

use std::fmt;
use std::iter::Sum;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl Tally {
    /// A suite that could not run, or ended badly without naming a failure, counts as one failure.
    pub(super) fn broken() -> Self {
        Self { failed: 1, ..Self::default() }
    }

    /// The counts a runner printed, made honest by how it ended.
    pub(super) fn ended(counted: Option<Self>, success: bool) -> Self {
        match counted {
            Some(tally) if success || tally.failed > 0 => tally,
            Some(tally) => tally + Self::broken(),
            None => Self::broken(),
        }
    }

    /// `Summary [ 0.005s] 3 tests run: 2 passed, 1 failed, 1 timed out, 4 skipped`.
    pub(super) fn of_nextest(output: &str) -> Option<Self> {
        let line = output.lines().rev().find(|line| line.trim_start().starts_with("Summary ["))?;
        let (_, counts) = line.split_once("run:")?;
        Some(Self {
            passed: count(counts, &["passed"]),
            failed: count(counts, &["failed", "timed out", "exec failed"]),
            skipped: count(counts, &["skipped"]),
        })
    }

    /// Every `test result: ok. 2 passed; 0 failed; 1 ignored; …` of a `cargo test`.
    pub(super) fn of_cargo_test(output: &str) -> Option<Self> {
        let lines: Vec<&str> =
            output.lines().filter_map(|line| line.trim_start().strip_prefix("test result:")).collect();
        let tally = |line: &&str| Self {
            passed: count(line, &["passed"]),
            failed: count(line, &["failed"]),
            skipped: count(line, &["ignored"]),
        };
        (!lines.is_empty()).then(|| lines.iter().map(tally).sum())
    }

    /// `==== 1 failed, 40 passed, 3 skipped, 1 error in 12.3s ====`, or the same without the signs.
    pub(super) fn of_pytest(output: &str) -> Option<Self> {
        let is_number = |c: char| c.is_ascii_digit();
        let counts = |line: &str| {
            let (counts, took) = line.trim_matches(['=', ' ']).split_once(" in ")?;
            let closes = counts.starts_with(is_number) && took.starts_with(is_number);
            closes.then(|| counts.to_owned())
        };
        let counts = output.lines().rev().find_map(counts)?;
        Some(Self {
            passed: count(&counts, &["passed", "xpassed"]),
            failed: count(&counts, &["failed", "error", "errors"]),
            skipped: count(&counts, &["skipped", "xfailed"]),
        })
    }

    /// The closing lines of `node --test`: `ℹ pass 4`, or `# pass 4` in TAP.
    pub(super) fn of_node(output: &str) -> Option<Self> {
        let number = |name: &str| {
            let value = |line: &str| {
                line.strip_prefix("ℹ ")
                    .or_else(|| line.strip_prefix("# "))?
                    .strip_prefix(name)?
                    .trim()
                    .parse()
                    .ok()
            };
            output.lines().rev().find_map(value)
        };
        Some(Self {
            passed: number("pass ")?,
            failed: number("fail ").unwrap_or(0) + number("cancelled ").unwrap_or(0),
            skipped: number("skipped ").unwrap_or(0) + number("todo ").unwrap_or(0),
        })
    }
}

/// The sum of all numbers that stand before one of `words`, in a line such as `2 passed, 1 timed out`.
fn count(line: &str, words: &[&str]) -> u64 {
    let parts = line.split([',', ';', '.', '=']).map(str::trim);
    parts
        .filter_map(|part| {
            let (number, word) = part.split_once(' ')?;
            let named = words.iter().any(|wanted| word == *wanted || word.starts_with(&format!("{wanted} ")));
            named.then(|| number.parse::<u64>().ok()).flatten()
        })
        .sum()
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |sum, tally| sum + tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counted: Option<Tally>, passed: u64, failed: u64, skipped: u64) {
        assert_eq!(counted, Some(Tally { passed, failed, skipped }));
    }

    #[test]
    fn nextest_is_counted() {
        check(Tally::of_nextest("     Summary [   0.005s] 1 test run: 1 passed, 0 skipped\n"), 1, 0, 0);
        let mixed = "Summary [ 2.1s] 9 tests run: 5 passed (1 slow), 2 failed, 1 timed out, 3 skipped";
        check(Tally::of_nextest(mixed), 5, 3, 3);
        assert_eq!(Tally::of_nextest("error: could not compile"), None);
    }

    #[test]
    fn every_binary_of_cargo_test_is_counted() {
        let output = "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
                      test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out\n";
        check(Tally::of_cargo_test(output), 5, 4, 1);
        assert_eq!(Tally::of_cargo_test("nothing ran"), None);
    }

    #[test]
    fn pytest_is_counted() {
        check(Tally::of_pytest("===== 1 failed, 40 passed, 3 skipped, 2 errors in 12.34s =====\n"), 40, 3, 3);
        check(Tally::of_pytest("====== 7 passed in 0.50s ======\n"), 7, 0, 0);
        check(Tally::of_pytest("194 passed, 1 skipped in 37.62s\n"), 194, 0, 1);
        assert_eq!(Tally::of_pytest("no tests ran in 0.01s\n"), None);
        check(Tally::of_pytest("== 2 passed, 1 deselected, 1 warning in 62.50s (0:01:02) ==\n"), 2, 0, 0);
    }

    #[test]
    fn node_is_counted() {
        check(
            Tally::of_node("ℹ tests 5\nℹ pass 3\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n"),
            3,
            1,
            1,
        );
        check(Tally::of_node("# pass 2\n# fail 0\n# skipped 0\n"), 2, 0, 0);
    }

    #[test]
    fn a_bad_end_without_a_failure_is_a_failure() {
        let fine = Tally { passed: 3, failed: 0, skipped: 0 };
        assert_eq!(Tally::ended(Some(fine), true).failed, 0);
        assert_eq!(Tally::ended(Some(fine), false).failed, 1);
        assert_eq!(Tally::ended(None, true).failed, 1);
    }
}
