//! A second reading of the journal: what its entries say, without the code of the machine that wrote them.
//!
//! The ledger reads the JSON of each entry as it is written, keeps books of its own, and says which rule an entry breaks.
//! It knows no deadlines and no limits: what it does not check is whether something had to happen, only whether what
//! happened may have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::scopes::Covered;

/// A rule that was broken, and how.
pub type Broken = String;

/// Who holds what, by the canonical text of what it covers.
pub type Held = BTreeMap<String, Hold>;

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Who holds it.
    pub session: String,
    /// The fencing token.
    pub token: u64,
    /// What it covers.
    pub covered: Covered,
    /// The place in the line that it was granted to.
    pub ticket: Option<i64>,
    /// Whether it is still to be claimed.
    pub unclaimed: bool,
}

/// Somebody in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Who waits.
    pub session: String,
    /// What for, canonical.
    pub scope: String,
    covered: Covered,
}

/// What lies in an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A message or a question.
    Message(i64),
    /// The answer to a question.
    Response(i64),
    /// The news of a granted lock.
    Granted(i64),
}

/// A message, a question or a notice.
#[derive(Debug, Clone)]
pub struct Message {
    /// Who sent it.
    pub from: String,
    /// To whom.
    pub to: Vec<String>,
    /// Its text.
    pub content: String,
    /// What is particular to a question.
    pub question: Option<Question>,
}

/// What became of a question.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The answer.
    pub answer: Option<String>,
    /// Whether the answer was delivered.
    pub delivered: bool,
    /// Whether asker or addressee left before it was answered.
    pub closed: bool,
    /// Whether the asker left at any time after it asked.
    pub asker_left: bool,
}

/// A first reply that the journal remembers.
#[derive(Debug, Clone)]
pub struct FirstReply {
    /// The command.
    pub command: String,
    /// What was replied.
    pub reply: Value,
    /// The entry that holds it.
    pub seq: u64,
}

/// The books of one project.
#[derive(Debug, Default)]
pub struct Ledger {
    seq: u64,
    /// The inboxes of those who are registered.
    pub inboxes: BTreeMap<String, Vec<Item>>,
    /// The locks.
    pub held: Arc<Held>,
    /// The locks as they were, from before the first entry, also between the events of one entry.
    held_before: Vec<Arc<Held>>,
    /// Where in these the locks after each entry stand.
    held_after: Vec<usize>,
    /// The line.
    pub line: BTreeMap<i64, Place>,
    last_token: u64,
    last_stamp: i64,
    /// All messages ever sent.
    pub messages: BTreeMap<i64, Message>,
    /// The questions that a call waits for.
    waits: BTreeSet<i64>,
    /// The todos of those who are registered: text and status by stamp.
    pub todos: BTreeMap<String, BTreeMap<i64, (String, String)>>,
    /// The definitions.
    pub interfaces: BTreeMap<String, String>,
    /// First replies by command id.
    replies: BTreeMap<String, FirstReply>,
    /// How often each text that is unique to a call appears as what the call did.
    effects: BTreeMap<String, u32>,
    /// Everything that was read, by whom.
    pub read: BTreeSet<(String, Item)>,
    /// Who was granted which token, and what for.
    grants: BTreeMap<u64, (String, String)>,
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_else(|| panic!("text '{field}' in {event}"))
}

fn stamp(event: &Value, field: &str) -> i64 {
    event[field].as_i64().unwrap_or_else(|| panic!("stamp '{field}' in {event}"))
}

fn scope_text(event: &Value) -> &str {
    let scope = &event["scope"];
    scope["file"].as_str().or_else(|| scope["pattern"].as_str()).unwrap_or_else(|| panic!("scope in {event}"))
}

fn item(value: &Value) -> Item {
    let (kind, stamp) = value.as_object().and_then(|item| item.iter().next()).expect("an item");
    let stamp = stamp.as_i64().expect("an item's stamp");
    match kind.as_str() {
        "message" => Item::Message(stamp),
        "response" => Item::Response(stamp),
        "granted" => Item::Granted(stamp),
        other => panic!("an item of kind {other}"),
    }
}

fn items(event: &Value) -> impl Iterator<Item = Item> {
    event["ids"].as_array().expect("items").iter().map(item)
}

fn covered(canonical: &str) -> Covered {
    Covered::by(canonical).unwrap_or_else(|| panic!("'{canonical}' is not a scope of the table"))
}

