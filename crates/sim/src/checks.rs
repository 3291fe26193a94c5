//! The rules, each as a function that says how it is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use switchboard_coordination::{CoordinationError, LockList, Project, Rejection};
use switchboard_exchange::{CommandError, Machine, Record};
use switchboard_journal::{Payload, StreamId};

use crate::calls::{Call, Wish, collected, letters};
use crate::ledger::{Broken, FirstReply, Held, Item, Ledger};
use crate::scopes::Covered;

/// No path is covered by locks of two sessions.
pub fn at_most_one_holder_per_path(locks: &LockList) -> Result<(), Broken> {
    let covered = |path: &str| Covered::by(path).unwrap_or_else(|| panic!("'{path}' is in the table"));
    for (index, lock) in locks.held.iter().enumerate() {
        let other = locks.held[..index].iter().find(|other| {
            other.session != lock.session && covered(&other.path).overlaps(covered(&lock.path))
        });
        if let Some(other) = other {
            return Err(format!("at most one holder per path: {lock:?} and {other:?}"));
        }
    }
    Ok(())
}

/// The locks that a node lists are those after one of the entries that were written while it was asked.
pub fn locks_are_those_of_the_journal(locks: &LockList, held: &[Arc<Held>]) -> Result<(), Broken> {
    let listed: BTreeMap<&str, (&str, u64)> =
        locks.held.iter().map(|lock| (lock.path.as_str(), (lock.session.as_str(), lock.token))).collect();
    let same = |held: &Arc<Held>| {
        held.len() == listed.len()
            && held
                .iter()
                .all(|(scope, hold)| listed.get(scope.as_str()) == Some(&(hold.session.as_str(), hold.token)))
    };
    if held.is_empty() && listed.is_empty() || held.iter().any(same) {
        return Ok(());
    }
    Err(format!("a node lists the locks of the journal: it lists {listed:?}, the journal has {held:?}"))
}

/// What the machine is after the entries of a stream, one after another, without snapshots.
#[derive(Debug)]
pub struct Shadow<M = Project> {
    machine: M,
    seq: u64,
}

impl<M: Machine> Shadow<M> {
    /// Before the first entry.
    pub fn new(settings: &M::Settings) -> Self {
        let mut machine = M::new();
        machine.configure(settings);
        Self { machine, seq: 0 }
    }

    /// Whether it has been taken beyond entry `from`. What was looked at side by side may be compared in any order.
    pub fn is_past(&self, from: u64) -> bool {
        self.seq > from
    }

    /// The state of a node is that after one of the entries `from` to `to`.
    pub fn equals_live_state(
        &mut self,
        live: &str,
        from: u64,
        to: u64,
        entry: impl Fn(u64) -> Payload,
    ) -> Result<(), Broken> {
        loop {
            while self.seq < from {
                self.replay(&entry(self.seq + 1));
            }
            let replayed = serde_json::to_string(&self.machine).expect("a state is JSON");
            if replayed == live {
                return Ok(());
            }
            if self.seq >= to {
                let why = difference(
                    &serde_json::from_str(&replayed).expect("a state is JSON"),
                    &serde_json::from_str(live).expect("a state is JSON"),
                );
                return Err(format!(
                    "the replayed state equals the live state: after entry {to} the first difference is at {why}"
                ));
            }
            self.replay(&entry(self.seq + 1));
        }
    }

    fn replay(&mut self, payload: &Payload) {
        let record: Record<M::Event> = serde_json::from_str(payload.as_str()).expect("an entry is a record");
        for event in &record.events {
            self.machine.apply(event);
        }
        self.seq += 1;
    }
}

fn difference(replayed: &Value, live: &Value) -> String {
    match (replayed, live) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let differs = keys.into_iter().find(|key| a.get(*key) != b.get(*key));
            differs.map_or_else(
                || "the order of the fields".to_owned(),
                |key| format!("{key}/{}", difference(&replayed[key], &live[key])),
            )
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let differs = a.iter().zip(b).position(|(a, b)| a != b);
            differs.map_or_else(String::new, |at| format!("{at}/{}", difference(&a[at], &b[at])))
        }
        _ => format!(": replayed {replayed}, live {live}"),
    }
}

