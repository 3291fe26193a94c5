//! What becomes of due times that passed while nobody could act on them.

use expect_test::expect;
use switchboard_schedule::{Missed, Overlap, Spec, Timing};

use crate::script::{FIRST, Script, every, spec};

fn after_a_sleep(missed: Missed) -> String {
    let mut script = Script::new();
    script.create(Spec { missed, overlap: Overlap::Queue, ..spec("topic:a", every(10)) });
    script.forget_log();
    script.sleep_until(55);
    script.until(59);
    script.log()
}

#[test]
fn missed_due_times_are_skipped() {
    expect![[r"
        55s skipped id 64 due 10s last 50s count 5 why missed next 60s
    "]]
    .assert_eq(&after_a_sleep(Missed::Skip));
}

#[test]
fn of_missed_due_times_the_first_is_delivered() {
    expect![[r"
        55s opened id 64 due 10s ready 10s next 20s
        55s skipped id 64 due 20s last 50s count 4 why missed next 60s
        55s claimed id 64 due 10s node n
    "]]
    .assert_eq(&after_a_sleep(Missed::Once));
}

#[test]
fn of_missed_due_times_the_last_are_delivered_within_their_window() {
    expect![[r"
        55s skipped id 64 due 10s last 30s count 3 why missed next 40s
        55s opened id 64 due 40s ready 40s next 50s
        55s opened id 64 due 50s ready 50s next 60s
        55s claimed id 64 due 40s node n
    "]]
    .assert_eq(&after_a_sleep(Missed::All { max: 2, window_ms: 1_000_000 }));
    expect![[r"
        55s skipped id 64 due 10s last 40s count 4 why missed next 50s
        55s opened id 64 due 50s ready 50s next 60s
        55s claimed id 64 due 50s node n
    "]]
    .assert_eq(&after_a_sleep(Missed::All { max: 2, window_ms: 10_000 }));
    expect![[r"
        55s skipped id 64 due 10s last 50s count 5 why missed next 60s
    "]]
    .assert_eq(&after_a_sleep(Missed::All { max: 2, window_ms: 4_000 }));
}

#[test]
fn a_clock_that_jumps_an_hour_misses_what_is_older_than_a_minute() {
    let mut script = Script::new();
    script.create(Spec { overlap: Overlap::Queue, ..spec("topic:a", every(600)) });
    script.forget_log();
    script.now_ms = 3_630_000;
    script.tick_if_due();
    expect![[r"
        3630s skipped id 64 due 600s last 3000s count 5 why missed next 3600s
        3630s opened id 64 due 3600s ready 3600s node n next 4200s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_clock_that_goes_back_delivers_nothing_twice() {
    let mut script = Script::new();
    script.create(spec("topic:a", every(10)));
    script.until(10);
    script.delivered(FIRST, 10);
    script.forget_log();
    script.now_ms = 0;
    script.until(20);
    expect![[r"
        20s opened id 64 due 20s ready 20s node n next 30s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_storm_of_missed_due_times_is_one_record() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::every(1, 1).unwrap()));
    script.forget_log();
    script.sleep_until(1_000_000);
    script.tick_if_due();
    expect![[r"
        1000000s skipped id 64 due 1ms last 999999999ms count 999999999 why missed next 1000000s
        1000000s opened id 64 due 1000000s ready 1000000s next 1000000001ms
        1000000s claimed id 64 due 1000000s node n
    "]]
    .assert_eq(&script.log());
}
