//! Our own tests, by nextest where it is installed.

use super::tally::Tally;
use crate::shell::Command;
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

/// Builds all that later steps use, so that each of them finds it built: the binaries and every test, in one profile.
pub(super) fn build(workspace: &Workspace) -> Outcome {
    Command::new("cargo")
        .args(["build", "--workspace", "--bins", "--tests"])
        .within(&workspace.root)
        .run()
        .map_err(|_| Failure::new("the workspace does not build"))
}

pub(super) fn tests(workspace: &Workspace, extra: &[String]) -> Outcome<Tally> {
    if Command::new("cargo").args(["nextest", "--version"]).succeeds() {
        let finished = Command::new("cargo")
            .args(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"])
            .args(["--status-level=fail", "--final-status-level=slow"])
            .args(extra)
            .within(&workspace.root)
            .env("SWITCHBOARD_BIN", workspace.server_binary())
            .stream()?;
        return Ok(Tally::ended(Tally::of_nextest(&finished.output), finished.success));
    }
    let finished = Command::new("cargo")
        .args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast", "--quiet"])
        .args(extra)
        .within(&workspace.root)
        .env("SWITCHBOARD_BIN", workspace.server_binary())
        .stream()?;
    Ok(Tally::ended(Tally::of_cargo_test(&finished.output), finished.success))
}

pub(super) fn doc_tests(workspace: &Workspace) -> Outcome<Tally> {
    let finished = Command::new("cargo")
        .args(["test", "--workspace", "--doc", "--no-fail-fast", "--quiet"])
        .within(&workspace.root)
        .stream()?;
    Ok(Tally::ended(Tally::of_cargo_test(&finished.output), finished.success))
}
