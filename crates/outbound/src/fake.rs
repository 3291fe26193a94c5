//! An HTTP server for tests: answers by script and remembers what it was asked.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// A server on a free port of 127.0.0.1. It ends when it is dropped.
pub struct FakeServer {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `POST`
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    /// Header fields in the order they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// On which connection it came; the first is 0.
    pub connection: usize,
}

impl Seen {
    /// The value of a header field, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// `POST /path?query`
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// What the server does about a request.
#[derive(Debug, Clone)]
pub struct Reply {
    kind: Kind,
    headers: Vec<(String, String)>,
    body: String,
    after: Option<Arc<Notify>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer(u16),
    CutAnswer(u16),
    Silence,
    HangUp,
}

impl Reply {
    /// Answers with `status`.
    pub fn new(status: u16) -> Self {
        Self { kind: Kind::Answer(status), headers: Vec::new(), body: String::new(), after: None }
    }

    /// Answers 200 with `body` as JSON.
    pub fn json(body: impl Into<String>) -> Self {
        Self::new(200).header("content-type", "application/json").body(body)
    }

    /// Reads the request and never says a word.
    pub fn silence() -> Self {
        Self { kind: Kind::Silence, ..Self::new(0) }
    }

    /// Reads the request and closes the connection.
    pub fn hang_up() -> Self {
        Self { kind: Kind::HangUp, ..Self::new(0) }
    }

    /// With a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// Promises more than it sends, and closes the connection.
    #[must_use]
    pub fn cut(mut self) -> Self {
        if let Kind::Answer(status) = self.kind {
            self.kind = Kind::CutAnswer(status);
        }
        self
    }

    /// Not before `signal`.
    #[must_use]
    pub fn after(mut self, signal: Arc<Notify>) -> Self {
        self.after = Some(signal);
        self
    }
}

type Script = Box<dyn Fn(usize, &Seen) -> Reply + Send + Sync>;

struct State {
    script: Script,
    seen: Mutex<Vec<Seen>>,
    count: watch::Sender<usize>,
}

impl FakeServer {
    /// Answers the n-th request, counted from 0, as `script` says.
    ///
    /// # Panics
    /// There is no free port.
    #[allow(clippy::expect_used, reason = "part of a test")]
    pub async fn start(script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            script: Box::new(script),
            seen: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, state.clone()));
        Self { address, state, task }
    }

    /// Gives these replies one after another, and the last of them to all further requests.
    ///
    /// # Panics
    /// There is no reply, or no free port.
    pub async fn script(replies: Vec<Reply>) -> Self {
        assert!(!replies.is_empty(), "a script has at least one reply");
        Self::start(move |n, _| replies[n.min(replies.len() - 1)].clone()).await
    }

    /// Gives this reply to all requests.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn always(reply: Reply) -> Self {
        Self::script(vec![reply]).await
    }

    /// The URL of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until there were `count` requests.
    pub async fn wait_for(&self, count: usize) {
        let mut seen = self.state.count.subscribe();
        // The sender lives as long as the server.
        let _ = seen.wait_for(|seen| *seen >= count).await;
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Dropped with this task, and their connections with them.
    let mut connections = tokio::task::JoinSet::new();
    for connection in 0.. {
        let Ok((stream, _)) = listener.accept().await else { return };
        let state = state.clone();
        connections.spawn(async move {
            // A client that leaves early is no trouble of the server.
            let _ = serve(stream, connection, &state).await;
        });
    }
}

async fn serve(stream: TcpStream, connection: usize, state: &State) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(seen) = request(&mut stream, connection).await? {
        let reply = {
            let mut all = state.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let reply = (state.script)(all.len(), &seen);
            all.push(seen);
            state.count.send_replace(all.len());
            reply
        };
        if let Some(signal) = &reply.after {
            signal.notified().await;
        }
        let (status, cut) = match reply.kind {
            Kind::Answer(status) => (status, false),
            Kind::CutAnswer(status) => (status, true),
            Kind::Silence => std::future::pending().await,
            Kind::HangUp => return Ok(()),
        };
        let promised = reply.body.len() + usize::from(cut);
        let mut answer = format!("HTTP/1.1 {status} -\r\ncontent-length: {promised}\r\n");
        for (name, value) in &reply.headers {
            let _ = write!(answer, "{name}: {value}\r\n");
        }
        answer.push_str("\r\n");
        answer.push_str(&reply.body);
        stream.get_mut().write_all(answer.as_bytes()).await?;
        if cut {
            return Ok(());
        }
    }
    Ok(())
}

/// The next request; none at the end of the connection.
async fn request(stream: &mut BufReader<TcpStream>, connection: usize) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, target, headers, body: String::new(), connection };
    let len = seen.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await?;
    seen.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(seen))
}
