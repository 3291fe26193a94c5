//! Kinds of targets that are delivered when somebody asks for it.

use expect_test::expect;
use switchboard_schedule::{Missed, Pass, Spec, Timing};

use crate::script::{FIRST, SECOND, Script, every, spec};

fn pass(script: &mut Script) -> usize {
    let passed = script.send(&Pass { kind: "prompt".into() }).unwrap();
    script.tick_if_due();
    passed.len()
}

#[test]
fn nothing_is_delivered_before_a_pass_and_what_is_due_in_a_pass() {
    let mut script = Script::new();
    script.create(Spec { missed: Missed::Once, ..spec("prompt:a", Timing::once(10_000)) });
    script.create(Spec { missed: Missed::Once, ..spec("prompt:a", Timing::once(11_000)) });
    script.create(Spec { missed: Missed::Once, ..spec("prompt:a", Timing::once(99_000)) });
    script.until(20);
    script.forget_log();
    assert_eq!(pass(&mut script), 2);
    assert_eq!(pass(&mut script), 0, "of two passes one has it");
    script.delivered(FIRST, 10);
    script.tick_if_due();
    script.delivered(SECOND, 11);
    expect![[r"
        20s opened id 64 due 10s ready 10s released
        20s opened id 128 due 11s ready 11s released
        20s claimed id 64 due 10s node n
        20s delivered id 64 due 10s
        20s ended id 64 end completed last 10s
        20s claimed id 128 due 11s node n
        20s delivered id 128 due 11s
        20s ended id 128 end completed last 11s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_failed_in_a_pass_waits_for_the_next() {
    let mut script = Script::new();
    script.create(Spec { missed: Missed::Once, ..spec("prompt:a", every(10)) });
    script.until(12);
    assert_eq!(pass(&mut script), 1);
    script.failed(FIRST, 10);
    script.until(19);
    script.forget_log();
    assert_eq!(script.timetable.get(FIRST).unwrap().next_run_ms(), Some(10_000), "it stays as it was");
    assert_eq!(pass(&mut script), 1);
    script.delivered(FIRST, 10);
    expect![[r"
        19s released id 64 due 10s ready 19s
        19s claimed id 64 due 10s node n
        19s delivered id 64 due 10s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_pass_makes_up_for_many_due_times_with_one_delivery_on_the_old_grid() {
    let mut script = Script::new();
    script.create(Spec { missed: Missed::Once, ..spec("prompt:a", every(600)) });
    script.sleep_until(35 * 60);
    script.forget_log();
    assert_eq!(pass(&mut script), 1);
    script.delivered(FIRST, 600);
    expect![[r"
        2100s opened id 64 due 600s ready 600s next 1200s released
        2100s skipped id 64 due 1200s last 1800s count 2 why missed next 2400s
        2100s claimed id 64 due 600s node n
        2100s delivered id 64 due 600s
    "]]
    .assert_eq(&script.log());
    assert_eq!(script.timetable.get(FIRST).unwrap().next_run_ms(), Some(2_400_000));
}
