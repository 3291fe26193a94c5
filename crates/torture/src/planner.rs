//! A client that makes schedules, cancels some, and looks what became of them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::client::{Answer, Client, IdBy};
use crate::receiver::Receiver;
use crate::{Outcome, Torment};

/// How long a planner rests between two calls, at most. Deliveries are the subject, and have to keep up.
const REST: Duration = Duration::from_millis(4);

/// How long after its last due time a schedule is looked at.
const RIPE: Duration = Duration::from_secs(3);

/// How long everything may take that is due, once the server is left alone.
const PATIENCE: Duration = Duration::from_mins(1);

/// A schedule that the server acknowledged.
#[derive(Debug)]
struct Made {
    id: u64,
    /// When it is due, as the server said.
    due: Vec<String>,
    /// When the last of them was acknowledged to come, about.
    ripe_at: Instant,
    cancelled: Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelled {
    No,
    /// Acknowledged well before its first due time.
    Yes,
    /// Nobody knows.
    Perhaps,
}

/// A call whose answer has not come.
#[derive(Debug, Clone)]
struct Pending {
    id: String,
    id_by: IdBy,
    tool: &'static str,
    arguments: Value,
    /// Whether the schedule that it makes is to be cancelled next.
    cancels: bool,
}

/// A client that makes schedules, one call at a time.
#[derive(Debug)]
pub(crate) struct Planner {
    name: String,
    calls: u64,
    pending: Option<Pending>,
    made: VecDeque<Made>,
    pub(crate) acknowledged: u64,
    pub(crate) due: u64,
    pub(crate) cancelled: u64,
}

impl Planner {
    pub(crate) fn new(name: String) -> Self {
        Self { name, calls: 0, pending: None, made: VecDeque::new(), acknowledged: 0, due: 0, cancelled: 0 }
    }

