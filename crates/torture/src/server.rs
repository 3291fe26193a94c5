//! The server: its own process, ended without warning.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;
use crate::{Outcome, Torment};

/// How long a server may take to say where it listens.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where the server's binary is: `SWITCHBOARD_BIN`, or beside the folder of this program's own tests.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("SWITCHBOARD_BIN") {
        return path.into();
    }
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    folder.unwrap_or(Path::new("target/debug")).join("switchboard")
}

/// A running server. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// From the start of the process to the answer of its first call.
    pub answered_in: Duration,
}

impl Server {
    /// Starts the server over `data` and waits until it answers a call that needs its journal.
    pub fn start(binary: &Path, data: &Path) -> Outcome<Self> {
        Self::start_with(binary, data, &[])
    }

    /// The same, with further `options` of the command line.
    pub fn start_with(binary: &Path, data: &Path, options: &[&str]) -> Outcome<Self> {
        let began = Instant::now();
        let child = spawn(binary, data, options)?;
        // From here on whatever fails ends the process.
        let mut server = Self { child, address: ([127, 0, 0, 1], 0).into(), answered_in: Duration::ZERO };
        server.address = server.wait_for_address(data, began)?;
        let mut client = Client::connect(server.address)?;
        client.call("agent_list", &serde_json::json!({"project": "first-answer"}), None)?;
        server.answered_in = began.elapsed();
        Ok(server)
    }

    /// Starts the server over `data` with `options` and kills it `after` so long, however far it is.
    pub fn start_and_kill(binary: &Path, data: &Path, options: &[&str], after: Duration) -> Outcome {
        let mut child = spawn(binary, data, options)?;
        std::thread::sleep(after);
        end(&mut child);
        Ok(())
    }

    /// Ends the server at once, with no chance to finish anything.
    pub fn kill(mut self) {
        end(&mut self.child);
    }

    fn wait_for_address(&mut self, data: &Path, began: Instant) -> Outcome<SocketAddr> {
        let file = data.join("server.json");
        loop {
            let listening = std::fs::read_to_string(&file)
                .ok()
                .and_then(|text| serde_json::from_str::<Value>(&text).ok())
                // A file that a killed predecessor left names another process.
                .filter(|described| described["pid"] == self.child.id())
                .and_then(|described| described["listeners"][0]["address"].as_str()?.parse().ok());
            if let Some(address) = listening {
                return Ok(address);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = std::fs::read_to_string(log_of(data)).unwrap_or_default();
                return Err(Torment::broken(format!(
                    "the server did not start, it ended with {status}: {log}"
                )));
            }
            if began.elapsed() > PATIENCE {
                return Err(Torment::broken(format!(
                    "the server did not say within {PATIENCE:?} where it listens"
                )));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself; whoever waits for its answers finds out.
    let _ = child.kill();
    let _ = child.wait();
}

fn log_of(data: &Path) -> PathBuf {
    data.join("torture.log")
}

fn spawn(binary: &Path, data: &Path, options: &[&str]) -> Outcome<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(log_of(data))
        .map_err(Torment::stuck("opening the server's log"))?;
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SWITCHBOARD_") {
            command.env_remove(name);
        }
    }
    command
        .args(["serve", "--listen", "127.0.0.1:0=all", "--data-dir"])
        .arg(data)
        .args(options)
        // Options of whoever runs this are not the subject.
        .env("XDG_CONFIG_HOME", data)
        .env("SWITCHBOARD_LOG_LEVEL", "warn")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        .spawn()
        .map_err(Torment::stuck(format!(
            "starting '{}' (build it with `cargo build -p switchboard`)",
            binary.display()
        )))
}