/// A stamp as ids write it.
pub fn stamp_text(stamp: i64) -> String {
    format!("{}.{:06}", stamp.div_euclid(1_000_000), stamp.rem_euclid(1_000_000))
}

impl Ledger {
    /// The last entry that is in the books.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The first reply under this command id.
    pub fn first_reply(&self, id: &str) -> Option<&FirstReply> {
        self.replies.get(id)
    }

    /// How often the text that is unique to a call appears as what the call did.
    pub fn effects(&self, marker: &str) -> u32 {
        self.effects.get(marker).copied().unwrap_or(0)
    }

    /// The locks as they were from the end of the entry `from` to the end of the entry `to`. A command in the middle of an
    /// entry sees what those before it did.
    pub fn held_between(&self, from: u64, to: u64) -> &[Arc<Held>] {
        let index = |seq: u64| usize::try_from(seq).expect("a position");
        if self.held_after.is_empty() {
            &[]
        } else {
            &self.held_before[self.held_after[index(from)]..=self.held_after[index(to)]]
        }
    }

    /// Whether this token was granted to `session` for `scope`.
    pub fn was_granted(&self, token: u64, session: &str, scope: &str) -> bool {
        self.grants.get(&token).is_some_and(|(to, what)| to == session && what == scope)
    }

    /// The id of what lies in an inbox, as its reader sees it.
    pub fn item_id(&self, item: Item) -> String {
        let of = |stamp: i64| {
            let from = self.messages.get(&stamp).map_or("", |message| &message.from);
            format!("{from}-{}", stamp_text(stamp))
        };
        match item {
            Item::Message(stamp) => of(stamp),
            Item::Response(stamp) => format!("response-{}", of(stamp)),
            Item::Granted(ticket) => format!("ticket-{}", stamp_text(ticket)),
        }
    }

    /// The text of what has this id; empty for the news of a lock.
    pub fn content(&self, id: &str) -> Option<&str> {
        if id.starts_with("ticket-") {
            return Some("");
        }
        let (response, id) = id.strip_prefix("response-").map_or((false, id), |id| (true, id));
        let (from, digits) = id.rsplit_once('-')?;
        let stamp: i64 = digits.replace('.', "").parse().ok()?;
        let message = self.messages.get(&stamp).filter(|message| message.from == from)?;
        if response { message.question.as_ref()?.answer.as_deref() } else { Some(&message.content) }
    }

    /// Whether the state of a node says what the books say: who is here with which letters and todos, who holds what, who
    /// waits, and what is defined.
    pub fn agrees_with(&self, state: &Value) -> Result<(), Broken> {
        let differs = |what: &str, booked: &dyn fmt::Debug, live: &Value| {
            Err(format!("both readings of the journal agree: {what} are {booked:?}, live {live}"))
        };
        let empty = serde_json::Map::new();
        let map = |value: &Value| value.as_object().unwrap_or(&empty).clone();
        let agents = map(&state["agents"]);
        if agents.len() != self.inboxes.len() {
            return differs("the agents", &self.inboxes.keys(), &state["agents"]);
        }
        for (session, inbox) in &self.inboxes {
            let agent = &state["agents"][session];
            let live: Vec<Item> =
                agent["inbox"]["items"].as_array().into_iter().flatten().map(item).collect();
            if agent.is_null() || live != *inbox {
                return differs(&format!("the letters of {session}"), inbox, &agent["inbox"]);
            }
            let todos = self.todos.get(session);
            let todos =
                todos.into_iter().flatten().map(|(id, (text, status))| (*id, text.as_str(), status.as_str()));
            let live = agent["todos"].as_array().into_iter().flatten();
            if !todos
                .clone()
                .eq(live.map(|todo| (stamp(todo, "id"), text(todo, "text"), text(todo, "status"))))
            {
                return differs(
                    &format!("the todos of {session}"),
                    &todos.collect::<Vec<_>>(),
                    &agent["todos"],
                );
            }
        }
        let locks = &state["locks"];
        let mut held = map(&locks["files"]);
        held.extend(map(&locks["patterns"]));
        let same = |(scope, hold): (&String, &Hold)| {
            let lock = &held.get(scope).unwrap_or(&Value::Null);
            lock["session"] == hold.session.as_str()
                && lock["token"] == hold.token
                && lock["claim_by"].is_null() != hold.unclaimed
        };
        if held.len() != self.held.len() || !self.held.iter().all(same) {
            return differs("the locks", &self.held, locks);
        }
        let line = map(&locks["line"]);
        let same = |(ticket, place): (&i64, &Place)| {
            line.get(&ticket.to_string()).is_some_and(|waiter| waiter["session"] == place.session.as_str())
        };
        if line.len() != self.line.len() || !self.line.iter().all(same) {
            return differs("those in the line", &self.line, &locks["line"]);
        }
        let interfaces = map(&state["interfaces"]);
        let same = |(name, definition): (&String, &String)| {
            interfaces.get(name).is_some_and(|interface| interface["definition"] == definition.as_str())
        };
        if interfaces.len() != self.interfaces.len() || !self.interfaces.iter().all(same) {
            return differs("the interfaces", &self.interfaces, &state["interfaces"]);
        }
        Ok(())
    }

