//! What clients ask of schedules.

use std::num::NonZeroU32;
use std::sync::Arc;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use switchboard_exchange::CommandId;
use switchboard_schedule::{
    Address, Change, Message, Missed, More, Overlap, Retry, ScheduleId, Spec, Timing, Zone,
};

use crate::schedules::targets::KINDS;

/// One thing that a client asks for.
#[derive(Debug, Clone)]
pub enum Wish {
    /// Make one.
    Create(Box<Spec>),
    /// Change one.
    Update(ScheduleId, Box<Change>),
    /// Pause one.
    Pause(ScheduleId),
    /// Let one go on.
    Resume(ScheduleId),
    /// Cancel one.
    Cancel(ScheduleId),
    /// Delete one.
    Delete(ScheduleId),
    /// Deliver one now, and wait until that is over.
    RunNow(ScheduleId),
    /// See one.
    Get(ScheduleId),
    /// See all.
    List,
    /// Deliver all that waits for a pass.
    Pass,
}

/// A wish, and the id under which it is repeated.
#[derive(Debug, Clone)]
pub struct Call {
    /// Different for every call of a run.
    pub number: u64,
    /// What is asked for.
    pub wish: Wish,
    /// Its id; without one it is not repeated.
    pub id: Option<CommandId>,
}

/// How fast the schedules of a run go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Periods from 200 ms to a minute.
    Brisk,
    /// Periods from a minute to twenty: clocks may jump by an hour.
    Calm,
}

/// What somebody asks for at `now_ms`, where the schedules `known` were made before.
pub fn wish(rng: &mut StdRng, pace: Pace, now_ms: i64, number: u64, known: &[ScheduleId]) -> Wish {
    let most = 8;
    let Some(id) = known.choose(rng).copied() else { return Wish::Create(spec(rng, pace, now_ms, number)) };
    match rng.random_range(0..100) {
        0..30 if known.len() < most => Wish::Create(spec(rng, pace, now_ms, number)),
        0..45 => Wish::Update(id, Box::new(change(rng, pace, now_ms))),
        45..53 => Wish::Pause(id),
        53..64 => Wish::Resume(id),
        64..69 => Wish::Cancel(id),
        69..72 => Wish::Delete(id),
        72..82 => Wish::RunNow(id),
        82..85 => Wish::Get(id),
        85..89 => Wish::List,
        _ => Wish::Pass,
    }
}

fn spec(rng: &mut StdRng, pace: Pace, now_ms: i64, number: u64) -> Box<Spec> {
    let kind = *KINDS.choose(rng).expect("some");
    let to = *["ada", "bob"].choose(rng).expect("some");
    let (start_ms, end_ms) = (start(rng, now_ms), end(rng, now_ms));
    let jitter_ms = if rng.random_bool(0.25) { rng.random_range(1..3_000) } else { 0 };
    let retry = rng.random_bool(0.2).then(|| retry(rng));
    let more = More { start_ms, end_ms, jitter_ms, retry, source: None };
    Box::new(Spec {
        name: format!("s{number}").into(),
        address: Address::new(kind, to),
        message: Message::Text("wake up".into()),
        timing: timing(rng, pace, now_ms),
        value: "as written".into(),
        missed: missed(rng),
        overlap: overlap(rng),
        max_repetitions: max(rng),
        more: (more != More::default()).then(|| Box::new(more)),
    })
}

fn change(rng: &mut StdRng, pace: Pace, now_ms: i64) -> Change {
    let mut change = Change::default();
    match rng.random_range(0..8) {
        0 | 1 => change.timing = Some((timing(rng, pace, now_ms), "as written again".into())),
        2 => change.start_ms = Some(start(rng, now_ms)),
        3 => change.end_ms = Some(end(rng, now_ms)),
        4 => change.max_repetitions = Some(max(rng)),
        5 => change.missed = Some(missed(rng)),
        6 => change.overlap = Some(overlap(rng)),
        _ => change.message = Some(Message::Text(Arc::from("wake up again"))),
    }
    change
}

fn timing(rng: &mut StdRng, pace: Pace, now_ms: i64) -> Timing {
    let periods: [u64; 5] = match pace {
        Pace::Brisk => [200, 1_000, 5_000, 20_000, 60_000],
        Pace::Calm => [60_000, 60_000, 120_000, 300_000, 1_200_000],
    };
    let crons: [&str; 3] = match pace {
        Pace::Brisk => ["* * * * *", "*/2 * * * *", "0-59/3 9 * * *"],
        Pace::Calm => ["* * * * *", "*/10 * * * *", "5,25,45 * * * *"],
    };
    let period = *periods.choose(rng).expect("some");
    let span = period.cast_signed();
    match rng.random_range(0..10) {
        0..3 => Timing::once(now_ms + rng.random_range(-span..3 * span)),
        3..8 => Timing::every(period, (now_ms.div_euclid(span) - 2) * span).expect("a period"),
        _ => {
            let zone = Zone::named("Europe/Berlin").expect("a zone");
            Timing::cron(crons.choose(rng).expect("some"), zone).expect("an expression")
        }
    }
}

fn start(rng: &mut StdRng, now_ms: i64) -> Option<i64> {
    rng.random_bool(0.15).then(|| now_ms + rng.random_range(-60_000..120_000))
}

fn end(rng: &mut StdRng, now_ms: i64) -> Option<i64> {
    rng.random_bool(0.2).then(|| now_ms + rng.random_range(120_000..400_000))
}

fn max(rng: &mut StdRng) -> Option<NonZeroU32> {
    rng.random_bool(0.3).then(|| NonZeroU32::new(rng.random_range(1..8))).flatten()
}

fn missed(rng: &mut StdRng) -> Missed {
    match rng.random_range(0..4) {
        0 => Missed::Skip,
        1 => Missed::Once,
        _ => Missed::All {
            max: rng.random_range(1..6),
            window_ms: *[2_000, 60_000, 86_400_000].choose(rng).expect("some"),
        },
    }
}

fn overlap(rng: &mut StdRng) -> Overlap {
    *[Overlap::Skip, Overlap::Queue, Overlap::Allow].choose(rng).expect("some")
}

fn retry(rng: &mut StdRng) -> Retry {
    Retry { first_ms: 100, factor: 2, max_ms: 10_000, attempts: Some(rng.random_range(1..5)) }
}
