//! What people ask of schedules.

use std::num::NonZeroU32;

use expect_test::expect;
use switchboard_exchange::Machine as _;
use switchboard_schedule::{
    Cancel, Cancelled, Change, Create, Delete, Event, Message, Missed, Past, Pause, Resume, RunNow, Settings,
    Shard, Spec, Status, Timing, Update,
};

use crate::script::{FIRST, Script, every, settings, spec};

#[test]
fn what_was_opened_ahead_is_not_delivered_once_its_schedule_is_cancelled() {
    let mut script = Script::with(Settings { lookahead_ms: 250, ..settings() });
    script.create(spec("topic:a", every(10)));
    script.now_ms = 9_900;
    script.tick_if_due();
    assert_eq!(script.send(&Cancel { id: FIRST }).unwrap(), Cancelled::Now);
    assert_eq!(script.send(&Cancel { id: FIRST }).unwrap(), Cancelled::Before);
    script.until(100);
    expect![[r"
        0s created id 64 next 10s
        9900ms opened id 64 due 10s ready 10s node n next 20s
        9900ms unopened id 64 due 10s next 10s
        9900ms ended id 64 end cancelled last 10s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_delivery_that_is_under_way_ends_well_and_the_schedule_stays_cancelled() {
    let mut script = Script::new();
    script.create(Spec { overlap: switchboard_schedule::Overlap::Queue, ..spec("topic:a", every(10)) });
    script.until(25);
    script.forget_log();
    script.send(&Cancel { id: FIRST }).unwrap();
    script.delivered(FIRST, 10);
    script.until(100);
    expect![[r"
        25s withdrawn id 64 due 20s why cancelled
        25s ended id 64 end cancelled last 10s
        25s delivered id 64 due 10s
    "]]
    .assert_eq(&script.log());
    script.failed(FIRST, 10);
    assert_eq!(script.timetable.get(FIRST).unwrap().delivered, 1);
}

#[test]
fn a_completed_schedule_cannot_be_changed() {
    let mut script = Script::new();
    script.create(spec("topic:a", Timing::once(10_000)));
    script.until(10);
    script.delivered(FIRST, 10);
    script.forget_log();
    script.send(&Cancel { id: FIRST }).unwrap_err();
    script.send(&Pause { id: FIRST }).unwrap_err();
    script.send(&RunNow { id: FIRST }).unwrap_err();
    script.send(&Update { id: FIRST, change: Change::default() }).unwrap_err();
    script.send(&Delete { id: FIRST }).unwrap();
    script.send(&Delete { id: FIRST }).unwrap_err();
    expect![[r"
        10s rejected: schedule 64 is completed: make a new one
        10s rejected: schedule 64 is completed: make a new one
        10s rejected: schedule 64 is completed: make a new one
        10s rejected: schedule 64 is completed: make a new one
        10s deleted id 64
        10s rejected: there is no schedule 64
    "]]
    .assert_eq(&script.log());
    assert_eq!(script.timetable.records().count(), 0);
}

#[test]
fn due_times_of_a_pause_are_skipped_and_counted() {
    let mut script = Script::new();
    script.create(spec("topic:a", every(10)));
    script.until(5);
    script.send(&Pause { id: FIRST }).unwrap();
    script.until(35);
    script.send(&Resume { id: FIRST }).unwrap();
    script.send(&Resume { id: FIRST }).unwrap();
    script.until(40);
    expect![[r"
        0s created id 64 next 10s
        5s paused id 64
        35s skipped id 64 due 10s last 30s count 3 why paused next 40s
        35s resumed id 64 next 40s
        40s opened id 64 due 40s ready 40s node n next 50s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_is_due_once_and_passed_in_a_pause_follows_the_rule_for_missed_times() {
    let mut script = Script::new();
    script.create(Spec { missed: Missed::Once, ..spec("topic:a", Timing::once(10_000)) });
    script.send(&Pause { id: FIRST }).unwrap();
    script.until(1_000);
    script.send(&Resume { id: FIRST }).unwrap();
    script.until(1_001);
    expect![[r"
        0s created id 64 next 10s
        0s paused id 64
        1000s resumed id 64 next 10s
        1000s opened id 64 due 10s ready 10s node n
    "]]
    .assert_eq(&script.log());
}

#[test]
fn run_now_delivers_beside_the_timing_and_counts_for_no_limit() {
    let mut script = Script::new();
    let mut once = spec("topic:a", every(10));
    once.max_repetitions = NonZeroU32::new(1);
    script.create(once);
    script.until(3);
    let due = script.send(&RunNow { id: FIRST }).unwrap();
    let again = script.send(&RunNow { id: FIRST }).unwrap();
    assert_eq!((due, again), (3_000, 3_001));
    script.tick_if_due();
    script.delivered(FIRST, 3);
    script.until(10);
    expect![[r"
        0s created id 64 next 10s
        3s opened id 64 due 3s ready 3s manual released
        3s claimed id 64 due 3s node n
        3s opened id 64 due 3001ms ready 3s manual released
        3s claimed id 64 due 3001ms node n
        3s delivered id 64 due 3s
        10s opened id 64 due 10s ready 10s node n next 20s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn a_change_of_what_was_opened_ahead_is_delivered_as_changed() {
    let mut script = Script::with(Settings { lookahead_ms: 250, ..settings() });
    script.create(spec("topic:a", every(10)));
    script.now_ms = 9_900;
    script.tick_if_due();
    let change = Change { message: Some(Message::Text("new".into())), ..Change::default() };
    script.send(&Update { id: FIRST, change }).unwrap();
    script.tick_if_due();
    let change = Change { timing: Some((every(15), "15s".into())), ..Change::default() };
    script.send(&Update { id: FIRST, change }).unwrap();
    script.until(15);
    expect![[r"
        0s created id 64 next 10s
        9900ms opened id 64 due 10s ready 10s node n next 20s
        9900ms unopened id 64 due 10s next 10s
        9900ms updated id 64 next 10s
        9900ms opened id 64 due 10s ready 10s node n next 20s
        9900ms unopened id 64 due 10s next 10s
        9900ms updated id 64 next 15s
        14750ms opened id 64 due 15s ready 15s node n next 30s
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    let mut script = Script::new();
    script.until(10);
    let create =
        |spec| Create { spec, shard: Shard::all().next().unwrap(), floor: 0, past: None, ahead: false };
    let mut ended = spec("topic:a", every(10));
    ended.more_mut().end_ms = Some(5_000);
    script.send(&create(ended)).unwrap_err();
    let mut turned = spec("topic:a", every(10));
    turned.more_mut().start_ms = Some(9_000);
    turned.more_mut().end_ms = Some(5_000);
    script.send(&create(turned)).unwrap_err();
    let storm = Missed::All { max: 1_000, window_ms: 1 };
    script.send(&create(Spec { missed: storm, ..spec("topic:a", every(10)) })).unwrap_err();
    script.send(&create(spec("topic:", every(10)))).unwrap_err();
    expect![[r"
        10s rejected: 'as written' is never due from now on: check its time, its start and its end
        10s rejected: the end is before the start: swap them, or leave one out
        10s rejected: 1000 missed due times cannot be made up for: say 1 to 100
        10s rejected: the destination is empty: say whom to call
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_was_imported_keeps_its_counters_and_is_not_imported_twice() {
    let mut script = Script::new();
    let mut old = Spec { missed: Missed::Once, ..spec("prompt:a", every(10)) };
    old.more_mut().source = Some("promptyoself.db#7".into());
    let past = Past { next_ms: -5_000, delivered: 3, last_run_ms: Some(-15_000) };
    let create =
        Create { spec: old, shard: Shard::all().next().unwrap(), floor: 41, past: Some(past), ahead: false };
    let made = script.send(&create).unwrap();
    assert_eq!(made.id.get(), 42 * 64);
    script.send(&create).unwrap_err();
    let schedule = script.timetable.get(made.id).unwrap();
    assert_eq!(
        (schedule.delivered, schedule.last_run_ms, schedule.next_run_ms()),
        (3, Some(-15_000), Some(-5_000))
    );
    expect![[r"
        0s created id 2688 next -5s delivered 3 last_run -15000
        0s rejected: 'promptyoself.db#7' was imported before, as schedule 2688
    "]]
    .assert_eq(&script.log());
}

#[test]
fn what_is_over_keeps_the_due_time_at_which_it_ended() {
    let kept = |script: &Script| {
        let schedule = script.timetable.get(FIRST).unwrap();
        (schedule.status, schedule.next_run_ms().unwrap() / 1_000)
    };
    let twice = || Spec { max_repetitions: NonZeroU32::new(2), ..spec("topic:a", every(10)) };

    let mut script = Script::new();
    script.create(twice());
    script.until(10);
    script.delivered(FIRST, 10);
    assert_eq!(kept(&script), (Status::Active, 20));
    script.until(25);
    script.delivered(FIRST, 20);
    assert_eq!(kept(&script), (Status::Completed, 20));
    script.restart();
    script.until(100);
    assert_eq!(kept(&script), (Status::Completed, 20));

    // A change after which it was delivered often enough.
    let mut script = Script::new();
    script.create(spec("topic:a", every(10)));
    script.until(10);
    script.delivered(FIRST, 10);
    let change = Change { max_repetitions: Some(NonZeroU32::new(1)), ..Change::default() };
    script.send(&Update { id: FIRST, change }).unwrap();
    assert_eq!(kept(&script), (Status::Completed, 10));

    // Cancelled before anything was due, while it waits to be tried again, and while it is delivered.
    let mut script = Script::new();
    script.create(twice());
    script.until(5);
    script.send(&Cancel { id: FIRST }).unwrap();
    assert_eq!(kept(&script), (Status::Cancelled, 10));
    let mut script = Script::new();
    script.create(twice());
    script.until(10);
    script.failed(FIRST, 10);
    script.send(&Cancel { id: FIRST }).unwrap();
    assert!(script.timetable.get(FIRST).unwrap().open.is_empty());
    assert_eq!(kept(&script), (Status::Cancelled, 10));
    let mut script = Script::new();
    script.create(twice());
    script.until(10);
    script.send(&Cancel { id: FIRST }).unwrap();
    script.delivered(FIRST, 10);
    assert_eq!(kept(&script), (Status::Cancelled, 10));
}

#[test]
fn an_end_that_does_not_say_what_is_kept_is_read() {
    let mut script = Script::new();
    script.create(spec("topic:a", every(10)));
    let ended = r#"{"type": "ended", "id": 64, "end": "completed", "at": 5000}"#;
    script.timetable.apply(&serde_json::from_str::<Event>(ended).unwrap());
    assert_eq!(script.timetable.get(FIRST).unwrap().next_run_ms(), Some(10_000));
}
