//! A crash at every write, one at a time.

use switchboard_journal::Sharing;
use switchboard_sim::crash::crash_at_every_write;

#[test]
fn a_crash_at_any_write_of_the_only_node_changes_nothing() {
    for script in 0..3 {
        assert!(crash_at_every_write(script, Sharing::Exclusive) > 100);
    }
}

#[test]
fn a_crash_at_any_write_of_a_node_among_others_changes_nothing() {
    for script in 3..6 {
        assert!(crash_at_every_write(script, Sharing::Shared) > 100);
    }
}