/// What an answer says is so: acknowledged means durable, rejected or refused means that nothing happened, and a
/// repeated call gets its first reply.
///
/// `first` is the first reply that the journal held before the attempt began, at the entry `began_at`. `sole` says that no
/// other attempt at the call is under way, or may have had an effect.
pub fn answer_is_right(
    call: &Call,
    answer: &Result<Value, CoordinationError>,
    first: Option<&FirstReply>,
    sole: bool,
    ledger: &Ledger,
    began_at: u64,
) -> Result<(), Broken> {
    if let Some(first) = first
        && call.wish.is_one_command()
    {
        a_repeated_call_gets_the_first_reply(answer, first)?;
    }
    let shown = ledger.effects(&call.marker());
    match answer {
        Ok(reply) => {
            if call.wish.must_show(reply) && shown != 1 {
                return Err(format!("what is acknowledged is durable: the journal shows it {shown} times"));
            }
            if let Some(id) = &call.id
                && call.wish.must_show(reply)
            {
                let kept = ledger.first_reply(&id.to_string());
                kept.ok_or("a call with an effect leaves its reply for repetitions")?;
            }
            what_is_granted_is_durable(call, reply, ledger)?;
            letters_say_what_was_sent(reply, call, ledger)?;
            a_check_tells_the_truth(call, reply, ledger, began_at)
        }
        Err(CommandError::Rejected(Rejection::RateLimited { .. } | Rejection::Deadlock { .. })) => Ok(()),
        Err(CommandError::Rejected(rejection)) if sole && call.wish.is_one_command() && shown != 0 => {
            Err(format!("what is rejected has no effect: {rejection}"))
        }
        Err(
            error
            @ (CommandError::Damaged { .. } | CommandError::IdReused { .. } | CommandError::TooLarge(_)),
        ) => Err(format!("no run gives reason for this: {error}")),
        Err(_) => Ok(()),
    }
}

fn a_repeated_call_gets_the_first_reply(
    answer: &Result<Value, CoordinationError>,
    first: &FirstReply,
) -> Result<(), Broken> {
    match answer {
        Ok(reply) if *reply == first.reply => Ok(()),
        Ok(_) | Err(CommandError::Rejected(_)) => Err(format!(
            "a repeated call gets the first reply: it was {} ({}, entry {}), now it is {answer:?}",
            first.reply, first.command, first.seq
        )),
        Err(_) => Ok(()),
    }
}

fn what_is_granted_is_durable(call: &Call, reply: &Value, ledger: &Ledger) -> Result<(), Broken> {
    let Some(grant) = reply.get("Granted") else { return Ok(()) };
    let (token, path) = (grant["token"].as_u64().unwrap_or(0), grant["path"].as_str().unwrap_or_default());
    if ledger.was_granted(token, call.session.as_str(), path) {
        Ok(())
    } else {
        Err(format!("a lock that is granted is in the journal: {grant}"))
    }
}

fn letters_say_what_was_sent(reply: &Value, call: &Call, ledger: &Ledger) -> Result<(), Broken> {
    if call.wish.takes_letters().is_none() {
        return Ok(());
    }
    for letter in letters(reply) {
        let sent = ledger.content(letter["id"].as_str().unwrap_or_default());
        if sent != letter["content"].as_str() {
            return Err(format!("a letter says what was sent: {letter}, sent was {sent:?}"));
        }
    }
    Ok(())
}

fn a_check_tells_the_truth(call: &Call, reply: &Value, ledger: &Ledger, began_at: u64) -> Result<(), Broken> {
    let Wish::Check { path, token } = &call.wish else { return Ok(()) };
    let path = Covered::path(path);
    let says = |held: &Arc<Held>| {
        let session = call.session.as_str();
        let mut covering = held.values().filter(|hold| hold.covered.overlaps(path));
        if covering.clone().any(|hold| hold.session != session) {
            return "locked_by_other";
        }
        match (covering.clone().next(), token) {
            (Some(_), Some(token)) if covering.all(|hold| hold.token != *token) => "stale_token",
            (Some(_), _) => "yours",
            (None, Some(_)) => "stale_token",
            (None, None) => "free",
        }
    };
    let held = ledger.held_between(began_at, ledger.seq());
    if held.is_empty() || held.iter().any(|held| reply["reason"] == says(held)) {
        return Ok(());
    }
    Err(format!("a check tells the truth: {reply}"))
}

/// What the clients of a run were told, to be held against the journal at its end.
#[derive(Debug, Default)]
pub struct Receipts {
    /// Which calls took each letter out of an inbox: stream, session and id.
    taken: BTreeMap<(StreamId, String, String), BTreeSet<u64>>,
    /// Which letters were handed over to stay in the inbox.
    kept: BTreeSet<(StreamId, String, String)>,
    /// Which calls were told a letter or an answer for the first time.
    told_first: BTreeMap<(StreamId, String), BTreeSet<u64>>,
    /// Sessions that gave up a call whose reply may have held letters.
    careless: BTreeSet<(StreamId, String)>,
    /// Texts of calls that were refused for good.
    refused: Vec<(StreamId, String)>,
    streams: BTreeMap<u64, StreamId>,
}

