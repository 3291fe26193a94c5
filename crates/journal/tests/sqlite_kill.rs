//! A process that is killed in the middle of its appends loses nothing that it acknowledged.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use switchboard_journal::{Journal, Payload, SqliteJournal, SqliteOptions, StreamId};

/// Tells the child which directory to append in.
const DIR: &str = "SWITCHBOARD_JOURNAL_KILLED_IN";

const STREAMS: usize = 6;

fn stream(number: usize) -> StreamId {
    StreamId::new(format!("project/{number}")).unwrap()
}

fn payload(stream: usize, seq: u64) -> Payload {
    let length = usize::try_from(seq % 17).unwrap() * 300;
    Payload::new(format!("\"stream {stream} entry {seq} {}\"", "x".repeat(length))).unwrap()
}

fn open(dir: &Path) -> SqliteJournal {
    // A short log, so that the kill meets checkpoints too.
    let mut options = SqliteOptions::default();
    options.wal_bytes = 200_000;
    SqliteJournal::open(dir, &options).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_kill() {
    if let Some(dir) = std::env::var_os(DIR) {
        append_for_ever(Path::new(&dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = [0_u64; STREAMS];
    for round in 0..6 {
        run_and_kill(dir.path(), 150 + 331 * round, &mut acknowledged);
        let journal = open(dir.path());
        for (number, acknowledged) in acknowledged.iter_mut().enumerate() {
            let entries = journal
                .read(&stream(number), switchboard_journal::Seq::START, NonZeroUsize::MAX)
                .await
                .unwrap();
            for (seq, entry) in (1..).zip(&entries) {
                assert_eq!(entry.seq.get(), seq);
                assert_eq!(entry.payload, payload(number, seq));
            }
            let last = entries.len() as u64;
            assert!(last >= *acknowledged, "stream {number} ends at {last}, acknowledged was {acknowledged}");
            assert!(last <= *acknowledged + 1, "stream {number} has entries that nobody appended");
            // The next child goes on from what the file holds.
            *acknowledged = last;
        }
    }
}

/// Lets a child append until it has told of `count` appends, kills it, and takes down what it told.
fn run_and_kill(dir: &Path, count: usize, acknowledged: &mut [u64]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_was_acknowledged_survives_a_kill", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test harness has things to say as well; a last line may be torn.
        let Some(text) = line.strip_prefix("acknowledged ").and_then(|text| text.strip_suffix('.')) else {
            continue;
        };
        let (number, seq) = text.split_once(' ').unwrap();
        acknowledged[number.parse::<usize>().unwrap()] = seq.parse().unwrap();
        told += 1;
        if told == count {
            child.kill().unwrap();
        }
    }
    assert!(told >= count, "the child ended by itself after {told} appends");
    child.wait().unwrap();
}

/// What the child does.
async fn append_for_ever(dir: &Path) -> ! {
    let journal = Arc::new(open(dir));
    for number in 0..STREAMS {
        let journal = Arc::clone(&journal);
        tokio::spawn(async move {
            let mut head = journal.head(&stream(number)).await.unwrap();
            loop {
                head = journal.append(&stream(number), head, payload(number, head.get() + 1)).await.unwrap();
                writeln!(std::io::stdout().lock(), "acknowledged {number} {head}.").unwrap();
            }
        });
    }
    std::future::pending().await
}
