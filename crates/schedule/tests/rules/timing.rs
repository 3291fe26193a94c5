//! When occurrences are opened.

use std::num::NonZeroU32;

use expect_test::expect;
use switchboard_schedule::{Settings, Timing};

use crate::script::{FIRST, Script, every, settings, spec};

#[test]
fn a_schedule_that_is_due_once_is_completed_by_its_delivery() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::once(5_000)));
    script.until(6);
    script.delivered(FIRST, 5);
    script.until(100);
    expect![[r"
        0s created id 64 next 5s
        5s opened id 64 due 5s ready 5s node n
        6s delivered id 64 due 5s
        6s ended id 64 end completed last 5s
    "]]
    .assert_eq(&script.log());
    assert_eq!(script.timetable.get(FIRST).unwrap().next_run_ms(), Some(5_000), "it keeps its last due time");
}

#[test]
fn a_time_that_is_over_when_it_is_made_is_due_at_once_unless_missed_times_are_skipped() {
    let mut script = Script::new();
    script.until(10_000);
    let late = switchboard_schedule::Spec {
        missed: switchboard_schedule::Missed::Once,
        ..spec("topic:a", Timing::once(1_000))
    };
    script.create(late);
    script.create(spec("topic:a", Timing::once(1_000)));
    script.until(10_001);
    expect![[r"
        10000s created id 64 next 1s
        10000s opened id 64 due 1s ready 1s node n
        10000s created id 128 next 1s
        10000s skipped id 128 due 1s last 1s count 1 why missed
        10000s ended id 128 end completed
    "]]
    .assert_eq(&script.log());
}

#[test]
fn an_interval_keeps_its_grid_however_late_it_is_delivered() {
    let mut script = Script::new();
    script.create(spec("topic:a", every(10)));
    script.until(13);
    script.delivered(FIRST, 10);
    script.until(29);
    script.delivered(FIRST, 20);
    script.until(30);
    expect![[r"
        0s created id 64 next 10s
        10s opened id 64 due 10s ready 10s node n next 20s
        13s delivered id 64 due 10s
        20s opened id 64 due 20s ready 20s node n next 30s
        29s delivered id 64 due 20s
        30s opened id 64 due 30s ready 30s node n next 40s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_schedule_ends_after_its_last_repetition_and_with_its_end() {
    let mut script = Script::new();
    let mut twice = spec("topic:a", every(10));
    twice.max_repetitions = NonZeroU32::new(2);
    script.create(twice);
    let mut ending = spec("topic:b", every(10));
    ending.more_mut().start_ms = Some(15_000);
    ending.more_mut().end_ms = Some(25_000);
    let ending = script.create(ending);
    for due in [10, 20] {
        script.until(due);
        script.delivered(FIRST, due);
        script.delivered(ending, due);
    }
    script.until(100);
    expect![[r"
        0s created id 64 next 10s
        0s created id 128 next 20s
        10s opened id 64 due 10s ready 10s node n next 20s
        10s delivered id 64 due 10s
        20s opened id 64 due 20s ready 20s node n next 30s
        20s opened id 128 due 20s ready 20s node n
        20s delivered id 64 due 20s
        20s ended id 64 end completed last 20s
        20s delivered id 128 due 20s
        20s ended id 128 end completed last 20s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_nobody_is_in_the_way_of_is_opened_and_claimed_ahead_of_time() {
    let mut script = Script::with(Settings { lookahead_ms: 250, ..settings() });
    script.create(spec("topic:a", every(10)));
    script.create(spec("letter:a", every(10)));
    script.until(10);
    expect![[r"
        0s created id 64 next 10s
        0s created id 128 next 10s
        9750ms opened id 64 due 10s ready 10s node n next 20s
        10s opened id 128 due 10s ready 10s next 20s
        10s claimed id 128 due 10s node n
    "]]
    .assert_eq(&script.log());
}

#[test]
fn jitter_delays_each_occurrence_by_a_rule_within_its_bound() {
    let mut script = Script::new();
    let mut spread = spec("topic:a", every(10));
    spread.more_mut().jitter_ms = 5_000;
    script.create(spread);
    let mut delays = Vec::new();
    for due in (10..=100).step_by(10) {
        script.until(due + 5);
        let open = &script.timetable.get(FIRST).unwrap().open;
        delays.push(open[0].ready_ms - open[0].due_ms);
        assert!(open[0].claimed_by.is_some(), "it is delivered at last");
        script.delivered(FIRST, due);
    }
    assert!(delays.iter().all(|delay| (0..=5_000).contains(delay)), "{delays:?}");
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 5, "they are spread: {delays:?}");
}
