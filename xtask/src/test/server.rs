//! A server of its own for a suite, on a free port and an empty data folder.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::workspace::Workspace;
use crate::{Failure, Outcome};

const START_WITHIN: Duration = Duration::from_secs(10);
const STOP_WITHIN: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(5);

pub(super) struct Server {
    /// `host:port` of its only listener.
    pub(super) address: String,
    child: Child,
    data: TempDir,
}

impl Server {
    /// Starts a server whose bare `/mcp` shows `toolset` and waits until it answers.
    pub(super) fn start(workspace: &Workspace, toolset: &str) -> Outcome<Self> {
        let data = tempfile::tempdir()?;
        let binary = workspace.server_binary();
        let child = std::process::Command::new(&binary)
            .args(["serve", "--listen", &format!("127.0.0.1:0={toolset}"), "--data-dir"])
            .arg(data.path())
            .env("SWITCHBOARD_TEST_TOOLSET", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::new(format!("{} cannot be started: {error}", binary.display())))?;
        let mut server = Self { address: String::new(), child, data };
        server.address = server.wait_for_address()?;
        server.drain_log();
        Ok(server)
    }

    /// The server writes `server.json` once all its listeners accept connections.
    fn wait_for_address(&mut self) -> Outcome<String> {
        let ready = self.data.path().join("server.json");
        let started = Instant::now();
        while started.elapsed() < START_WITHIN {
            if let Some(address) = fs::read(&ready).ok().and_then(|text| address_in(&text)) {
                return Ok(address);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(Failure::new(format!("the server ended with {status}: {}", self.log())));
            }
            std::thread::sleep(GLANCE);
        }
        Err(Failure::new(format!("the server was not ready within {START_WITHIN:?}")))
    }

    fn log(&mut self) -> String {
        let mut log = String::new();
        if let Some(stderr) = self.child.stderr.as_mut() {
            // What it could not tell is not worth failing for: the caller reports a failure already.
            let _ = stderr.read_to_string(&mut log);
        }
        log
    }

    /// Keeps the pipe of its log empty, so that it never blocks on writing.
    fn drain_log(&mut self) {
        if let Some(mut stderr) = self.child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < STOP_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(GLANCE);
        }
        eprintln!("the server did not stop within {STOP_WITHIN:?} and is killed");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address_in(server_json: &[u8]) -> Option<String> {
    let described: Value = serde_json::from_slice(server_json).ok()?;
    Some(described["listeners"][0]["address"].as_str()?.to_owned())
}
