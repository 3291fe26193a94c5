//! The targets, one file each.

mod http;
mod journal;
mod paths;
mod tools;

use std::path::PathBuf;

/// A part that takes input from outside, and how input gets there.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// As `cargo xtask fuzz` knows it.
    pub name: &'static str,
    /// Hands it bytes. Panics if it does what it must not do.
    pub run: fn(&[u8]),
}

/// All targets.
pub fn all() -> [Target; 4] {
    [
        Target { name: "paths", run: paths::run },
        Target { name: "tools", run: tools::run },
        Target { name: "http", run: http::run },
        Target { name: "journal", run: journal::run },
    ]
}

/// The target called `name`.
pub fn by_name(name: &str) -> Option<Target> {
    all().into_iter().find(|target| target.name == name)
}

impl Target {
    /// The inputs that are kept for it, in the order of their names. A target without any has nothing to start from.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name);
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
    }
}
