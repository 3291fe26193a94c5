//! What only this repository knows about itself: which strings must not be committed, which crate may use which, and
//! that the documents name what exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::shell::Command;
use crate::workspace::{Member, Workspace};
use crate::{Failure, Outcome};

/// Our crates in layers, lowest first. A crate may use those below its own layer and none beside it.
const LAYERS: &[&[&str]] = &[
    &["switchboard-journal", "switchboard-outbound"],
    &["switchboard-exchange"],
    &[
        "switchboard-coordination",
        "switchboard-access",
        "switchboard-schedule",
        "switchboard-bus",
        "switchboard-letta",
    ],
    &["switchboard-tools"],
    &["switchboard-targets"],
    &["switchboard-server"],
    &["switchboard"],
];

/// Crates beside the layers, and all that they may use of ours.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "switchboard-bench",
        &[
            "switchboard-bus",
            "switchboard-coordination",
            "switchboard-exchange",
            "switchboard-journal",
            "switchboard-outbound",
            "switchboard-schedule",
            "switchboard-targets",
        ],
    ),
    (
        "switchboard-sim",
        &["switchboard-coordination", "switchboard-exchange", "switchboard-journal", "switchboard-schedule"],
    ),
    ("switchboard-torture", &[]),
    (
        "switchboard-fuzz",
        &[
            "switchboard-access",
            "switchboard-bus",
            "switchboard-coordination",
            "switchboard-exchange",
            "switchboard-journal",
            "switchboard-letta",
            "switchboard-schedule",
            "switchboard-server",
            "switchboard-targets",
            "switchboard-tools",
        ],
    ),
    ("xtask", &[]),
];

pub(super) fn run(workspace: &Workspace) -> Outcome {
    let mut problems = Vec::new();
    for path in committed_files(workspace)? {
        // Deleted, yet still in the index; or a link to a folder.
        let Ok(bytes) = fs::read(workspace.root.join(&path)) else { continue };
        // Pictures and the like.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        problems.extend(forbidden_strings(&path, &text));
    }
    let members = workspace.members();
    problems.extend(members.iter().flat_map(wrong_dependencies));
    problems.extend(clocks_within_reach(&members)?);
    problems.extend(documents(workspace, &members));

    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        found => Err(Failure::new(format!("{found} problems"))),
    }
}

/// Every file that is or could be committed now.
fn committed_files(workspace: &Workspace) -> Outcome<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .within(&workspace.root)
        .read()?;
    Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Strings that are true on one machine only, or that a release must not contain. Written in two halves, so that this
/// file does not find itself.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("/wo", "rk/", "a path of one machine"),
    ("/tmp/bash", "_jobs", "a path of one machine"),
    ("registry.npm", "js.org", "a registry's address"),
    ("registry.yarn", "pkg.com", "a registry's address"),
    ("pypi", ".org", "a registry's address"),
    ("python", "hosted.org", "a registry's address"),
    ("static.crates", ".io", "a registry's address"),
    ("index.crates", ".io", "a registry's address"),
    ("deb.debian", ".org", "a registry's address"),
    ("proxy.golang", ".org", "a registry's address"),
    ("tod", "o!(", "unfinished code"),
];

fn forbidden_strings(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for (head, tail, why) in FORBIDDEN {
            let forbidden = format!("{head}{tail}");
            if line.match_indices(&forbidden).any(|(at, _)| begins_a_word(line, at)) {
                problems.push(format!("{path}:{number}: {why}: {forbidden}"));
            }
        }
    }
    problems
}

/// Whether what starts at `at` is not merely the end of a longer name (`frame` before it) or path (`C:` before it).
fn begins_a_word(line: &str, at: usize) -> bool {
    let before = &line[..at];
    let part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    let after_a_drive = before.strip_suffix(':').is_some_and(|rest| rest.ends_with(part_of_a_name));
    !before.ends_with(part_of_a_name) && !after_a_drive
}

fn wrong_dependencies(member: &Member) -> Vec<String> {
    let layer_of = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let beside = BESIDE.iter().find(|(name, _)| *name == member.name);
    let allowed = |used: &str| match (beside, layer_of(&member.name)) {
        (Some((_, uses)), _) => uses.contains(&used),
        (None, Some(own)) => used == member.name || layer_of(used).is_some_and(|layer| layer < own),
        (None, None) => false,
    };
    if beside.is_none() && layer_of(&member.name).is_none() {
        return vec![format!(
            "{}: has no place in the layers that xtask/src/lint/tidy.rs lists",
            member.name
        )];
    }
    let wrong = member.uses.iter().filter(|used| !allowed(used)).collect::<BTreeSet<_>>();
    wrong.iter().map(|used| format!("{}: must not depend on {used}", member.name)).collect()
}

