//! `cargo xtask lint`: formatting, clippy, and [`tidy`]. All of them run even if one finds something.

mod tidy;

use crate::shell::Command;
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

type Check = fn(&Workspace) -> Outcome;

const CHECKS: &[(&str, Check)] = &[("fmt", fmt), ("clippy", clippy), ("tidy", tidy::run)];

pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !CHECKS.iter().any(|(check, _)| check == name)) {
        return Err(Failure::new(format!("there is no check '{unknown}'")));
    }
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        println!("── {name}");
        if let Err(Failure(reason)) = check(workspace) {
            eprintln!("{name}: {reason}");
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format!("{} failed", failed.join(", ")))) }
}

fn fmt(workspace: &Workspace) -> Outcome {
    Command::new("cargo").args(["fmt", "--all", "--check"]).within(&workspace.root).run()
}

fn clippy(workspace: &Workspace) -> Outcome {
    Command::new("cargo")
        .args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
        .within(&workspace.root)
        .run()
}
