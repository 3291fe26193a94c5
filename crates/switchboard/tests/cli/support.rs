//! A home for a test, the program run in it, and a server started in it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An empty home, gone when dropped, together with servers that were started in the background.
pub(crate) struct Home {
    dir: TempDir,
}

/// What a run of the program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32, text: &str) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(self.stderr.contains(text), "'{text}' is not in: {}", self.stderr);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("share/switchboard")
    }

    pub(crate) fn write_config(&self, text: &str) {
        let dir = self.path().join("config/switchboard");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// The program, with this home and nothing else of the environment.
    pub(crate) fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("XDG_DATA_HOME", self.path().join("share"))
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("SPLITMIND_STATUS_DIR", self.path().join("status"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end. Words are separated by single spaces.
    pub(crate) fn run(&self, line: &str) -> Said {
        said(self.command(line.split(' ')))
    }

    /// Starts a server on a free port and waits until it accepts.
    pub(crate) fn serve(&self, options: &str) -> Server {
        let words = ["serve", "--listen", "127.0.0.1:0"].into_iter().chain(options.split_terminator(' '));
        self.serve_by(self.command(words))
    }

    pub(crate) fn serve_by(&self, mut command: Command) -> Server {
        let mut child = command.spawn().unwrap();
        let log = follow(child.stderr.take().unwrap());
        let file = self.data().join("server.json");
        let described = until("the server says where it is", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", log.lock().unwrap());
            }
            let described: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
            (described["pid"] == child.id()).then_some(described)
        });
        Server { child, described, log }
    }

    /// What the running server says of itself.
    pub(crate) fn described(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.data().join("server.json")).ok()?).ok()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // One that a bridge started outlives it.
        if let Some(pid) = self.described().and_then(|described| described["pid"].as_i64()) {
            signal(u32::try_from(pid).unwrap(), Signal::KILL);
        }
    }
}

pub(crate) fn said(mut command: Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) described: Value,
    log: std::sync::Arc<std::sync::Mutex<String>>,
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn address(&self) -> String {
        self.described["listeners"][0]["address"].as_str().unwrap().to_owned()
    }

    pub(crate) fn token(&self) -> String {
        self.described["token"].as_str().unwrap().to_owned()
    }

    /// Asks it to end, and gives its exit code.
    pub(crate) fn terminate(mut self) -> i32 {
        signal(self.pid(), Signal::TERM);
        self.wait()
    }

    /// Its exit code, once it has ended.
    pub(crate) fn wait(&mut self) -> i32 {
        until("the server ends", || self.child.try_wait().unwrap()).code().unwrap_or(-1)
    }

    /// Ends it without a chance to save anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// An HTTP request; the status and the body.
    pub(crate) fn http(
        &self,
        method: &str,
        path: &str,
        bearer: Option<&str>,
        body: Option<&Value>,
    ) -> (u16, String) {
        http(&self.address(), method, path, bearer, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn http(
    address: &str,
    method: &str,
    path: &str,
    bearer: Option<&str>,
    body: Option<&Value>,
) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let authorization = bearer.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         {authorization}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Looks until there is something to see.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "in {PATIENCE:?} it did not happen that {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal);
}

/// Whether the process runs. One that has ended and that nobody has asked about does not.
pub(crate) fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

fn follow(mut stream: impl std::io::Read + Send + 'static) -> std::sync::Arc<std::sync::Mutex<String>> {
    let text = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let shared = text.clone();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            shared.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    text
}

/// An MCP client at the other end of a process's standard streams.
pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    kept: Vec<Value>,
    next_id: i64,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, messages, kept: Vec::new(), next_id: 1 }
    }

    /// Introduces itself, as every client does.
    pub(crate) fn initialize(&mut self) -> Value {
        let answer = self.request(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and gives its id.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> i64 {
        self.begin("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The next message of which `is_it` holds. Others are kept for later.
    #[track_caller]
    pub(crate) fn await_message(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.kept.iter().position(&is_it) {
            return self.kept.remove(index);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self
                .messages
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no such message came; there came {:?}", self.kept));
            if is_it(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    #[track_caller]
    pub(crate) fn end(&mut self, id: i64) -> Value {
        self.await_message(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.end(id)
    }

    /// Calls a tool of the toolset `coordination` and gives its structured answer.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin_call(tool, arguments);
        let answer = self.end(id);
        let structured = &answer["result"]["structuredContent"];
        assert!(structured.is_object(), "{answer}");
        structured.clone()
    }

    /// Whether the answer to `id` has come already.
    pub(crate) fn is_answered(&mut self, id: i64) -> bool {
        self.kept.extend(self.messages.try_iter());
        self.kept.iter().any(|message| message["id"] == id)
    }

    /// Closes its standard input, and gives how long it took to end after that.
    pub(crate) fn close(mut self) -> Duration {
        let closed = Instant::now();
        drop(self.stdin.take());
        until("the process ends", || self.child.try_wait().unwrap());
        closed.elapsed()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