/// Crates that hold machines forbid clocks and randomness with a `clippy.toml` of their own.
fn clocks_within_reach(members: &[Member]) -> Outcome<Vec<String>> {
    let mut problems = Vec::new();
    for member in members {
        if !holds_machines(&member.folder.join("src"))? {
            continue;
        }
        let lints = fs::read_to_string(member.folder.join("clippy.toml")).unwrap_or_default();
        if !lints.contains("disallowed-methods") {
            problems.push(format!(
                "{}: holds machines, yet has no clippy.toml with disallowed-methods",
                member.name
            ));
        }
    }
    Ok(problems)
}

fn holds_machines(folder: &Path) -> Outcome<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            holds_machines(&path)?
        } else {
            path.extension().is_some_and(|extension| extension == "rs")
                && fs::read_to_string(&path)?.lines().any(|line| line.starts_with("impl Machine for "))
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// ARCHITECTURE.md lists every crate, and what it and the README name exists.
fn documents(workspace: &Workspace, members: &[Member]) -> Vec<String> {
    let mut problems = Vec::new();
    for document in ["ARCHITECTURE.md", "README.md"] {
        let Ok(text) = fs::read_to_string(workspace.root.join(document)) else {
            problems.push(format!("{document}: is missing"));
            continue;
        };
        for (number, path) in paths_in(&text) {
            if !workspace.root.join(&path).exists() {
                problems.push(format!("{document}:{number}: {path} does not exist"));
            }
        }
        if document == "ARCHITECTURE.md" {
            problems.extend(unlisted_crates(workspace, members, &text));
        }
    }
    problems
}

fn unlisted_crates(workspace: &Workspace, members: &[Member], text: &str) -> Vec<String> {
    let folders = members.iter().map(|member| {
        let folder = member.folder.strip_prefix(&workspace.root).unwrap_or(&member.folder);
        folder.to_string_lossy().into_owned()
    });
    let listed: BTreeSet<String> = paths_in(text).into_iter().map(|(_, path)| path).collect();
    let named = |folder: &String| listed.iter().any(|path| path.trim_end_matches('/') == folder);
    folders
        .filter(|folder| folder.starts_with("crates/") && !named(folder))
        .map(|folder| format!("ARCHITECTURE.md: does not list `{folder}`"))
        .collect()
}

/// The paths that a document names in backticks, with their line numbers.
fn paths_in(text: &str) -> Vec<(usize, String)> {
    let roots = ["crates/", "xtask/", "tests/", ".ci/"];
    let is_path = |span: &&str| {
        roots.iter().any(|root| span.starts_with(root))
            && span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
    };
    let spans = |line: &str| -> Vec<String> {
        line.split('`').skip(1).step_by(2).filter(is_path).map(str::to_owned).collect()
    };
    (1..)
        .zip(text.lines())
        .flat_map(|(number, line)| spans(line).into_iter().map(move |span| (number, span)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, uses: &[&str]) -> Member {
        let uses = uses.iter().map(ToString::to_string).collect();
        Member { name: name.into(), folder: format!("crates/{name}").into(), uses }
    }

    #[test]
    fn dependencies_point_down() {
        assert!(wrong_dependencies(&member("switchboard-exchange", &["switchboard-journal"])).is_empty());
        assert_eq!(
            wrong_dependencies(&member("switchboard-journal", &["switchboard-exchange"])),
            ["switchboard-journal: must not depend on switchboard-exchange"]
        );
    }

    #[test]
    fn capabilities_do_not_use_each_other() {
        assert_eq!(wrong_dependencies(&member("switchboard-coordination", &["switchboard-access"])).len(), 1);
    }

    #[test]
    fn the_simulation_uses_no_edge() {
        assert!(wrong_dependencies(&member("switchboard-sim", &["switchboard-coordination"])).is_empty());
        assert_eq!(wrong_dependencies(&member("switchboard-sim", &["switchboard-server"])).len(), 1);
    }

    #[test]
    fn a_crate_without_a_layer_is_a_problem() {
        assert_eq!(wrong_dependencies(&member("switchboard-new", &[])).len(), 1);
    }

    #[test]
    fn machine_paths_are_found_where_they_begin() {
        let path = |head: &str| format!("{head}/wo{}x", "rk/");
        assert_eq!(forbidden_strings("f", &path("")).len(), 1);
        assert_eq!(forbidden_strings("f", &path("see `")).len(), 1);
        assert!(forbidden_strings("f", &path("home")).is_empty());
        assert!(forbidden_strings("f", &path("C:")).is_empty());
    }

    #[test]
    fn only_plain_paths_are_checked() {
        let text = "| `crates/journal` | `crates/{a,b}` |\nsrc/`x` and `tests/clients/` or `crates/no such`";
        assert_eq!(paths_in(text), [(1, "crates/journal".to_owned()), (2, "tests/clients/".to_owned())]);
    }
}
