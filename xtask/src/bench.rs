//! `cargo xtask bench`: builds the server and the load generator in release mode and lets the latter measure.

use crate::Outcome;
use crate::shell::Command;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Outcome {
    Command::new("cargo")
        .args(["build", "--release", "--package", "switchboard", "--package", "switchboard-bench"])
        .within(&workspace.root)
        .run()?;
    Command::new(workspace.release_binary("switchboard-bench"))
        .args(arguments)
        .within(&workspace.root)
        .env("SWITCHBOARD_BIN", workspace.release_binary("switchboard"))
        .run()
}
