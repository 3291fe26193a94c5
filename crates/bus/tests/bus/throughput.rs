//! How many events a second are published durably. Run by hand, optimised:
//! `cargo test --release -p switchboard-bus --test bus -- --ignored --nocapture throughput`.

use std::sync::Arc;
use std::time::Instant;

use switchboard_bus::{Bus, Retention};
use switchboard_exchange::SystemClock;
use switchboard_journal::{SqliteJournal, SqliteOptions};

use crate::stage::event;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "the result of a measurement")]
async fn durable_events_per_second() {
    for (publishers, batch) in [(1, 64), (4, 64), (8, 1_000), (64, 1), (256, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let journal = Arc::new(SqliteJournal::open(dir.path(), &SqliteOptions::default()).unwrap());
        let bus = Bus::new(journal, Arc::new(SystemClock), Retention::default());
        bus.start();
        let begun = Instant::now();
        let publishing = (0..publishers).map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move {
                let mut published = 0;
                while begun.elapsed().as_secs() < 5 {
                    published += bus.publish(vec![event("schedule.fired", 1); batch]).await.unwrap().len();
                }
                published
            })
        });
        let published: usize =
            futures::future::join_all(publishing).await.into_iter().map(Result::unwrap).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = published as f64 / begun.elapsed().as_secs_f64();
        eprintln!("{publishers} publishers, batches of {batch}: {rate:.0} events/s");
        bus.stop().await;
    }
}
