//! Where things are: the repository, what cargo builds, what `setup` installs.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::shell::Command;
use crate::{Failure, Outcome};

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// `cargo metadata --no-deps`.
    metadata: Value,
}

/// A crate of this repository and which of its siblings it depends on.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) uses: Vec<String>,
}

impl Workspace {
    pub(crate) fn locate() -> Outcome<Self> {
        let manifest_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root =
            manifest_folder.parent().ok_or_else(|| Failure::new("xtask has no parent folder"))?.to_owned();
        let text = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version=1"])
            .within(&root)
            .read()?;
        let metadata = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("cargo metadata cannot be read: {error}")))?;
        Ok(Self { root, metadata })
    }

    /// The server that the client tests start.
    pub(crate) fn server_binary(&self) -> PathBuf {
        self.target().join("debug/switchboard")
    }

    pub(crate) fn release_binary(&self, name: &str) -> PathBuf {
        self.target().join("release").join(name)
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> &Path {
        Path::new(self.metadata["target_directory"].as_str().unwrap_or("target"))
    }

    /// What `setup` installs; not under version control.
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join(".tools")
    }

    /// The official clients and the conformance suite, locked in `package-lock.json`.
    pub(crate) fn npm_project(&self) -> PathBuf {
        self.root.join("tests")
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        let packages = self.metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
        let ours: Vec<String> = packages.iter().map(name).collect();
        packages
            .iter()
            .map(|package| {
                let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
                let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
                Member {
                    name: name(package),
                    folder: manifest.parent().unwrap_or(&self.root).to_owned(),
                    uses: dependencies.iter().map(name).filter(|used| ours.contains(used)).collect(),
                }
            })
            .collect()
    }
}
