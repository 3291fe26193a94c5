//! `cargo xtask kill` and `cargo xtask race`: a release build of the server, tormented for as many rounds as wanted.

use crate::Outcome;
use crate::shell::Command;
use crate::workspace::Workspace;

/// Kills the server under load, again and again, and looks for what it had acknowledged.
pub(crate) fn kill(workspace: &Workspace, arguments: &[String]) -> Outcome {
    torment(workspace, "kill", arguments)
}

/// Lets clients race for a lock.
pub(crate) fn race(workspace: &Workspace, arguments: &[String]) -> Outcome {
    torment(workspace, "race", arguments)
}

fn torment(workspace: &Workspace, how: &str, arguments: &[String]) -> Outcome {
    Command::new("cargo")
        .args(["build", "--release", "--package", "switchboard", "--package", "switchboard-torture"])
        .within(&workspace.root)
        .run()?;
    Command::new(workspace.release_binary("switchboard-torture"))
        .arg(how)
        .args(arguments)
        .within(&workspace.root)
        .env("SWITCHBOARD_BIN", workspace.release_binary("switchboard"))
        .run()
}
