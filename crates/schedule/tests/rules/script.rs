//! A timetable under a clock that the test moves, and what happened in it, line by line.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use switchboard_exchange::{Decide, Machine as _, Timestamp};
use switchboard_schedule::{
    Address, Attempt, Attend, Create, Event, Kind, Message, Missed, NodeId, OccurrenceId, Outcome, Overlap,
    Rejection, Retry, ScheduleId, Settings, Settle, Shard, Spec, Timetable, Timing,
};

/// The number of the first schedule of a script.
pub(crate) const FIRST: ScheduleId = ScheduleId::new(64);
/// The number of the second.
pub(crate) const SECOND: ScheduleId = ScheduleId::new(128);

pub(crate) struct Script {
    pub(crate) timetable: Timetable,
    pub(crate) settings: Settings,
    pub(crate) now_ms: i64,
    log: String,
}

/// Topics are unordered; letters are ordered; prompts are ordered and delivered by passes only.
pub(crate) fn settings() -> Settings {
    let retry = Retry { first_ms: 1_000, factor: 1, max_ms: 1_000, attempts: Some(3) };
    let kind = |ordered, by_pass| Kind { ordered, by_pass, retry };
    let kinds = [("topic", kind(false, false)), ("letter", kind(true, false)), ("prompt", kind(true, true))];
    Settings {
        kinds: Arc::new(kinds.into_iter().map(|(name, kind)| (Arc::from(name), kind)).collect()),
        lookahead_ms: 0,
        ..Settings::default()
    }
}

pub(crate) fn spec(address: &str, timing: Timing) -> Spec {
    let (kind, to) = address.split_once(':').unwrap();
    Spec {
        name: "".into(),
        address: Address::new(kind, to),
        message: Message::Text("hello".into()),
        timing,
        value: "as written".into(),
        missed: Missed::Skip,
        overlap: Overlap::Skip,
        max_repetitions: None,
        more: None,
    }
}

/// Every `seconds`, first after that time.
pub(crate) fn every(seconds: i64) -> Timing {
    Timing::every(seconds.unsigned_abs() * 1_000, seconds * 1_000).unwrap()
}

