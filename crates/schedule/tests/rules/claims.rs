//! Who delivers, for how long, and in which order.

use expect_test::expect;
use switchboard_exchange::Machine as _;
use switchboard_schedule::{Attempt, Event, NodeId, OccurrenceId, Outcome, Settings, Settle, Timing};

use crate::script::{FIRST, SECOND, Script, every, settings, spec};

#[test]
fn one_destination_gets_one_at_a_time_in_the_order_they_were_due() {
    let mut script = Script::new();
    let late = script.create(spec("letter:a", Timing::once(12_000)));
    let early = script.create(spec("letter:a", Timing::once(11_000)));
    let other = script.create(spec("letter:b", Timing::once(12_000)));
    let first = script.create(spec("letter:a", Timing::once(10_000)));
    script.forget_log();
    script.until(13);
    script.delivered(first, 10);
    script.delivered(early, 11);
    script.delivered(late, 12);
    script.delivered(other, 12);
    expect![[r"
        10s opened id 256 due 10s ready 10s
        10s claimed id 256 due 10s node n
        11s opened id 128 due 11s ready 11s
        12s opened id 64 due 12s ready 12s
        12s opened id 192 due 12s ready 12s
        12s claimed id 192 due 12s node n
        13s delivered id 256 due 10s
        13s ended id 256 end completed last 10s
        13s claimed id 128 due 11s node n
        13s delivered id 128 due 11s
        13s ended id 128 end completed last 11s
        13s claimed id 64 due 12s node n
        13s delivered id 64 due 12s
        13s ended id 64 end completed last 12s
        13s delivered id 192 due 12s
        13s ended id 192 end completed last 12s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_waits_for_its_next_try_keeps_nobody_waiting() {
    let mut script = Script::new();
    script.create(spec("letter:a", Timing::once(10_000)));
    script.create(spec("letter:a", Timing::once(10_000)));
    script.forget_log();
    script.until(10);
    script.failed(FIRST, 10);
    script.tick_if_due();
    expect![[r"
        10s opened id 64 due 10s ready 10s
        10s opened id 128 due 10s ready 10s
        10s claimed id 64 due 10s node n
        10s failed id 64 due 10s error no retry 11203ms
        10s claimed id 128 due 10s node n
    "]]
    .assert_eq(&script.log());
}

#[test]
fn nobody_claims_where_nobody_attends() {
    let mut script = Script::unattended(settings());
    script.create(spec("topic:a", every(10)));
    script.until(15);
    assert!(script.timetable.get(FIRST).unwrap().open[0].claimed_by.is_none());
    script.attend("n");
    script.tick_if_due();
    assert!(script.timetable.get(FIRST).unwrap().open[0].claimed_by.is_some());
}

#[test]
fn a_restart_frees_what_was_claimed_and_the_next_attempt_has_the_next_number() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::once(10_000)));
    script.until(10);
    script.restart();
    script.tick_if_due();
    let open = &script.timetable.get(FIRST).unwrap().open[0];
    assert_eq!((open.attempts, open.claimed_by.is_some()), (2, true));
}

#[test]
fn a_node_keeps_its_claims_while_it_lives_and_loses_them_a_lease_after_it_died() {
    let mut script = Script::with(Settings { shared: true, ..settings() });
    script.create(spec("topic:a", Timing::once(10_000)));
    script.until(600);
    let claimed_by = |script: &Script| script.timetable.get(FIRST).unwrap().open[0].claimed_by.clone();
    assert_eq!(claimed_by(&script), Some(NodeId("n".into())), "its lease was renewed");
    // Another node goes on from what the journal has.
    let state = serde_json::to_string(&script.timetable).unwrap();
    script.timetable = serde_json::from_str(&state).unwrap();
    script.timetable.configure(&script.settings);
    script.attend("m");
    script.until(610);
    assert_eq!(claimed_by(&script), Some(NodeId("n".into())));
    script.until(661);
    assert_eq!(claimed_by(&script), Some(NodeId("m".into())));
}

#[test]
fn a_late_success_counts_and_a_late_failure_does_not() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::once(10_000)));
    script.until(10);
    let occurrence = OccurrenceId { due_ms: 10_000, schedule: FIRST };
    // Somebody else delivers by now.
    script.timetable.apply(&Event::Lapsed { node: NodeId("n".into()), at: 10_000 });
    script.timetable.apply(&Event::Claimed { id: FIRST, due: 10_000, node: NodeId("m".into()) });
    script.forget_log();
    let report = |outcome| Settle {
        node: NodeId("n".into()),
        attempts: vec![Attempt { occurrence, number: 1, outcome }],
    };
    script.send(&report(Outcome::failed("late"))).unwrap();
    expect![""].assert_eq(&script.log());
    script.send(&report(Outcome::delivered())).unwrap();
    script.send(&report(Outcome::delivered())).unwrap();
    expect![[r"
        10s delivered id 64 due 10s
        10s ended id 64 end completed last 10s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_report_about_several_occurrences_of_one_schedule_ends_it_once() {
    let mut script = Script::new();
    let mut twice = spec("topic:a", every(10));
    twice.overlap = switchboard_schedule::Overlap::Allow;
    twice.max_repetitions = std::num::NonZeroU32::new(2);
    script.create(twice);
    script.until(25);
    script.forget_log();
    let attempts = [10_000, 20_000].map(|due_ms| Attempt {
        occurrence: OccurrenceId { due_ms, schedule: FIRST },
        number: 1,
        outcome: Outcome::delivered(),
    });
    script.send(&Settle { node: NodeId("n".into()), attempts: attempts.into() }).unwrap();
    expect![[r"
        25s delivered id 64 due 10s
        25s delivered id 64 due 20s
        25s ended id 64 end completed last 20s
    "]]
    .assert_eq(&script.log());
    let _ = SECOND;
}
