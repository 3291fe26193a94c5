//! The official conformance suite against the toolset `conformance`.
//!
//! `tests/conformance/README.md` says what that toolset holds. The suite scores only what its revision requires; we
//! judge everything it runs, warnings included, against `expected-failures-<revision>.yml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::server::Server;
use super::tally::Tally;
use crate::setup::Tools;
use crate::shell::Command;
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

pub(super) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

pub(super) fn run(workspace: &Workspace, tools: &Tools, revision: &str) -> Outcome<Tally> {
    let baseline = workspace.root.join(format!("tests/conformance/expected-failures-{revision}.yml"));
    let expected = Expected::parse(&fs::read_to_string(&baseline)?)?;
    let server = Server::start(workspace, "conformance")?;
    let results = tempfile::tempdir()?;
    let suite = workspace.npm_project().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let finished = Command::new(&tools.node)
        .arg(suite)
        .args(["server", "--url", &format!("http://{}/mcp", server.address), "--requirements", revision])
        .arg("--expected-failures")
        .arg(&baseline)
        .arg("--output-dir")
        .arg(results.path())
        .collect()?;
    let scenarios = scenarios_run(&finished.output);
    if scenarios.is_empty() {
        return Err(Failure::new(format!("the suite ran nothing:\n{}", finished.output)));
    }

    let mut tally = Tally::default();
    for scenario in scenarios {
        match judge(scenario, &checks_of(results.path(), scenario)?, &expected) {
            Verdict::Passed => tally.passed += 1,
            Verdict::Excused => tally.skipped += 1,
            Verdict::Failed(problems) => {
                tally.failed += 1;
                println!("FAILED {scenario}");
                for problem in problems {
                    println!("    {problem}");
                }
            }
        }
    }
    let unknown_to_us = !finished.success && tally.failed == 0;
    if unknown_to_us {
        println!("{}", finished.output);
    }
    println!("{tally}");
    Ok(Tally::ended(Some(tally), !unknown_to_us))
}

/// One check of a scenario, as the suite saved it.
#[derive(Debug, PartialEq)]
struct Check {
    id: String,
    status: String,
    message: String,
}

impl Check {
    fn is_bad(&self) -> bool {
        self.status == "FAILURE" || self.status == "WARNING"
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Passed,
    /// Only what the baseline lists failed.
    Excused,
    Failed(Vec<String>),
}

fn judge(scenario: &str, checks: &[Check], expected: &Expected) -> Verdict {
    let bad: Vec<&Check> = checks.iter().filter(|check| check.is_bad()).collect();
    let describe = |check: &&&Check| format!("{} {}: {}", check.status, check.id, check.message);
    match expected.of(scenario) {
        Some(Scope::Whole) if checks.is_empty() || !bad.is_empty() => Verdict::Excused,
        Some(Scope::Whole) => Verdict::Failed(vec!["passes, yet stands among the expected failures".into()]),
        Some(Scope::Checks(excused)) => {
            let mut problems: Vec<String> = bad
                .iter()
                .filter(|check| !excused.contains(&check.id))
                .map(|check| describe(&check))
                .collect();
            let passes = |id: &&String| {
                checks.iter().any(|check| check.id == **id) && !bad.iter().any(|check| check.id == **id)
            };
            problems.extend(
                excused.iter().filter(passes).map(|id| format!("{id} passes, yet is expected to fail")),
            );
            if problems.is_empty() { Verdict::Excused } else { Verdict::Failed(problems) }
        }
        None if checks.is_empty() => Verdict::Failed(vec!["could not be run to its end".into()]),
        None if bad.is_empty() => Verdict::Passed,
        None => Verdict::Failed(bad.iter().map(|check| describe(&check)).collect()),
    }
}

/// What may fail: whole scenarios, or single checks of one.
#[derive(Debug, Default)]
struct Expected(BTreeMap<String, Scope>);

#[derive(Debug)]
enum Scope {
    Whole,
    Checks(Vec<String>),
}

impl Expected {
    /// Reads the part of YAML the suite accepts: `- scenario` and `- scenario:check`, each below a comment that says why.
    fn parse(text: &str) -> Outcome<Self> {
        let mut expected = Self::default();
        let mut reason_above = false;
        for line in text.lines().map(str::trim) {
            if let Some(entry) = line.strip_prefix("- ") {
                if !reason_above {
                    return Err(Failure::new(format!("expected failure '{entry}' has no reason above it")));
                }
                expected.add(entry.trim());
            }
            reason_above = line.starts_with('#');
        }
        Ok(expected)
    }