    /// Whether a call was under way when the server died.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Makes schedules until the server is gone.
    pub(crate) fn work(&mut self, server: SocketAddr, receiver: &Receiver, seed: u64) -> Outcome {
        let mut random = StdRng::seed_from_u64(seed);
        let worked = Client::connect(server).and_then(|mut client| {
            loop {
                let call = self.next_call(receiver, &mut random);
                self.send(&mut client, call)?;
                std::thread::sleep(random.random_range(Duration::ZERO..REST));
            }
        });
        match worked {
            Ok(()) | Err(Torment::Lost(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Repeats the call that had no answer, which then has its effect once.
    pub(crate) fn take_up(&mut self, server: SocketAddr) -> Outcome<usize> {
        let Some(call) = self.pending.take() else { return Ok(0) };
        let mut client = Client::connect(server)?;
        let made = self.made.back().map(|made| made.id);
        self.send(&mut client, call)?;
        // The answer to a repetition may show times that follow from now. These follow from when it was made.
        if let Some(last) = self.made.back_mut().filter(|last| Some(last.id) != made) {
            let shown = client.call("schedule_get", &json!({"id": last.id}), None)?.value;
            last.due = due_times(&shown["upcoming"], "utc");
            last.due.extend(due_times(&shown["schedule"]["open"], "due"));
            last.due.extend(due_times(&shown["occurrences"], "due"));
        }
        Ok(1)
    }

    fn next_call(&mut self, receiver: &Receiver, random: &mut StdRng) -> Pending {
        if let Some(last) = self.made.back()
            && last.cancelled == Cancelled::Perhaps
            && last.ripe_at > Instant::now() + RIPE
        {
            return self.call("schedule_cancel", json!({"id": last.id}), random, false);
        }
        let now = Timestamp::now();
        let after = |millis: i64| {
            let at = now.as_millisecond() + millis;
            Timestamp::from_millisecond(at).unwrap_or(now).to_string()
        };
        let to = format!("http://{}/{}", receiver.address, self.name);
        let mut arguments = json!({
            "name": format!("{} {}", self.name, self.calls),
            "target": {"kind": "webhook", "to": to},
            "message": {"endures": true},
            "missed": {"all": {"max": 100, "within": "1h"}},
            "retry": {"first": "100ms", "factor": 1, "max": "1s", "attempts": 0},
        });
        let cancels = random.random_ratio(1, 8);
        if cancels {
            arguments["at"] = after(5_000).into();
        } else if random.random_ratio(1, 4) {
            // At most three due times, all of which the answer names.
            arguments["every"] = "1s".into();
            arguments["end"] = after(2_900).into();
        } else {
            arguments["at"] = after(random.random_range(20..1_500)).into();
        }
        self.call("schedule_create", arguments, random, cancels)
    }

    fn call(&mut self, tool: &'static str, arguments: Value, random: &mut StdRng, cancels: bool) -> Pending {
        self.calls += 1;
        let id_by = if random.random_bool(0.5) { IdBy::Header } else { IdBy::Meta };
        Pending { id: format!("{}-{}", self.name, self.calls), id_by, tool, arguments, cancels }
    }

    fn send(&mut self, client: &mut Client, call: Pending) -> Outcome {
        self.pending = Some(call.clone());
        let answer = client.call(call.tool, &call.arguments, Some((&call.id, call.id_by)))?;
        self.pending = None;
        self.note(&call, &answer)
    }

    fn note(&mut self, call: &Pending, answer: &Answer) -> Outcome {
        if let Some(code) = &answer.refused {
            // On its way for too long, or repeated: its time is over by now.
            if code == "never_due" || answer.value["error"]["parameter"] == "at" {
                return Ok(());
            }
            return Err(Torment::broken(format!("{call:?} was refused with '{code}': {}", answer.value)));
        }
        self.acknowledged += 1;
        if call.tool == "schedule_cancel" {
            if let Some(last) = self.made.back_mut() {
                // A repetition may have come too late to be sure of it.
                let early = last.ripe_at > Instant::now() + RIPE + Duration::from_secs(1);
                last.cancelled = if early { Cancelled::Yes } else { Cancelled::Perhaps };
                last.ripe_at = last.ripe_at.max(Instant::now());
                self.cancelled += u64::from(early);
            }
            return Ok(());
        }
        let due = due_times(&answer.value["upcoming"], "utc");
        let Some(id) = answer.value["schedule"]["id"].as_u64() else {
            return Err(Torment::broken(format!("{call:?} was answered without a number: {}", answer.value)));
        };
        let until_last = if call.cancels { Duration::from_secs(5) } else { Duration::from_secs(3) };
        let cancelled = if call.cancels { Cancelled::Perhaps } else { Cancelled::No };
        self.made.push_back(Made { id, due, ripe_at: Instant::now() + until_last + RIPE, cancelled });
        Ok(())
    }

    /// Looks at those schedules whose last due time is over for a while, and forgets those that are as they should be.
    pub(crate) fn inspect(&mut self, server: SocketAddr, receiver: &Receiver) -> Outcome {
        let ripe = |made: &Made| made.ripe_at <= Instant::now();
        let mut client = Client::connect(server)?;
        // Only the latest can be about to be cancelled.
        while self.made.len() > 1 && self.made.front().is_some_and(ripe) {
            let Some(made) = self.made.pop_front() else { break };
            match self.verify(&mut client, receiver, &made)? {
                Ok(()) => {}
                // Killed again and again, the server may not have come to it.
                Err(why) if made.ripe_at.elapsed() < PATIENCE => {
                    drop(why);
                    self.made.push_front(made);
                    break;
                }
                Err(why) => return Err(Torment::broken(why)),
            }
        }
        receiver.check()
    }

    /// Waits until all that is due is delivered, with a server that is left alone.
    pub(crate) fn settle(&mut self, server: SocketAddr, receiver: &Receiver) -> Outcome {
        let mut client = Client::connect(server)?;
        let began = Instant::now();
        while let Some(made) = self.made.front() {
            let early = made.ripe_at.saturating_duration_since(Instant::now());
            if !early.is_zero() {
                std::thread::sleep(early);
                continue;
            }
            let Some(made) = self.made.pop_front() else { break };
            if let Err(why) = self.verify(&mut client, receiver, &made)? {
                if began.elapsed() > PATIENCE {
                    return Err(Torment::broken(why));
                }
                self.made.push_front(made);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        receiver.check()
    }

    /// Whether a schedule is there, its due times are over, each has one record, and reached the receiver. The inner error
    /// is what is not so yet.
    fn verify(
        &mut self,
        client: &mut Client,
        receiver: &Receiver,
        made: &Made,
    ) -> Outcome<Result<(), String>> {
        let id = made.id;
        let answer = client.call("schedule_get", &json!({"id": id, "history": 100}), None)?;
        if let Some(code) = answer.refused {
            return Err(Torment::broken(format!("schedule {id} was acknowledged and is gone: {code}")));
        }
        let mut fates: BTreeMap<String, String> = BTreeMap::new();
        for record in answer.value["occurrences"].as_array().into_iter().flatten() {
            let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
            let (due, fate) = (text("due"), text("fate"));
            if fate == "delivered" && !receiver.has(&(id, due.clone())) {
                return Err(Torment::broken(format!(
                    "{due} of schedule {id} is delivered, but nobody has it"
                )));
            }
            if fates.insert(due.clone(), fate).is_some() {
                return Err(Torment::broken(format!(
                    "{due} of schedule {id} has two records: {}",
                    answer.value
                )));
            }
        }
        match made.cancelled {
            Cancelled::Perhaps => return Ok(Ok(())),
            Cancelled::Yes => {
                let reached = made.due.iter().find(|due| receiver.has(&(id, (*due).clone())));
                return match reached {
                    None => Ok(Ok(())),
                    Some(due) => Err(Torment::broken(format!("{due} of {id} was cancelled, and delivered"))),
                };
            }
            Cancelled::No => {}
        }
        let not_yet = made.due.iter().find(|due| !fates.contains_key(*due));
        if let Some(due) = not_yet {
            return Ok(Err(format!("{due} of schedule {id} was not delivered: {}", answer.value)));
        }
        if let Some((due, fate)) = fates.iter().find(|(_, fate)| *fate != "delivered") {
            return Err(Torment::broken(format!("{due} of schedule {id} is {fate}: {}", answer.value)));
        }
        self.due += fates.len() as u64;
        Ok(Ok(()))
    }
}

fn due_times(list: &Value, field: &str) -> Vec<String> {
    let of = |entry: &Value| entry[field].as_str().map(str::to_owned);
    list.as_array().into_iter().flatten().filter_map(of).collect()
}
