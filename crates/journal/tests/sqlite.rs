//! The SQLite backend keeps what the trait promises.

use std::sync::Arc;

use switchboard_journal::{Journal, SqliteJournal, SqliteOptions};

switchboard_journal::conformance_tests!(async || {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> =
        Arc::new(SqliteJournal::open(dir.path(), &SqliteOptions::default()).unwrap());
    (journal, dir)
});
