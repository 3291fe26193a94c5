//! Starts a server in the background, for commands that need one.
//!
//! Any number of processes may want one at once. The lock of `start.lock` lets one of them start it while the others
//! wait for its `server.json`; the lock of the data directory makes sure that only one server ever runs on it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use switchboard_tools::Variables;
use tokio::net::TcpStream;

use crate::config::{Flags, Inputs, specs};
use crate::running::Running;
use crate::{Exit, Failure, system};

/// How long a server may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The size at which the log is put aside when a server starts. One older log is kept.
const LOG_BYTES: u64 = 10 << 20;

/// How to start a server on a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    data_dir: PathBuf,
    arguments: Vec<String>,
}

impl Launch {
    /// The directory.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// A server with the options that this command was given.
    pub(crate) fn new(data_dir: &Path, inputs: &Inputs) -> Self {
        let mut arguments = vec!["serve".to_owned(), "--background".to_owned()];
        if let Some(file) = &inputs.file {
            arguments.push(format!("--config={}", file.display()));
        }
        arguments.push(format!("--data-dir={}", data_dir.display()));
        arguments.extend(as_arguments(&inputs.flags));
        Self { data_dir: data_dir.to_owned(), arguments }
    }

    /// The server that runs on the data directory; starts one if there is none.
    pub(crate) async fn find_or_start(&self) -> Result<Running, Failure> {
        if let Some(running) = find(&self.data_dir).await? {
            return Ok(running);
        }
        system::create_directory(&self.data_dir)?;
        let gate = self.gate()?;
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(running) = find(&self.data_dir).await? {
                return Ok(running);
            }
            if gate.try_lock().is_ok() {
                let started = self.start(deadline).await;
                // Closing the file would unlock it, too; whoever waits need not wait for that.
                let _ = gate.unlock();
                return started;
            }
            give_up_after(deadline, &self.data_dir)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn start(&self, deadline: Instant) -> Result<Running, Failure> {
        // Whoever held the gate before may have started one.
        if let Some(running) = find(&self.data_dir).await? {
            return Ok(running);
        }
        let (log, begin) = self.open_log()?;
        let mut server = Some(self.spawn(log)?);
        loop {
            if let Some(running) = find(&self.data_dir).await? {
                return Ok(running);
            }
            let ended = server.as_mut().and_then(|server| server.try_wait().ok().flatten());
            match ended.map(|status| status.code()) {
                // Another one runs on the directory and is about to say where.
                Some(Some(code)) if code == Exit::InUse as i32 && is_locked(&self.data_dir) => server = None,
                Some(_) => return Err(self.did_not_start(begin)),
                None => {}
            }
            give_up_after(deadline, &self.data_dir)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn spawn(&self, log: File) -> Result<Child, Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("cannot start a server: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        // They name the agent of the client that happens to come first, and must not become those of all others.
        for name in Variables::NAMES {
            command.env_remove(name);
        }
        command
            .args(&self.arguments)
            .current_dir(&self.data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(failed)
    }

    fn gate(&self) -> Result<File, Failure> {
        let path = self.data_dir.join("start.lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options
            .open(&path)
            .map_err(|error| Failure::failed(format!("cannot open '{}': {error}", path.display())))
    }

    fn log_path(&self) -> PathBuf {
        self.data_dir.join("server.log")
    }

    /// The log, and where in it the new server's lines begin.
    fn open_log(&self) -> Result<(File, u64), Failure> {
        let path = self.log_path();
        if path.metadata().is_ok_and(|log| log.len() > LOG_BYTES) {
            // If it cannot be put aside it grows on.
            let _ = std::fs::rename(&path, path.with_extension("log.1"));
        }
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let log =
            log.map_err(|error| Failure::failed(format!("cannot write '{}': {error}", path.display())))?;
        let begin = log.metadata().map_or(0, |log| log.len());
        Ok((log, begin))
    }

    fn did_not_start(&self, begin: u64) -> Failure {
        let path = self.log_path();
        let said = File::open(&path).and_then(|mut log| {
            let mut said = String::new();
            log.seek(SeekFrom::Start(begin))?;
            log.take(8_192).read_to_string(&mut said)?;
            Ok(said)
        });
        let said = said.unwrap_or_default();
        Failure::failed(format!(
            "the server that was started in the background ended at once:\n{}",
            said.trim_end()
        ))
        .hint(format!("its log is '{}'; `switchboard serve` shows the same in a terminal", path.display()))
    }
}

/// The server that runs on `data_dir` and accepts connections.
pub(crate) async fn find(data_dir: &Path) -> Result<Option<Running>, Failure> {
    let Some(running) = Running::find(data_dir)? else { return Ok(None) };
    for listener in &running.listeners {
        let address = listener.url();
        let address = address.trim_start_matches("http://");
        let connected = tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(address)).await;
        if matches!(connected, Ok(Ok(_))) {
            return Ok(Some(running));
        }
    }
    Ok(None)
}

/// Whether a process owns the directory. Only asked when one is known to: asking takes the lock for a moment.
fn is_locked(data_dir: &Path) -> bool {
    File::open(data_dir.join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

fn give_up_after(deadline: Instant, data_dir: &Path) -> Result<(), Failure> {
    if Instant::now() < deadline {
        return Ok(());
    }
    let holder = std::fs::read_to_string(data_dir.join("lock")).unwrap_or_default();
    let message = format!(
        "no server answered on the data directory '{}' within {} s",
        data_dir.display(),
        START_TIMEOUT.as_secs()
    );
    let hint = format!(
        "its lock was last taken by pid {}; its log is '{}'",
        holder.trim(),
        data_dir.join("server.log").display()
    );
    Err(Failure::new(Exit::NoServer, message).hint(hint))
}

/// The flags as another process is given them.
fn as_arguments(flags: &Flags) -> Vec<String> {
    let given = specs().iter().filter(|spec| spec.key != "data_dir" && !spec.key.starts_with("client."));
    given
        .filter_map(|spec| Some((spec, flags.0.get(&*spec.key)?)))
        .flat_map(|(spec, values)| values.iter().map(|value| format!("--{}={value}", spec.flag)))
        .collect()
}
