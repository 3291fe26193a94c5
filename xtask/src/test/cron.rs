//! Our cron expressions beside those of croniter.

use super::tally::Tally;
use crate::setup::Tools;
use crate::shell::Command;
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

/// Runs `tests/cron` against the example `next_occurrences`.
pub(super) fn run(workspace: &Workspace, tools: &Tools, extra: &[String]) -> Outcome<Tally> {
    Command::new("cargo")
        .args(["build", "--package=switchboard-schedule", "--example=next_occurrences"])
        .within(&workspace.root)
        .run()
        .map_err(|_| Failure::new("the example 'next_occurrences' does not build"))?;
    let finished = Command::new(&tools.croniter)
        .args(["-m", "pytest", "--quiet"])
        .args(extra)
        .within(workspace.root.join("tests/cron"))
        .env("NEXT_OCCURRENCES", workspace.target().join("debug/examples/next_occurrences"))
        .stream()?;
    Ok(Tally::ended(Tally::of_pytest(&finished.output), finished.success))
}