    fn add(&mut self, entry: &str) {
        match entry.split_once(':') {
            None => {
                self.0.insert(entry.to_owned(), Scope::Whole);
            }
            Some((scenario, check)) => {
                let scope = self.0.entry(scenario.to_owned()).or_insert_with(|| Scope::Checks(Vec::new()));
                if let Scope::Checks(checks) = scope {
                    checks.push(check.to_owned());
                }
            }
        }
    }

    fn of(&self, scenario: &str) -> Option<&Scope> {
        self.0.get(scenario)
    }
}

/// The names in `=== Running scenario: <name> ===`.
fn scenarios_run(output: &str) -> Vec<&str> {
    output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("=== Running scenario: ")?.strip_suffix(" ==="))
        .collect()
}

/// Reads `server-<scenario>-<time>/checks.json`. Empty if the scenario did not get that far.
fn checks_of(results: &Path, scenario: &str) -> Outcome<Vec<Check>> {
    let prefix = format!("server-{scenario}-");
    for entry in fs::read_dir(results)? {
        let folder = entry?;
        let name = folder.file_name();
        let name = name.to_string_lossy();
        let dated =
            name.strip_prefix(&prefix).is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
        if dated {
            // The file is missing when the scenario broke off.
            let text = fs::read(folder.path().join("checks.json")).unwrap_or_default();
            return Ok(parse_checks(&text));
        }
    }
    Ok(Vec::new())
}

fn parse_checks(text: &[u8]) -> Vec<Check> {
    let parsed: Value = serde_json::from_slice(text).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let check = |check: &Value| Check {
        id: text(&check["id"]),
        status: text(&check["status"]),
        message: text(&check["errorMessage"]),
    };
    parsed.as_array().map(|checks| checks.iter().map(check).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(states: &[(&str, &str)]) -> Vec<Check> {
        let check = |&(id, status): &(&str, &str)| Check {
            id: id.into(),
            status: status.into(),
            message: "m".into(),
        };
        states.iter().map(check).collect()
    }

    fn verdict(baseline: &str, states: &[(&str, &str)]) -> Verdict {
        judge("caching", &checks(states), &Expected::parse(baseline).unwrap())
    }

    #[test]
    fn a_warning_fails_a_scenario() {
        assert_eq!(verdict("", &[("a", "SUCCESS"), ("b", "INFO"), ("c", "SKIPPED")]), Verdict::Passed);
        assert_eq!(verdict("", &[("a", "WARNING")]), Verdict::Failed(vec!["WARNING a: m".into()]));
    }

    #[test]
    fn a_scenario_that_broke_off_failed() {
        assert!(matches!(verdict("", &[]), Verdict::Failed(_)));
    }

    #[test]
    fn an_expected_failure_is_excused_until_it_passes() {
        let whole = "server:\n  # because\n  - caching\n";
        assert_eq!(verdict(whole, &[("a", "FAILURE")]), Verdict::Excused);
        assert!(matches!(verdict(whole, &[("a", "SUCCESS")]), Verdict::Failed(_)));
    }

    #[test]
    fn a_single_check_is_excused_without_the_others() {
        let single = "server:\n  # because\n  - caching:a\n";
        assert_eq!(verdict(single, &[("a", "FAILURE"), ("b", "SUCCESS")]), Verdict::Excused);
        assert!(matches!(verdict(single, &[("a", "FAILURE"), ("b", "FAILURE")]), Verdict::Failed(_)));
        assert!(matches!(verdict(single, &[("a", "SUCCESS")]), Verdict::Failed(_)));
    }

    #[test]
    fn an_expected_failure_needs_a_reason() {
        let failure = Expected::parse("server:\n  # because\n  - a\n  - b\n").unwrap_err();
        assert_eq!(failure.0, "expected failure 'b' has no reason above it");
    }

    #[test]
    fn scenarios_are_read_from_the_output() {
        assert_eq!(scenarios_run("x\n=== Running scenario: ping ===\n=== SUMMARY ===\n"), ["ping"]);
    }
}
