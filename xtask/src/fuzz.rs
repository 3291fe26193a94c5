//! `cargo xtask fuzz`: lets libFuzzer look for inputs that break a parser, guided by the code that each input reaches.
//!
//! Stable Rust can do it: the compiler's own pass counts what is reached, and libFuzzer is compiled from its C++ source. The
//! build has a folder of its own, since nothing else wants code that counts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::Command;
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

/// The flags that make the compiler count which code is reached and what is compared with what.
const COUNTING: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                        -Cllvm-args=-sanitizer-coverage-pc-table \
                        -Cllvm-args=-sanitizer-coverage-trace-compares";

/// How long one input may take, in seconds. Time is virtual in there: whatever takes longer hangs.
const TIMEOUT: u32 = 10;

struct Wish {
    targets: Vec<String>,
    seconds: u64,
    input: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Outcome {
    let all = targets(workspace)?;
    let wish = understand(arguments, &all)?;
    let engine = build(workspace)?;
    if let ([target], Some(input)) = (&wish.targets[..], &wish.input) {
        return Command::new(&engine).arg(input).env("FUZZ_TARGET", target).run();
    }
    let mut broken = Vec::new();
    for target in &wish.targets {
        println!("\n── {target}, {} s", wish.seconds);
        if !fuzz(workspace, &engine, target, wish.seconds)? {
            broken.push(target.clone());
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::new(format!("found in {}", broken.join(", ")))) }
}

/// A target is what has seeds.
fn targets(workspace: &Workspace) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace.root.join("fuzz/corpus"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn understand(arguments: &[String], all: &[String]) -> Outcome<Wish> {
    let mut wish = Wish { targets: Vec::new(), seconds: 60, input: None };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let seconds = rest.next().and_then(|seconds| seconds.parse().ok());
            wish.seconds = seconds.ok_or_else(|| Failure::new("--seconds takes a number"))?;
        } else if all.contains(argument) {
            wish.targets.push(argument.clone());
        } else if wish.targets.len() == 1 && Path::new(argument).is_file() {
            wish.input = Some(argument.into());
        } else {
            return Err(Failure::new(format!("'{argument}' is no target; there are {}", all.join(", "))));
        }
    }
    if wish.targets.is_empty() {
        wish.targets = all.to_vec();
    }
    Ok(wish)
}

fn build(workspace: &Workspace) -> Outcome<PathBuf> {
    let version = Command::new("rustc").arg("-vV").read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Failure::new("rustc does not say for which machine it compiles"))?;
    let folder = workspace.target().join("fuzz");
    Command::new("cargo")
        .args(["build", "--package", "switchboard-fuzz", "--features", "engine", "--profile", "fuzz"])
        // Named, so that build scripts and macros are compiled without the flags.
        .args(["--target", host, "--target-dir"])
        .arg(&folder)
        .env("RUSTFLAGS", COUNTING)
        .within(&workspace.root)
        .run()?;
    Ok(folder.join(host).join("fuzz/switchboard-fuzz"))
}

/// Answers whether nothing was found.
fn fuzz(workspace: &Workspace, engine: &Path, target: &str, seconds: u64) -> Outcome<bool> {
    let seeds = workspace.root.join("fuzz/corpus").join(target);
    // What reaches new code is kept from run to run, and is not worth committing.
    let kept = workspace.target().join("fuzz/corpus").join(target);
    let found = workspace.target().join("fuzz/found").join(target);
    fs::create_dir_all(&kept)?;
    fs::create_dir_all(&found)?;
    let before = files_in(&found)?;
    let ended_well = Command::new(engine)
        .env("FUZZ_TARGET", target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .args(["-max_len=16384", "-print_final_stats=1", "-verbosity=1"])
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args([&kept, &seeds])
        .run()
        .is_ok();
    for file in files_in(&found)?.iter().filter(|file| !before.contains(file)) {
        println!(
            "found {file}\n  see it again:  cargo xtask fuzz {target} {file}\n  keep it:       cp {file} {}",
            seeds.join("found-NAME").display(),
            file = file.display()
        );
    }
    Ok(ended_well)
}

fn files_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(arguments: &[&str]) -> Outcome<(Vec<String>, u64)> {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let all = ["http", "paths"].map(str::to_owned);
        understand(&arguments, &all).map(|wish| (wish.targets, wish.seconds))
    }

    #[test]
    fn without_a_name_every_target_has_its_turn() -> Outcome {
        assert_eq!(wish(&[])?, (vec!["http".to_owned(), "paths".to_owned()], 60));
        assert_eq!(wish(&["paths", "--seconds", "5"])?, (vec!["paths".to_owned()], 5));
        assert!(wish(&["pahts"]).is_err());
        assert!(wish(&["--seconds", "soon"]).is_err());
        Ok(())
    }
}
