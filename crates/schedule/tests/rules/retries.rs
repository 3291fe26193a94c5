//! What becomes of deliveries that fail.

use std::time::Duration;

use expect_test::expect;
use switchboard_schedule::{Outcome, Retry, Timing};

use crate::script::{FIRST, Script, every, spec};

#[test]
fn a_failed_delivery_is_tried_again_and_is_dead_after_the_last_try() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::once(10_000)));
    for at in [10, 12, 14] {
        script.until(at);
        script.failed(FIRST, 10);
    }
    script.until(100);
    expect![[r"
        0s created id 64 next 10s
        10s opened id 64 due 10s ready 10s node n
        10s failed id 64 due 10s error no retry 11203ms
        11203ms claimed id 64 due 10s node n
        12s failed id 64 due 10s error no retry 13130ms
        13130ms claimed id 64 due 10s node n
        14s failed id 64 due 10s error no
        14s ended id 64 end failed last 10s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_recurring_schedule_goes_on_after_a_dead_occurrence() {
    let mut script = Script::new();
    script.create(spec("topic:a", every(10)));
    script.until(10);
    script.settle(FIRST, 10, Outcome::refused("gone"));
    script.until(20);
    expect![[r"
        0s created id 64 next 10s
        10s opened id 64 due 10s ready 10s node n next 20s
        10s failed id 64 due 10s error gone
        20s opened id 64 due 20s ready 20s node n next 30s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_target_that_asks_for_a_longer_pause_gets_it_up_to_a_day() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::once(10_000)));
    script.until(10);
    let busy = |seconds| Outcome::Failed {
        error: "busy".into(),
        permanent: false,
        retry_after: Some(Duration::from_secs(seconds)),
    };
    script.settle(FIRST, 10, busy(60));
    script.until(70);
    script.settle(FIRST, 10, busy(1_000_000));
    expect![[r"
        0s created id 64 next 10s
        10s opened id 64 due 10s ready 10s node n
        10s failed id 64 due 10s error busy retry 70s
        70s claimed id 64 due 10s node n
        70s failed id 64 due 10s error busy retry 86470s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_its_node_never_came_back_from_is_given_up_after_as_many_attempts() {
    let mut script = Script::new();
    let mut fragile = spec("topic:a", Timing::once(10_000));
    fragile.more_mut().retry = Some(Retry { attempts: Some(2), ..Retry::default() });
    script.create(fragile);
    script.until(10);
    script.restart();
    script.tick_if_due();
    script.restart();
    script.forget_log();
    script.until(11);
    expect![[r"
        10s failed id 64 due 10s error the server was gone during the last of 2 attempts
        10s ended id 64 end failed last 10s
    "]]
    .assert_eq(&script.log());
    let record = script.timetable.history(FIRST).next().unwrap();
    expect![[r#"
        Record {
            due_ms: 10000,
            at_ms: 10000,
            fate: Dead {
                error: "the server was gone during the last of 2 attempts",
            },
            attempts: 2,
        }
    "#]]
    .assert_debug_eq(record);
}
