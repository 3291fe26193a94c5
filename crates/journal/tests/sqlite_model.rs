//! Random operations give the same results on the SQLite file as in the model in memory.
//!
//! `SWITCHBOARD_JOURNAL_SEED=…` runs one history again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use switchboard_journal::{
    Journal, MemoryJournal, Payload, Seq, Snapshot, SqliteJournal, SqliteOptions, StreamId,
};

const STREAMS: [&str; 5] = ["project/shop", "project/mill", "project/%", "schedules", "session/日本"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_histories_read_the_same_in_memory_and_on_disk() {
    match std::env::var("SWITCHBOARD_JOURNAL_SEED") {
        Ok(seed) => history(seed.parse().unwrap()).await,
        Err(_) => {
            for seed in 0..12 {
                history(seed).await;
            }
        }
    }
}

async fn history(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let model = MemoryJournal::new();
    let mut journal = SqliteJournal::open(dir.path(), &SqliteOptions::default()).unwrap();
    for step in 0..250 {
        if random.random_ratio(1, 60) {
            drop(journal);
            journal = SqliteJournal::open(dir.path(), &SqliteOptions::default()).unwrap();
        }
        let operation = Operation::any(&mut random, step);
        let (expected, found) = futures::join!(operation.run(&model), operation.run(&journal));
        assert_eq!(found, expected, "seed {seed}, step {step}: {operation:?}");
    }
    for name in STREAMS {
        let read = Operation::Read(StreamId::new(name).unwrap(), Seq::START, NonZeroUsize::MAX);
        assert_eq!(read.run(&journal).await, read.run(&model).await, "seed {seed}, at the end: {name}");
    }
}

#[derive(Debug)]
enum Operation {
    /// After the stream's end, or that many entries before or beyond it.
    Append(StreamId, i64, Payload),
    Read(StreamId, Seq, NonZeroUsize),
    Head(StreamId),
    SaveSnapshot(StreamId, Snapshot),
    LoadSnapshot(StreamId),
    Trim(StreamId, Seq),
    Redact(StreamId, Vec<Seq>),
    Streams(&'static str, Option<StreamId>, NonZeroUsize),
}

impl Operation {
    fn any(random: &mut StdRng, step: u64) -> Self {
        let stream = StreamId::new(STREAMS[random.random_range(0..STREAMS.len())]).unwrap();
        let seq = Seq::new(random.random_range(0..25));
        let limit = NonZeroUsize::new(random.random_range(1..12)).unwrap();
        match random.random_range(0..100) {
            0..50 => {
                let off = if random.random_ratio(1, 5) { random.random_range(-3..4) } else { 0 };
                let length = if random.random_ratio(1, 10) { 9_000 } else { 40 };
                Self::Append(stream, off, Payload::new(format!("\"{step}{}\"", "x".repeat(length))).unwrap())
            }
            50..65 => Self::Read(stream, seq, limit),
            65..72 => Self::Head(stream),
            72..80 => {
                // Only of entries that exist, as the trait asks; the run looks up the end.
                Self::SaveSnapshot(stream, Snapshot { seq, state: Arc::from(format!("\"{step}\"")) })
            }
            80..85 => Self::LoadSnapshot(stream),
            85..90 => Self::Trim(stream, seq),
            90..92 => Self::Redact(stream, vec![seq, seq.next()]),
            _ => {
                let prefix = ["", "p", "project/", "session/日", "z"][random.random_range(0..5)];
                Self::Streams(prefix, random.random_bool(0.5).then_some(stream), limit)
            }
        }
    }

    /// Carries it out and tells the result as text.
    async fn run(&self, journal: &dyn Journal) -> String {
        match self {
            Self::Append(stream, off, payload) => {
                let head = journal.head(stream).await.unwrap();
                let after = Seq::new(head.get().saturating_add_signed(*off));
                format!("{:?}", journal.append(stream, after, payload.clone()).await)
            }
            Self::Read(stream, after, limit) => format!("{:?}", journal.read(stream, *after, *limit).await),
            Self::Head(stream) => format!("{:?}", journal.head(stream).await),
            Self::SaveSnapshot(stream, snapshot) => {
                let seq = snapshot.seq.min(journal.head(stream).await.unwrap());
                format!("{:?}", journal.save_snapshot(stream, Snapshot { seq, ..snapshot.clone() }).await)
            }
            Self::LoadSnapshot(stream) => format!("{:?}", journal.load_snapshot(stream).await),
            Self::Trim(stream, up_to) => format!("{:?}", journal.trim(stream, *up_to).await),
            Self::Redact(stream, seqs) => format!("{:?}", journal.redact(stream, seqs).await),
            Self::Streams(prefix, after, limit) => {
                format!("{:?}", journal.streams(prefix, after.as_ref(), *limit).await)
            }
        }
    }
}
