//! The in-memory backend keeps what the trait promises.

use std::sync::Arc;

use switchboard_journal::{Journal, MemoryJournal};

switchboard_journal::conformance_tests!(async || {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    (journal, ())
});

mod nodes {
    use super::{Arc, Journal, MemoryJournal};

    switchboard_journal::conformance_tests_of_nodes!(async || {
        let journal = MemoryJournal::shared();
        let nodes: [Arc<dyn Journal>; 2] = [Arc::new(journal.clone()), Arc::new(journal)];
        (nodes, ())
    });
}
