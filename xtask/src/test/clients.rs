//! The acceptance checks of the catalogue `a2amcp` through the official SDKs.

use std::path::{Path, PathBuf};

use super::tally::Tally;
use crate::Outcome;
use crate::setup::Tools;
use crate::shell::Command;
use crate::workspace::Workspace;

/// One run of `tests/clients/python`: an SDK generation over a transport.
pub(super) struct PythonSuite {
    sdk: &'static str,
    interpreter: PathBuf,
    transport: &'static str,
}

/// Both generations over Streamable HTTP, and the other two transports once each.
pub(super) fn python_suites(tools: &Tools) -> Vec<PythonSuite> {
    let suite = |index: usize, transport| {
        tools.pythons.get(index).map(|python| PythonSuite {
            sdk: python.name,
            interpreter: python.interpreter.clone(),
            transport,
        })
    };
    [suite(0, "http"), suite(1, "http"), suite(0, "sse"), suite(1, "stdio")].into_iter().flatten().collect()
}

impl PythonSuite {
    pub(super) fn name(&self) -> String {
        format!("python {} {}", self.sdk, self.transport)
    }

    pub(super) fn run(&self, workspace: &Workspace, extra: &[String]) -> Outcome<Tally> {
        let finished = Command::new(&self.interpreter)
            .args(["-m", "pytest", "--quiet", &format!("--transport={}", self.transport)])
            .args(extra)
            .within(folder(workspace, "python"))
            .env("SWITCHBOARD_BIN", workspace.server_binary())
            .stream()?;
        Ok(Tally::ended(Tally::of_pytest(&finished.output), finished.success))
    }
}

pub(super) fn typescript(workspace: &Workspace, tools: &Tools, extra: &[String]) -> Outcome<Tally> {
    let folder = folder(workspace, "typescript");
    let finished = Command::new(&tools.node)
        .args(["--test", "--test-reporter=spec", "--test-timeout=60000"])
        .args(extra)
        .args(test_files(&folder)?)
        .within(&folder)
        .env("SWITCHBOARD_BIN", workspace.server_binary())
        .stream()?;
    Ok(Tally::ended(Tally::of_node(&finished.output), finished.success))
}

fn folder(workspace: &Workspace, language: &str) -> PathBuf {
    workspace.root.join("tests/clients").join(language)
}

/// The `*.test.ts` of a folder, in order of their names.
fn test_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".test.ts"));
    files.sort();
    Ok(files)
}
