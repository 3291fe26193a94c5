//! How fast the journal appends on this machine, beside what the disk gives.
//!
//! `cargo run --release -p switchboard-journal --example append_rate [directory] [seconds]`
//!
//! Each stream has one append in flight: an entry of 300 bytes, acknowledged when durable. The directory should lie on the
//! disk that is to be measured; default is the working directory.

// It has no other way to tell.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use switchboard_journal::{Journal, Payload, Seq, SqliteJournal, SqliteOptions, StreamId};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let place = PathBuf::from(arguments.next().unwrap_or_else(|| ".".into()));
    let seconds = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let period = Duration::from_secs(seconds);
    let dir = tempfile::tempdir_in(&place)?;

    report("write + fdatasync, 4 KiB, growing file", raw(dir.path(), period, true)?);
    report("write + fdatasync, 4 KiB, file of fixed size", raw(dir.path(), period, false)?);
    for streams in [1, 16, 64, 256] {
        let journal = SqliteJournal::open(dir.path().join(streams.to_string()), &SqliteOptions::default())?;
        let journal: Arc<dyn Journal> = Arc::new(journal);
        report(&format!("append, {streams} streams"), append(&journal, streams, period).await?);
        if streams == 1 {
            report("read of one entry", read(&journal, period).await?);
        }
    }
    Ok(())
}

fn report(what: &str, mut latencies: Latencies) {
    latencies.each.sort_unstable();
    let at = |share: f64| {
        // Exact enough for a place in a list.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let place = (latencies.each.len() as f64 * share) as usize;
        latencies.each.get(place).copied().unwrap_or_default()
    };
    #[allow(clippy::cast_precision_loss)]
    let rate = latencies.each.len() as f64 / latencies.elapsed.as_secs_f64();
    println!("{what:<48} {rate:>9.0}/s  p50 {:>10.1?}  p99 {:>10.1?}", at(0.5), at(0.99));
}

struct Latencies {
    each: Vec<Duration>,
    elapsed: Duration,
}

fn raw(dir: &Path, period: Duration, growing: bool) -> Result<Latencies, Error> {
    use std::os::unix::fs::FileExt as _;
    let mut file = File::create(dir.join("raw"))?;
    let page = [7_u8; 4_096];
    let pages = 1_024;
    if !growing {
        for _ in 0..pages {
            file.write_all(&page)?;
        }
        file.sync_all()?;
    }
    let mut each = Vec::new();
    let start = Instant::now();
    while start.elapsed() < period {
        let begun = Instant::now();
        if growing {
            file.write_all(&page)?;
        } else {
            file.write_all_at(&page, (each.len() as u64 % pages) * 4_096)?;
        }
        file.sync_data()?;
        each.push(begun.elapsed());
    }
    Ok(Latencies { each, elapsed: start.elapsed() })
}

async fn append(journal: &Arc<dyn Journal>, streams: usize, period: Duration) -> Result<Latencies, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let payload = Payload::new(format!(r#"{{"type":"noted","text":"{}"}}"#, "x".repeat(268)))?;
    let start = Instant::now();
    let tasks: Vec<_> = (0..streams)
        .map(|number| {
            let (journal, payload, stop) = (Arc::clone(journal), payload.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let stream = StreamId::new(format!("project/{number}"))?;
                let mut head = Seq::START;
                let mut each = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    head = journal.append(&stream, head, payload.clone()).await?;
                    each.push(begun.elapsed());
                }
                Ok::<_, Error>(each)
            })
        })
        .collect();
    tokio::time::sleep(period).await;
    stop.store(true, Ordering::Relaxed);
    let mut each = Vec::new();
    for task in join_all(tasks).await {
        each.extend(task??);
    }
    Ok(Latencies { each, elapsed: start.elapsed() })
}

async fn read(journal: &Arc<dyn Journal>, period: Duration) -> Result<Latencies, Error> {
    let stream = StreamId::new("project/0")?;
    let mut each = Vec::new();
    let start = Instant::now();
    while start.elapsed() < period {
        let begun = Instant::now();
        journal.read(&stream, Seq::new(each.len() as u64 % 100), NonZeroUsize::MIN).await?;
        each.push(begun.elapsed());
    }
    Ok(Latencies { each, elapsed: start.elapsed() })
}
