//! The server under measurement: its own process, its own data directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Where the server's binary is: `SWITCHBOARD_BIN`, which `cargo xtask bench` sets.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("SWITCHBOARD_BIN").map(PathBuf::from).expect("SWITCHBOARD_BIN names the server's binary")
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to its listeners' accepting.
    pub(crate) started_in: Duration,
}

impl Server {
    /// Starts a server over `data`, and waits until it answers.
    pub(crate) fn start(data: &Path) -> Self {
        let began = Instant::now();
        let child = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0=all", "--data-dir"])
            .arg(data)
            .env("SWITCHBOARD_TEST_TOOLSET", "1")
            .env("SWITCHBOARD_LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server starts");
        let address = wait_for_address(&data.join("server.json"), child.id());
        while std::net::TcpStream::connect(address).is_err() {
            std::thread::sleep(Duration::from_micros(200));
        }
        Self { child, address, started_in: began.elapsed() }
    }

    /// Resident memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        resident(self.child.id())
    }

    /// CPU time used so far.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().filter_map(|index| fields.get(*index)?.parse::<u64>().ok()).sum();
        // Linux counts in hundredths of a second on every common configuration.
        Duration::from_millis(ticks * 10)
    }

    /// Ends the server at once, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1024
}

fn wait_for_address(file: &Path, pid: u32) -> SocketAddr {
    let give_up = Instant::now() + Duration::from_mins(2);
    loop {
        let listening = std::fs::read_to_string(file)
            .ok()
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            // A file that a killed predecessor left names another process.
            .filter(|described| described["pid"] == pid)
            .and_then(|described| described["listeners"][0]["address"].as_str()?.parse().ok());
        if let Some(address) = listening {
            return address;
        }
        assert!(Instant::now() < give_up, "the server did not say in two minutes where it listens");
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// A data directory that is gone when dropped.
pub(crate) fn data_dir() -> TempDir {
    tempfile::Builder::new().prefix("switchboard-bench-").tempdir().expect("a temporary directory")
}
