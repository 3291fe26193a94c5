//! An HTTP target that answers at once, in a process of its own, and notes how late each call comes.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::report::percentile;

/// The argument by which this program becomes the target.
pub(crate) const ROLE: &str = "--post";

/// A running target. Killed when dropped.
pub(crate) struct Post {
    child: Child,
    asks: RefCell<ChildStdin>,
    answers: RefCell<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

/// What came since it was last asked.
pub(crate) struct Stats {
    pub(crate) count: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Post {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program)
            .arg(ROLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the target starts");
        let asks = RefCell::new(child.stdin.take().expect("piped"));
        let mut answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        answers.read_line(&mut line).expect("the target says where it listens");
        let address = line.trim().parse().expect("an address");
        Self { child, asks, answers: RefCell::new(answers), address }
    }

    /// What came since it was last asked.
    pub(crate) fn stats(&self) -> Stats {
        writeln!(self.asks.borrow_mut(), "stats").expect("the target reads");
        let mut line = String::new();
        self.answers.borrow_mut().read_line(&mut line).expect("the target answers");
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().expect("a number"));
        let mut next = || numbers.next().unwrap_or_default();
        let count = usize::try_from(next()).unwrap_or_default();
        let mut time = || Duration::from_micros(next());
        Stats { count, p50: time(), p99: time(), max: time() }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type Latenesses = Rc<RefCell<Vec<Duration>>>;

/// What the target does, until its parent is gone.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        let seen = Latenesses::default();
        let accepting = seen.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(answer(stream, accepting.clone()));
            }
        });
        // The standard input is read by a thread, which answers need not wait for.
        let (sender, mut asked) = tokio::sync::mpsc::channel(1);
        std::thread::spawn(move || {
            for _ in std::io::stdin().lock().lines() {
                if sender.blocking_send(()).is_err() {
                    return;
                }
            }
        });
        while asked.recv().await.is_some() {
            let mut seen = seen.take();
            seen.sort_unstable();
            let micros = |time: Duration| time.as_micros();
            let max = seen.last().copied().unwrap_or_default();
            let (p50, p99) = (percentile(&seen, 0.5), percentile(&seen, 0.99));
            println!("{} {} {} {}", seen.len(), micros(p50), micros(p99), micros(max));
        }
    });
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, seen: Latenesses) {
    let _ = stream.set_nodelay(true);
    let mut stream = tokio::io::BufReader::with_capacity(16 << 10, stream);
    let (mut line, mut body) = (String::new(), Vec::new());
    loop {
        let mut length = 0;
        loop {
            line.clear();
            match stream.read_line(&mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => {
                    if let Some((name, value)) = line.split_once(':')
                        && name.eq_ignore_ascii_case("content-length")
                    {
                        length = value.trim().parse().unwrap_or(0);
                    }
                }
            }
        }
        body.resize(length, 0);
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        let now = Timestamp::now();
        if let Some(due) = due(&body) {
            let late = now.duration_since(due);
            seen.borrow_mut().push(late.unsigned_abs().min(Duration::from_hours(1)));
        }
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
            return;
        }
    }
}

fn due(body: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once(r#""due":""#)?;
    rest.split_once('"')?.0.parse().ok()
}
