//! What becomes of due times while an earlier occurrence is open.

use expect_test::expect;
use switchboard_schedule::{Overlap, Spec, Timing};

use crate::script::{FIRST, Script, every, spec};

fn three_due_times_while_the_first_is_open(overlap: Overlap) -> String {
    let mut script = Script::new();
    script.create(Spec { overlap, ..spec("topic:a", every(10)) });
    script.forget_log();
    script.until(35);
    script.delivered(FIRST, 10);
    script.until(39);
    script.log()
}

#[test]
fn a_due_time_is_skipped_while_an_occurrence_is_open() {
    expect![[r"
        10s opened id 64 due 10s ready 10s node n next 20s
        20s skipped id 64 due 20s last 20s count 1 why overlap next 30s
        30s skipped id 64 due 30s last 30s count 1 why overlap next 40s
        35s delivered id 64 due 10s
    "]]
    .assert_eq(&three_due_times_while_the_first_is_open(Overlap::Skip));
}

#[test]
fn a_due_time_waits_until_the_occurrence_before_it_is_over() {
    expect![[r"
        10s opened id 64 due 10s ready 10s node n next 20s
        20s opened id 64 due 20s ready 20s next 30s
        30s opened id 64 due 30s ready 30s next 40s
        35s delivered id 64 due 10s
        35s claimed id 64 due 20s node n
    "]]
    .assert_eq(&three_due_times_while_the_first_is_open(Overlap::Queue));
}

#[test]
fn due_times_do_not_wait_for_each_other_where_overlap_is_allowed() {
    expect![[r"
        10s opened id 64 due 10s ready 10s node n next 20s
        20s opened id 64 due 20s ready 20s node n next 30s
        30s opened id 64 due 30s ready 30s node n next 40s
        35s delivered id 64 due 10s
    "]]
    .assert_eq(&three_due_times_while_the_first_is_open(Overlap::Allow));
}

#[test]
fn a_schedule_has_at_most_a_hundred_open_occurrences() {
    let mut script = Script::new();
    script.create(Spec { overlap: Overlap::Allow, ..spec("topic:a", Timing::every(100, 100).unwrap()) });
    script.until(15);
    let schedule = script.timetable.get(FIRST).unwrap();
    assert_eq!(schedule.open.len(), 100);
    let skipped = script.timetable.history(FIRST).next().unwrap();
    expect![[r"
        Record {
            due_ms: 10100,
            at_ms: 15000,
            fate: Skipped {
                why: TooManyOpen,
                last_ms: 15000,
                count: 50,
                or_more: false,
            },
            attempts: 0,
        }
    "]]
    .assert_debug_eq(skipped);
}
