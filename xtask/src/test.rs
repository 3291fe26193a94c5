//! `cargo xtask test`: builds once, then runs the Rust tests, the real clients, the conformance suite and the comparison of
//! cron expressions.
//!
//! All parts run even if one fails. The last line sums them up.

mod clients;
mod conformance;
mod cron;
mod rust;
mod server;
mod tally;

use std::time::{Duration, Instant};

use tally::Tally;

use crate::setup::{self, Tools};
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

/// The parts in the order they run, and the names that select them.
const PARTS: &[(Part, &[&str])] = &[
    (Part::Rust, &["rust"]),
    (Part::Doc, &["rust", "doc"]),
    (Part::Python, &["clients", "python"]),
    (Part::TypeScript, &["clients", "typescript"]),
    (Part::Conformance, &["conformance"]),
    (Part::Cron, &["cron"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Rust,
    Doc,
    Python,
    TypeScript,
    Conformance,
    Cron,
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Outcome {
    let (names, extra) = match arguments.iter().position(|argument| argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, &[][..]),
    };
    let parts = selected(names)?;
    let needs_tools = parts.iter().any(|part| !matches!(part, Part::Rust | Part::Doc));

    let mut report = Report::default();
    let tools = if needs_tools { Some(report.step("setup", || setup::ensure(workspace))?) } else { None };
    report.step("build", || rust::build(workspace))?;
    for part in parts {
        run_part(part, workspace, tools.as_ref(), extra, &mut report)?;
    }
    report.close()
}

fn run_part(
    part: Part,
    workspace: &Workspace,
    tools: Option<&Tools>,
    extra: &[String],
    report: &mut Report,
) -> Outcome {
    let tools = || tools.ok_or_else(|| Failure::new("this part needs `setup`"));
    match part {
        Part::Rust => report.suite("rust", || rust::tests(workspace, extra)),
        Part::Doc => report.suite("doc", || rust::doc_tests(workspace)),
        Part::Python => {
            for suite in clients::python_suites(tools()?) {
                report.suite(&suite.name(), || suite.run(workspace, extra));
            }
        }
        Part::TypeScript => {
            let tools = tools()?;
            report.suite("typescript", || clients::typescript(workspace, tools, extra));
        }
        Part::Conformance => {
            let tools = tools()?;
            for revision in conformance::REVISIONS {
                let name = format!("conformance {revision}");
                report.suite(&name, || conformance::run(workspace, tools, revision));
            }
        }
        Part::Cron => {
            let tools = tools()?;
            report.suite("cron", || cron::run(workspace, tools, extra));
        }
    }
    Ok(())
}

fn selected(names: &[String]) -> Outcome<Vec<Part>> {
    let known = |name: &String| PARTS.iter().any(|(_, selectors)| selectors.contains(&name.as_str()));
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        return Err(Failure::new(format!("'{unknown}' is no part of the tests")));
    }
    let wanted =
        |selectors: &[&str]| names.is_empty() || selectors.iter().any(|s| names.iter().any(|n| n == s));
    Ok(PARTS.iter().filter(|(_, selectors)| wanted(selectors)).map(|(part, _)| *part).collect())
}

/// What has run so far: how long each step took, and the counts of each suite.
#[derive(Default)]
struct Report {
    rows: Vec<Row>,
}

struct Row {
    name: String,
    took: Duration,
    tally: Option<Tally>,
}

impl Report {
    /// A step that the rest depends on: its failure ends the run.
    fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        println!("\n── {name}");
        let started = Instant::now();
        let done = work()?;
        self.rows.push(Row { name: name.into(), took: started.elapsed(), tally: None });
        Ok(done)
    }

    /// A suite: its failures are counted and the next one runs.
    fn suite(&mut self, name: &str, work: impl FnOnce() -> Outcome<Tally>) {
        println!("\n── {name}");
        let started = Instant::now();
        let tally = work().unwrap_or_else(|Failure(reason)| {
            eprintln!("{name}: {reason}");
            Tally::broken()
        });
        self.rows.push(Row { name: name.into(), took: started.elapsed(), tally: Some(tally) });
    }

    fn close(self) -> Outcome {
        println!();
        for Row { name, took, tally } in &self.rows {
            let counts = tally.map_or_else(String::new, |tally| tally.to_string());
            println!("{name:<28} {:>7.1} s  {counts}", took.as_secs_f64());
        }
        let total: Tally = self.rows.iter().filter_map(|row| row.tally).sum();
        println!("\n{total}");
        if total.failed > 0 {
            return Err(Failure::new("there were failures"));
        }
        if total.passed == 0 {
            return Err(Failure::new("no test ran"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(names: &[&str]) -> Vec<Part> {
        selected(&names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap_or_default()
    }

    #[test]
    fn no_name_selects_everything() {
        assert_eq!(parts(&[]).len(), PARTS.len());
    }

    #[test]
    fn names_select_their_parts_in_running_order() {
        assert_eq!(parts(&["conformance", "rust"]), [Part::Rust, Part::Doc, Part::Conformance]);
        assert_eq!(parts(&["clients"]), [Part::Python, Part::TypeScript]);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(selected(&["pythn".to_owned()]).is_err());
    }
}