impl Script {
    /// A timetable that somebody called `n` attends.
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let mut script = Self::unattended(settings);
        script.attend("n");
        script
    }

    pub(crate) fn unattended(settings: Settings) -> Self {
        let mut timetable = Timetable::new();
        timetable.configure(&settings);
        timetable.resume(Timestamp::UNIX_EPOCH);
        Self { timetable, settings, now_ms: 0, log: String::new() }
    }

    pub(crate) fn attend(&mut self, node: &str) {
        self.send(&Attend { node: NodeId(node.into()) }).unwrap();
    }

    pub(crate) fn create(&mut self, spec: Spec) -> ScheduleId {
        let create = Create { spec, shard: Shard::all().next().unwrap(), floor: 0, past: None, ahead: false };
        self.send(&create).unwrap().id
    }

    /// Sends a command, after the tick that the exchange lets come first.
    pub(crate) fn send<C>(&mut self, command: &C) -> Result<<Timetable as Decide<C>>::Reply, Rejection>
    where
        Timetable: Decide<C>,
    {
        self.tick_if_due();
        let decided = self.timetable.decide(self.now(), command);
        let events = decided.as_ref().map(|decision| decision.events.clone()).unwrap_or_default();
        self.apply(&events);
        let observed = self.timetable.observe(self.now(), command, decided.is_ok());
        self.apply(&Vec::from_iter(observed));
        if let Err(rejection) = &decided {
            self.note(&format!("rejected: {rejection}"));
        }
        decided.map(|decision| decision.reply)
    }

    pub(crate) fn delivered(&mut self, id: ScheduleId, due_s: i64) {
        self.settle(id, due_s, Outcome::delivered());
    }

    pub(crate) fn failed(&mut self, id: ScheduleId, due_s: i64) {
        self.settle(id, due_s, Outcome::failed("no"));
    }

    pub(crate) fn settle(&mut self, id: ScheduleId, due_s: i64, outcome: Outcome) {
        let occurrence = OccurrenceId { due_ms: due_s * 1_000, schedule: id };
        let open = self
            .timetable
            .get(id)
            .and_then(|schedule| schedule.open.iter().find(|open| open.due_ms == occurrence.due_ms).cloned());
        let number = open.map_or(1, |open| open.attempts);
        let node = NodeId("n".into());
        self.send(&Settle { node, attempts: vec![Attempt { occurrence, number, outcome }] }).unwrap();
    }

    /// Moves the clock to `seconds`, stopping wherever the timetable wants to be woken.
    pub(crate) fn until(&mut self, seconds: i64) {
        let until_ms = seconds * 1_000;
        while let Some(deadline) = self.timetable.next_deadline().map(Timestamp::as_millisecond) {
            if deadline > until_ms {
                break;
            }
            self.now_ms = self.now_ms.max(deadline);
            assert!(self.tick_if_due() < 100, "the timetable never comes to rest\n{}", self.log);
        }
        self.now_ms = until_ms;
    }

    /// Moves the clock to `seconds` as if nobody had run until then.
    pub(crate) fn sleep_until(&mut self, seconds: i64) {
        self.now_ms = seconds * 1_000;
        self.restart();
    }

    /// Ends the process and starts it again: soft state is gone, the rest is read back.
    pub(crate) fn restart(&mut self) {
        let state = serde_json::to_string(&self.timetable).unwrap();
        self.timetable = serde_json::from_str(&state).unwrap();
        self.timetable.configure(&self.settings);
        self.timetable.resume(self.now());
        let events = self.timetable.abandon(self.now());
        self.apply(&events);
        self.attend("n");
    }

    pub(crate) fn tick_if_due(&mut self) -> usize {
        let mut ticks = 0;
        while self.timetable.next_deadline().is_some_and(|deadline| deadline <= self.now()) && ticks < 100 {
            let events = self.timetable.tick(self.now());
            self.apply(&events);
            self.timetable.ticked(self.now());
            ticks += 1;
        }
        ticks
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms).unwrap()
    }

    fn apply(&mut self, events: &[Event]) {
        for event in events {
            // What the journal keeps is what is applied.
            let kept = serde_json::to_value(event).unwrap();
            let event: Event = serde_json::from_value(kept.clone()).unwrap();
            self.timetable.apply(&event);
            self.note(&line(&kept));
        }
    }

    fn note(&mut self, line: &str) {
        if line.starts_with("leased") || line.starts_with("lapsed") {
            return;
        }
        writeln!(self.log, "{} {line}", seconds(self.now_ms)).unwrap();
    }

    /// What happened since it was last asked, without leases.
    pub(crate) fn log(&mut self) -> String {
        std::mem::take(&mut self.log)
    }

    pub(crate) fn forget_log(&mut self) {
        self.log.clear();
    }
}

/// An event as a line: its type, then its fields; times in seconds.
fn line(event: &Value) -> String {
    let fields = event.as_object().unwrap();
    let mut line = fields["type"].as_str().unwrap().to_owned();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("type" | "at" | "spec", _) => {}
            ("due" | "next" | "ready" | "last" | "retry" | "until", Value::Number(ms)) => {
                write!(line, " {name} {}", seconds(ms.as_i64().unwrap())).unwrap();
            }
            (_, Value::String(text)) => write!(line, " {name} {text}").unwrap(),
            (_, Value::Bool(true)) => write!(line, " {name}").unwrap(),
            (_, value) => write!(line, " {name} {value}").unwrap(),
        }
    }
    line
}

fn seconds(ms: i64) -> String {
    if ms % 1_000 == 0 { format!("{}s", ms / 1_000) } else { format!("{ms}ms") }
}