impl Receipts {
    /// A call begins.
    pub fn begun(&mut self, call: &Call, stream: &StreamId) {
        self.streams.insert(call.number, stream.clone());
    }

    fn stream(&self, call: &Call) -> StreamId {
        self.streams.get(&call.number).cloned().expect("a call that has begun")
    }

    /// The client will never know what became of a call.
    pub fn gave_up(&mut self, call: &Call) {
        let stream = self.stream(call);
        self.careless.insert((stream, call.session.to_string()));
    }

    /// The client was told that nothing happened, and leaves it at that.
    pub fn refused(&mut self, call: &Call) {
        let stream = self.stream(call);
        self.refused.push((stream, call.marker()));
    }

    /// The client has a reply: no letter comes twice, none for the first time twice.
    pub fn received(&mut self, call: &Call, reply: &Value) -> Result<(), Broken> {
        let stream = self.stream(call);
        let session = call.session.to_string();
        if let Some(answer) = collected(reply)
            && let Wish::Ask { .. } | Wish::Collect { .. } | Wish::WaitForAnswer { .. } = &call.wish
            && answer["delivered_before"] == false
        {
            let id = match &call.wish {
                Wish::Collect { id } | Wish::WaitForAnswer { id, .. } => id.clone(),
                _ => {
                    let stamp = reply[0]["stamp"].as_i64().map(crate::ledger::stamp_text).unwrap_or_default();
                    format!("{session}-{stamp}")
                }
            };
            self.tell_first(&stream, format!("response-{id}"), call)?;
        }
        let Some(taken) = call.wish.takes_letters() else { return Ok(()) };
        for letter in letters(reply) {
            let id = letter["id"].as_str().unwrap_or_default().to_owned();
            if letter["delivered_before"] == false && !id.starts_with("ticket-") {
                self.tell_first(&stream, format!("{session}/{id}"), call)?;
                if id.starts_with("response-") {
                    self.tell_first(&stream, id.clone(), call)?;
                }
            }
            let key = (stream.clone(), session.clone(), id);
            if !taken {
                self.kept.insert(key);
                continue;
            }
            let calls = self.taken.entry(key).or_default();
            calls.insert(call.number);
            if calls.len() > 1 {
                return Err(format!("no letter is delivered twice: {letter} by calls {calls:?}"));
            }
        }
        Ok(())
    }

    fn tell_first(&mut self, stream: &StreamId, what: String, call: &Call) -> Result<(), Broken> {
        let calls = self.told_first.entry((stream.clone(), what.clone())).or_default();
        calls.insert(call.number);
        if calls.len() == 1 {
            Ok(())
        } else {
            Err(format!("nothing comes for the first time twice: {what} by calls {calls:?}"))
        }
    }

    /// Everybody has read everything: nothing is left, nothing was lost, and nothing that was refused took effect.
    pub fn end(&self, stream: &StreamId, ledger: &Ledger) -> Result<(), Broken> {
        for (refused, marker) in &self.refused {
            if refused == stream && ledger.effects(marker) != 0 {
                return Err(format!("what is refused has no effect: {marker}"));
            }
        }
        for (session, item) in &ledger.read {
            let key = (stream.clone(), session.clone(), ledger.item_id(*item));
            let came = self.taken.contains_key(&key)
                || self.kept.contains(&key)
                || self.careless.contains(&(stream.clone(), session.clone()));
            if !came && !matches!(item, Item::Granted(_)) {
                return Err(format!("no letter is lost: {} was read, but did not reach {session}", key.2));
            }
        }
        for (stamp, message) in &ledger.messages {
            let Some(question) = &message.question else { continue };
            let due = question.answer.is_some() && !question.delivered;
            if due && !self.answers_may_be_left(stream, &message.from, question.asker_left) {
                return Err(format!(
                    "an answer reaches its asker: that to {stamp} did not reach {}",
                    message.from
                ));
            }
        }
        Ok(())
    }

    /// An asker that left, for good or for a while, need not have collected.
    fn answers_may_be_left(&self, stream: &StreamId, asker: &str, left: bool) -> bool {
        left || self.careless.contains(&(stream.clone(), asker.to_owned()))
    }
}
