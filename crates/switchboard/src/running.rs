//! How the commands find the running server: `server.json` in the data directory.
//!
//! The server writes it once all its listeners accept, and removes it when it ends. One that a killed server left behind
//! names a process that is gone, or an address that nobody answers. Who owns the directory is said by its lock alone.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Exit;
use crate::Failure;
use crate::config::Config;
use crate::http::Http;

const FILE: &str = "server.json";

/// A server that runs on a data directory.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Its process.
    pub(crate) pid: u32,
    /// Its version.
    pub(crate) version: String,
    /// Where it listens.
    pub(crate) listeners: Vec<ListensAt>,
    /// What the owner of the directory sends as bearer. Anew with each start.
    pub(crate) token: String,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("pid", &self.pid)
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

/// An address and what `/mcp` shows there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListensAt {
    pub(crate) address: SocketAddr,
    pub(crate) toolset: String,
}

impl ListensAt {
    /// The address as a client on this machine writes it.
    pub(crate) fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        format!("http://{}", SocketAddr::new(ip, self.address.port()))
    }
}

/// The file, as long as it should be there. Removes it when dropped.
#[derive(Debug)]
pub(crate) struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        // If it cannot be removed it names a process that is gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Running {
    /// Where the file of `data_dir` is.
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE)
    }

    /// Tells everyone who may read the directory where this server is. Whole or not at all.
    pub(crate) fn publish(&self, data_dir: &Path) -> io::Result<Published> {
        let path = Self::path(data_dir);
        let mut file = tempfile::Builder::new()
            .prefix(".server")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(data_dir)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(Published { path })
    }

    /// What the file of `data_dir` says, unless it is missing or names a process that is gone.
    pub(crate) fn find(data_dir: &Path) -> Result<Option<Self>, Failure> {
        let path = Self::path(data_dir);
        let running: Self = match File::open(&path) {
            Ok(file) => serde_json::from_reader(io::BufReader::new(file)).map_err(|error| {
                Failure::failed(format!("'{}' is damaged: {error}", path.display()))
                    .hint("restart the server: it writes the file anew")
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Failure::failed(format!("cannot read '{}': {error}", path.display()))
                    .hint("only the user who runs the server can read it"));
            }
        };
        Ok(is_alive(running.pid).then_some(running))
    }

    /// A client of this server, with the rights of its owner.
    pub(crate) fn http(&self) -> Result<Http, Failure> {
        // A loopback address if there is one: it is always allowed as host.
        // One that stands in for A2AMCP has that system's routes only.
        let by_preference = |listener: &&ListensAt| {
            (listener.toolset == "a2amcp", !listener.address.ip().is_loopback(), listener.toolset != "all")
        };
        let listener = self.listeners.iter().min_by_key(by_preference);
        let Some(listener) = listener else {
            return Err(Failure::new(
                Exit::NoServer,
                format!("the server (pid {}) does not listen", self.pid),
            ));
        };
        Http::new(&listener.url(), Some(&self.token))
    }
}

fn is_alive(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).is_some_and(|pid| {
        // Another user's process is alive, too.
        rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
    })
}

/// A client of the server that the options name: `--url`, or the one that runs on the data directory.
pub(crate) fn server(config: &Config) -> Result<Http, Failure> {
    if let Some(url) = &config.client.url {
        return Http::new(url, config.client.key.as_deref());
    }
    let data_dir = config.data_dir()?;
    match Running::find(&data_dir)? {
        Some(running) => running.http(),
        None => Err(no_server(&data_dir)),
    }
}

pub(crate) fn no_server(data_dir: &Path) -> Failure {
    Failure::new(Exit::NoServer, format!("no server runs on the data directory '{}'", data_dir.display()))
        .hint("start one with `switchboard serve`, or name another with `--data-dir DIR` or `--url URL`")
}