    /// Puts the entry `seq` into the books, and says which rules it breaks.
    pub fn enter(&mut self, seq: u64, payload: &str) -> Vec<Broken> {
        let mut broken = Vec::new();
        if self.held_after.is_empty() {
            self.held_before.push(self.held.clone());
            self.held_after.push(0);
        }
        if seq != self.seq + 1 {
            broken.push(format!("entries have no gaps: {seq} follows {}", self.seq));
        }
        self.seq = seq;
        let entry: Value = serde_json::from_str(payload).expect("an entry is JSON");
        for event in entry["events"].as_array().expect("an entry has events") {
            if let Err(rule) = self.event(event) {
                broken.push(format!("{rule}: entry {seq}, {event}"));
            }
            if self.held_before.last().is_none_or(|before| !Arc::ptr_eq(before, &self.held)) {
                self.held_before.push(self.held.clone());
            }
        }
        for first in entry["replies"].as_array().into_iter().flatten() {
            let reply =
                FirstReply { command: text(first, "command").to_owned(), reply: first["reply"].clone(), seq };
            if let Some(before) = self.replies.insert(text(first, "id").to_owned(), reply) {
                broken.push(format!(
                    "a command id has one effect: entry {seq} repeats that of entry {}: {first}",
                    before.seq
                ));
            }
        }
        self.held_after.push(self.held_before.len() - 1);
        broken
    }

    #[expect(clippy::too_many_lines, reason = "one arm per event")]
    fn event(&mut self, event: &Value) -> Result<(), Broken> {
        let session = event["session"].as_str().unwrap_or_default();
        match text(event, "type") {
            "agent_registered" => {
                self.effect(text(event, "description"))?;
                self.inboxes.entry(session.to_owned()).or_default();
                self.todos.insert(session.to_owned(), BTreeMap::new());
            }
            // Also said of an agent that leaves by the same call.
            "agent_seen" => {}
            "agent_left" => {
                self.must_be_here(session)?;
                self.leave(session);
            }
            "task_completed" => self.effect(text(event, "task_id"))?,
            "todo_added" => {
                self.must_be_here(session)?;
                self.effect(text(event, "text"))?;
                self.stamped(stamp(event, "id"))?;
                let todo = (text(event, "text").to_owned(), "pending".to_owned());
                self.todos.entry(session.to_owned()).or_default().insert(stamp(event, "id"), todo);
            }
            "todo_updated" => {
                let todo = self.todos.get_mut(session).and_then(|todos| todos.get_mut(&stamp(event, "id")));
                let (_, status) = todo.ok_or("only a todo that exists is updated")?;
                text(event, "status").clone_into(status);
            }
            "message_sent" => {
                self.effect(text(event, "content"))?;
                self.send(event, None)?;
            }
            "noticed" => self.send(event, None)?,
            "question_asked" => {
                self.effect(text(event, "content"))?;
                self.send(event, Some(Question::default()))?;
                if !event["waits_until"].is_null() {
                    self.waits.insert(stamp(&event["id"], "stamp"));
                }
            }
            "answer_awaited" => {
                self.waits.insert(stamp(event, "id"));
            }
            "wait_ended" => {
                if self.waits.remove(&stamp(event, "id")) {
                    self.post(stamp(event, "id"));
                }
            }
            "question_answered" => self.answer(event)?,
            "answer_delivered" => {
                let id = stamp(event, "id");
                self.deliver_answer(id)?;
                self.waits.remove(&id);
                self.take_out(Item::Response(id));
            }
            "messages_delivered" => {
                for item in items(event) {
                    self.must_lie_in(session, item)?;
                    if let Item::Response(id) = item {
                        self.deliver_answer(id)?;
                    }
                }
            }
            "messages_read" => {
                for item in items(event) {
                    self.must_lie_in(session, item)?;
                    self.inboxes.entry(session.to_owned()).or_default().retain(|other| *other != item);
                    if let Item::Response(id) = item {
                        let _ = self.deliver_answer(id);
                    }
                    self.read.insert((session.to_owned(), item));
                }
            }
            "lock_granted" => self.grant(event)?,
            "lock_renewed" | "lock_claimed" => {
                let scope = scope_text(event);
                let hold = Arc::make_mut(&mut self.held).get_mut(scope);
                let hold = hold.ok_or("only a lock that exists is renewed or claimed")?;
                hold.unclaimed = false;
                let ticket = hold.ticket;
                self.take_out_granted(ticket);
            }
            "lock_released" => {
                let scope = scope_text(event);
                if let Some(hold) = self.held.get(scope) {
                    let same = hold.session == session && Some(hold.token) == event["token"].as_u64();
                    let ticket = hold.ticket;
                    Arc::make_mut(&mut self.held).remove(scope);
                    self.take_out_granted(ticket);
                    if !same {
                        return Err("only the lock that was granted is released".to_owned());
                    }
                }
            }
            "line_joined" => {
                self.must_be_here(session)?;
                self.effect(text(event, "description"))?;
                let ticket = stamp(event, "ticket");
                self.stamped(ticket)?;
                let scope = scope_text(event).to_owned();
                let covered = covered(&scope);
                self.line.insert(ticket, Place { session: session.to_owned(), scope, covered });
            }
            "line_left" => {
                self.line.remove(&stamp(event, "ticket")).ok_or("only who is in the line leaves it")?;
            }
            "interface_registered" => {
                self.effect(text(event, "definition"))?;
                self.interfaces.insert(text(event, "name").to_owned(), text(event, "definition").to_owned());
            }
            other => return Err(format!("an event is known: '{other}'")),
        }
        Ok(())
    }

