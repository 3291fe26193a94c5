//! HTTP requests, through the real door and over a real connection: bodies, addresses, parameters and headers.
//!
//! An input is a request as it is sent, except that the lengths of its parts are filled in: `METHOD ADDRESS`, header
//! lines, an empty line, the body.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use switchboard_exchange::Options as ExchangeOptions;
use switchboard_schedule::Zone;
use switchboard_server::{App, Listener, Options, Parts, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::world::{PROJECT, Shared, World};

/// Longer than any call may wait.
const PATIENCE: Duration = Duration::from_hours(3);

thread_local! {
    static SERVER: Shared<Server> = Shared::new();
}

pub(super) fn run(input: &[u8]) {
    SERVER.with(|shared| {
        shared.run(Server::start, async |server, project| {
            let request = request(&replaced(input, project.as_bytes()));
            server.answers(&request).await;
        });
    });
}

fn replaced(input: &[u8], project: &[u8]) -> Vec<u8> {
    let mut input = input.to_vec();
    let name = PROJECT.as_bytes();
    while let Some(at) = input.windows(name.len()).position(|window| window == name) {
        input[at..at + name.len()].copy_from_slice(project);
    }
    input
}

/// A request that is complete, whatever is said in it.
fn request(input: &[u8]) -> Vec<u8> {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let (mut head, mut rest) = (Vec::new(), lines.next().unwrap_or_default());
    let visible = |byte: &u8| if byte.is_ascii_control() { b'_' } else { *byte };
    head.extend(first.iter().map(visible));
    head.extend_from_slice(b" HTTP/1.1\r\n");
    let mut has_host = false;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = rest[..end].trim_ascii_end();
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default().to_ascii_lowercase();
        // The length is ours to say, and a request that is not all there is waited for.
        if matches!(&name[..], b"content-length" | b"transfer-encoding" | b"expect" | b"upgrade") {
            continue;
        }
        has_host |= name == b"host";
        head.extend(line.iter().map(visible));
        head.extend_from_slice(b"\r\n");
    }
    if !has_host {
        head.extend_from_slice(b"host: localhost\r\n");
    }
    head.extend_from_slice(format!("content-length: {}\r\n\r\n", rest.len()).as_bytes());
    head.extend_from_slice(rest);
    head
}

struct Server {
    address: SocketAddr,
    connection: Option<TcpStream>,
}

impl Server {
    async fn start() -> Self {
        let world = World::new(ExchangeOptions::default());
        let parts = Parts {
            registry: world.registry.clone(),
            access: world.access().await.expect("an empty journal holds no keys"),
            journal: world.journal.clone(),
            coordination: world.coordination.clone(),
            bus: world.bus.clone(),
            schedules: world.schedules.clone(),
            zone: Zone::UTC,
        };
        let app = App::new(parts, Options::default());
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).expect("there is a free port");
        let address = listener.address();
        tokio::spawn(async move { serve(&app, vec![listener], CancellationToken::new()).await });
        Self { address, connection: None }
    }

    async fn answers(&mut self, request: &[u8]) {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address).await,
        };
        let said = || String::from_utf8_lossy(request).into_owned();
        let answer = tokio::time::timeout(PATIENCE, exchange(&mut connection, request)).await;
        let answer = answer.unwrap_or_else(|_| panic!("not answered within {PATIENCE:?}: {}", said()));
        // The server may close a connection without a word only if it could not make out a request.
        let Some(answer) = answer else { return };
        let ours = answer.status != 503;
        assert!(answer.status < 500 || !ours, "{}\n{}\nfor {}", answer.head, answer.text(), said());
        if answer.head.contains("content-type: application/json") && answer.is_complete && !answer.is_bodiless
        {
            let json = serde_json::from_slice::<Value>(&answer.body);
            json.unwrap_or_else(|why| panic!("{why}: {}\nfor {}", answer.text(), said()));
        }
        if answer.is_complete && !answer.head.contains("connection: close") {
            self.connection = Some(connection);
        }
    }
}

async fn connect(address: SocketAddr) -> TcpStream {
    let connection = TcpStream::connect(address).await.expect("the server accepts connections");
    // Thousands are made in a second: none may linger when it is closed.
    let at_once = socket2::SockRef::from(&connection).set_linger(Some(Duration::ZERO));
    at_once.expect("a connection can be closed at once");
    connection
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    is_complete: bool,
    is_bodiless: bool,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends `request` and reads its answer; none if the connection ended before there was one. Of a stream that goes on for
/// ever only the beginning is read.
async fn exchange(connection: &mut TcpStream, request: &[u8]) -> Option<Answer> {
    connection.write_all(request).await.ok()?;
    let mut received = Vec::new();
    let end = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(connection, &mut received).await?;
    };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value.trim().to_owned())
    };
    let follows = request.starts_with(b"GET ") && head.contains("text/event-stream");
    let is_bodiless = request.starts_with(b"HEAD ") || matches!(status, 100..200 | 204 | 304);
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let mut answer = Answer { status, head, body: Vec::new(), is_complete: false, is_bodiless };
    if follows {
        return Some(answer);
    }
    if is_bodiless {
        answer.is_complete = status >= 200;
        return Some(answer);
    }
    let is_there = |received: &[u8]| match length {
        Some(length) => received.len() >= end + length,
        None => received.ends_with(b"0\r\n\r\n"),
    };
    while !is_there(&received) {
        if read_more(connection, &mut received).await.is_none() {
            return Some(answer);
        }
    }
    answer.is_complete = true;
    answer.body = received.split_off(end);
    Some(answer)
}

async fn read_more(connection: &mut TcpStream, received: &mut Vec<u8>) -> Option<()> {
    connection.read_buf(received).await.ok().filter(|count| *count > 0).map(drop)
}
