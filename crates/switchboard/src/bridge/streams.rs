//! Standard input and output, each with a thread of its own: reading and writing them blocks.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::thread;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The longest line, in bytes. Whoever sends more is cut off.
const MAX_LINE: u64 = 64 << 20;

/// How many lines wait in each direction; then whoever sends them waits.
const QUEUE: usize = 64;

/// The lines of standard input.
#[derive(Debug)]
pub(super) struct Input {
    lines: mpsc::Receiver<String>,
    ended: CancellationToken,
}

impl Input {
    pub(super) fn start() -> Self {
        let (sender, lines) = mpsc::channel(QUEUE);
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        thread::spawn(move || {
            let _end = end;
            read(&sender);
        });
        Self { lines, ended }
    }

    /// The next line that is not empty.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// Cancelled as soon as there is nothing more to read, also if lines still wait.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

fn read(lines: &mpsc::Sender<String>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match (&mut stdin).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 == MAX_LINE => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if !line.is_empty() && lines.blocking_send(line.to_owned()).is_err() {
            return;
        }
    }
}

/// Standard output, line by line.
#[derive(Debug)]
pub(super) struct Output {
    lines: mpsc::Sender<Item>,
}

#[derive(Debug)]
enum Item {
    Line(String),
    Flush(oneshot::Sender<()>),
}

impl Output {
    pub(super) fn start() -> Self {
        let (lines, receiver) = mpsc::channel(QUEUE);
        thread::spawn(move || write(receiver));
        Self { lines }
    }

    /// Writes a line.
    pub(super) async fn write(&self, line: String) {
        // The other end is gone only when the process is about to be.
        let _ = self.lines.send(Item::Line(line)).await;
    }

    /// Resolves when everything is written.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.lines.send(Item::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

fn write(mut items: mpsc::Receiver<Item>) {
    let mut stdout = io::stdout().lock();
    while let Some(item) = items.blocking_recv() {
        match item {
            Item::Line(line) => {
                let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
                if written.and_then(|()| stdout.flush()).is_err() {
                    // Nobody reads any more.
                    std::process::exit(0);
                }
            }
            Item::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}