    fn must_be_here(&self, session: &str) -> Result<(), Broken> {
        self.inboxes
            .contains_key(session)
            .then_some(())
            .ok_or_else(|| "only who is registered acts".to_owned())
    }

    fn must_lie_in(&self, session: &str, item: Item) -> Result<(), Broken> {
        let lies = self.inboxes.get(session).is_some_and(|inbox| inbox.contains(&item));
        lies.then_some(()).ok_or_else(|| "no message is delivered twice".to_owned())
    }

    fn effect(&mut self, marker: &str) -> Result<(), Broken> {
        let times = self.effects.entry(marker.to_owned()).or_default();
        *times += 1;
        if *times == 1 { Ok(()) } else { Err(format!("a call has one effect: '{marker}' has {times}")) }
    }

    fn stamped(&mut self, stamp: i64) -> Result<(), Broken> {
        let grows = stamp > self.last_stamp;
        self.last_stamp = self.last_stamp.max(stamp);
        grows.then_some(()).ok_or_else(|| "ids are unique and grow".to_owned())
    }

    fn leave(&mut self, session: &str) {
        self.inboxes.remove(session);
        self.todos.remove(session);
        Arc::make_mut(&mut self.held).retain(|_, hold| hold.session != session);
        self.line.retain(|_, place| place.session != session);
        for (stamp, message) in &mut self.messages {
            let is_asker = message.from == session;
            let concerned = is_asker || message.to.iter().any(|to| to == session);
            let Some(question) = message.question.as_mut().filter(|_| concerned) else { continue };
            question.asker_left |= is_asker;
            question.closed |= question.answer.is_none();
            if question.closed {
                self.waits.remove(stamp);
            }
        }
    }

    fn send(&mut self, event: &Value, question: Option<Question>) -> Result<(), Broken> {
        let (from, id) = (text(&event["id"], "from").to_owned(), stamp(&event["id"], "stamp"));
        let to: Vec<String> = match &event["to"] {
            Value::Array(to) => to.iter().map(|to| to.as_str().expect("a name").to_owned()).collect(),
            to => vec![to.as_str().expect("a name").to_owned()],
        };
        let fresh = self.stamped(id);
        for to in &to {
            // Of those who leave by the same tick each is told that the others do.
            if let Some(inbox) = self.inboxes.get_mut(to) {
                inbox.push(Item::Message(id));
            }
        }
        let content = text(event, "content").to_owned();
        self.messages.insert(id, Message { from, to, content, question });
        fresh
    }

    fn question_mut(&mut self, id: i64) -> Result<&mut Question, Broken> {
        let question = self.messages.get_mut(&id).and_then(|message| message.question.as_mut());
        question.ok_or_else(|| "only a question that was asked is answered".to_owned())
    }

    fn answer(&mut self, event: &Value) -> Result<(), Broken> {
        self.effect(text(event, "response"))?;
        let id = stamp(event, "id");
        let question = self.question_mut(id)?;
        if question.answer.is_some() || question.closed {
            return Err("a question is answered once".to_owned());
        }
        question.answer = Some(text(event, "response").to_owned());
        if !self.waits.contains(&id) {
            self.post(id);
        }
        Ok(())
    }

    fn deliver_answer(&mut self, id: i64) -> Result<(), Broken> {
        let question = self.question_mut(id)?;
        if question.answer.is_none() {
            return Err("only an answer that was given is delivered".to_owned());
        }
        if std::mem::replace(&mut question.delivered, true) {
            return Err("an answer reaches its asker once".to_owned());
        }
        Ok(())
    }

    fn post(&mut self, id: i64) {
        let Some(message) = self.messages.get(&id) else { return };
        let due = message
            .question
            .as_ref()
            .is_some_and(|question| question.answer.is_some() && !question.delivered);
        if due && let Some(inbox) = self.inboxes.get_mut(&message.from) {
            inbox.push(Item::Response(id));
        }
    }

    fn take_out(&mut self, item: Item) {
        for inbox in self.inboxes.values_mut() {
            inbox.retain(|other| *other != item);
        }
    }

    fn take_out_granted(&mut self, ticket: Option<i64>) {
        if let Some(ticket) = ticket {
            self.take_out(Item::Granted(ticket));
        }
    }

    fn grant(&mut self, event: &Value) -> Result<(), Broken> {
        let session = text(event, "session").to_owned();
        self.must_be_here(&session)?;
        let scope = scope_text(event).to_owned();
        let covered = covered(&scope);
        let token = event["token"].as_u64().expect("a token");
        let ticket = event["ticket"].as_i64();
        // Served from the line by the passing of time, or taken by a call.
        let unclaimed = !event["claim_by"].is_null();
        if !unclaimed {
            self.effect(text(event, "description"))?;
        }
        let before = self.held.get(&scope).cloned();
        let refreshed = before.as_ref().is_some_and(|hold| hold.session == session);
        let overlap =
            self.held.values().find(|hold| hold.session != session && hold.covered.overlaps(covered));
        if let Some(overlap) = overlap {
            return Err(format!("at most one holder per path: '{}' holds it too", overlap.session));
        }
        if refreshed != (token <= self.last_token)
            || before.is_some_and(|hold| refreshed && hold.token != token)
        {
            return Err(format!("fencing tokens only grow: the last was {}", self.last_token));
        }
        let own = |place: &Place| place.session == session && place.scope == scope;
        let place =
            self.line.iter().find(|(id, place)| own(place) && ticket.is_none_or(|ticket| ticket == **id));
        let place = place.map(|(id, _)| *id);
        if ticket.is_some() && ticket != place && !refreshed {
            return Err("only who is in the line is served from it".to_owned());
        }
        // A file under the caller's own folder or pattern is its already.
        let own_already = event["scope"]["file"].is_string()
            && self.held.values().any(|hold| hold.session == session && hold.covered.overlaps(covered));
        let overtaken = self.line.range(..place.unwrap_or(i64::MAX)).find(|(_, place)| {
            !refreshed && !own_already && place.session != session && place.covered.overlaps(covered)
        });
        if let Some((_, overtaken)) = overtaken {
            return Err(format!("nobody overtakes in the line: '{}' came earlier", overtaken.session));
        }
        self.line.retain(|_, place| !(place.session == session && place.scope == scope));
        self.last_token = self.last_token.max(token);
        self.grants.insert(token, (session.clone(), scope.clone()));
        let replaced = self.held.get(&scope).and_then(|hold| hold.ticket);
        self.take_out_granted(replaced);
        if let Some(ticket) = ticket.filter(|_| unclaimed) {
            self.inboxes.entry(session.clone()).or_default().push(Item::Granted(ticket));
        }
        let hold = Hold { session, token, covered, ticket, unclaimed };
        Arc::make_mut(&mut self.held).insert(scope, hold);
        Ok(())
    }
}
