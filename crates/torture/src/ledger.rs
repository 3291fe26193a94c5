//! What the server acknowledged to one agent, and what the agent does next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::call::{Call, Wish};
use crate::client::{Answer, IdBy};
use crate::{Outcome, Torment};

/// What all agents of a team know.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The highest token that anybody was granted.
    newest_token: AtomicU64,
    /// How many calls were answered.
    answered: AtomicU64,
}

impl Shared {
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }
}

/// One agent and what was acknowledged to it.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: String,
    /// A visitor comes and goes; nobody writes to it.
    visitor: bool,
    peers: Vec<String>,
    pub(crate) registered: bool,
    /// Text and status by id.
    pub(crate) todos: BTreeMap<String, (String, String)>,
    /// Fencing tokens by path; A2AMCP does not tell them.
    pub(crate) locks: BTreeMap<String, Option<u64>>,
    /// Places in the line by path.
    pub(crate) tickets: BTreeMap<String, Place>,
    /// Definitions by name.
    pub(crate) interfaces: BTreeMap<String, String>,
    /// The numbers of the messages sent to each peer.
    pub(crate) sent: BTreeMap<String, Vec<u64>>,
    /// The numbers of the messages received from each peer.
    pub(crate) received: BTreeMap<String, Vec<u64>>,
    /// The call that was not answered.
    pub(crate) pending: Option<Call>,
    /// The latest calls that had an effect, with their answers.
    pub(crate) recent: VecDeque<(Call, Answer)>,
    /// What it announced to change since [`Agent::begin_round`].
    pub(crate) changes: Vec<Announced>,
    made: u64,
}

/// A place in the line.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) ticket: String,
    /// Whatever is granted to it is newer than this token.
    pub(crate) newest_token: u64,
}

/// A change that was announced by the wish for a lock.
#[derive(Debug, Clone)]
pub(crate) struct Announced {
    pub(crate) description: String,
    /// How many calls of the team were answered when it was sent.
    pub(crate) sent_at: u64,
    /// How many when it was answered for good; none while a grant may still come.
    pub(crate) over_at: Option<u64>,
    pub(crate) granted: bool,
}

/// How many calls with an effect are repeated after a restart.
const REPEATED: usize = 4;

impl Agent {
    pub(crate) fn new(name: String, peers: Vec<String>, visitor: bool) -> Self {
        Self {
            name,
            visitor,
            peers,
            registered: false,
            todos: BTreeMap::new(),
            locks: BTreeMap::new(),
            tickets: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            pending: None,
            recent: VecDeque::new(),
            changes: Vec::new(),
            made: 0,
        }
    }

    /// Forgets what is compared within one round only.
    pub(crate) fn begin_round(&mut self) {
        self.changes.clear();
        self.sent.clear();
        self.received.clear();
    }

    /// Whether it ever described a change so.
    pub(crate) fn has_described(&self, description: &str) -> bool {
        let number = description.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix(" change "));
        number.and_then(|number| number.parse().ok()).is_some_and(|number: u64| number <= self.made)
    }

    fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

// ---- what it does next -----------------------------------------------------------------------------------------------

/// Files that everybody wants, and a folder with some of them.
const CONTESTED: [&str; 6] =
    ["shared/a.rs", "shared/b.rs", "shared/api/c.rs", "shared/api/d.rs", "shared/api/**", "shared/e.rs"];

/// More todos than an agent keeps before it starts over.
const MANY_TODOS: usize = 150;

impl Agent {
    /// Makes up the next call and notes it as not answered yet.
    pub(crate) fn next(&mut self, random: &mut StdRng, shared: &Shared) -> Call {
        let wish = self.wish(random);
        self.intend(wish, shared)
    }

    /// Notes a call as not answered yet.
    pub(crate) fn intend(&mut self, wish: Wish, shared: &Shared) -> Call {
        let number = self.number();
        let call = Call {
            id: format!("{}-{number}", self.name),
            id_by: if number.is_multiple_of(2) { IdBy::Header } else { IdBy::Meta },
            wish,
            newest_token: shared.newest_token.load(Ordering::SeqCst),
            sent_at: shared.answered(),
        };
        if let Some(description) = call.wish.description() {
            self.changes.push(Announced {
                description: description.to_owned(),
                sent_at: call.sent_at,
                over_at: None,
                granted: false,
            });
        }
        self.pending = Some(call.clone());
        call
    }

    fn wish(&mut self, random: &mut StdRng) -> Wish {
        if !self.registered {
            return Wish::Register;
        }
        // Whoever was served and does not come for it is passed over after a while.
        if let Some(wish) = self.look_at_line(random) {
            return wish;
        }
        if self.visitor && random.random_ratio(1, 12) {
            return Wish::Unregister;
        }
        match random.random_range(0..100) {
            0..18 => self.add_todo(),
            18..28 => self.update_todo(random),
            28..52 => self.take(random),
            52..72 => self.free(random),
            72..86 => self.send(random),
            86..94 => Wish::Read,
            _ => self.share(random),
        }
    }

    fn look_at_line(&self, random: &mut StdRng) -> Option<Wish> {
        let (path, place) = self.tickets.iter().next().filter(|_| random.random_ratio(1, 3))?;
        let (path, ticket) = (path.clone(), place.ticket.clone());
        let leaves = random.random_ratio(1, 8);
        Some(if leaves { Wish::Leave { path, ticket } } else { Wish::Wait { path, ticket } })
    }

    fn add_todo(&mut self) -> Wish {
        if self.todos.len() > MANY_TODOS {
            // Starts its todos over, and nothing else.
            return Wish::Register;
        }
        let number = self.number();
        Wish::AddTodo { text: format!("{} todo {number}", self.name) }
    }

    fn update_todo(&mut self, random: &mut StdRng) -> Wish {
        let todos: Vec<_> = self.todos.iter().collect();
        let Some((id, (_, now))) = todos.choose(random) else { return self.add_todo() };
        let others =
            ["pending", "in_progress", "completed", "blocked"].into_iter().filter(|status| status != now);
        let others: Vec<_> = others.collect();
        let status = others.choose(random).copied().unwrap_or("completed");
        Wish::UpdateTodo { id: (*id).clone(), status }
    }

    fn take(&mut self, random: &mut StdRng) -> Wish {
        let path = if random.random_ratio(2, 5) {
            format!("own/{}/{}.rs", self.name, random.random_range(0..5))
        } else {
            let free = CONTESTED.iter().filter(|path| !self.tickets.contains_key(**path));
            free.collect::<Vec<_>>().choose(random).map_or("shared/z.rs", |path| **path).to_owned()
        };
        let number = self.number();
        let description = format!("{} change {number}", self.name);
        // For A2AMCP every path is one file, whatever characters it has.
        if !path.contains('*') && random.random_ratio(1, 3) {
            return Wish::Announce { path, description };
        }
        Wish::Acquire { path, description, wait_seconds: u32::from(random.random_ratio(1, 4)) }
    }

    fn free(&mut self, random: &mut StdRng) -> Wish {
        let locks: Vec<_> = self.locks.iter().collect();
        let Some((path, token)) = locks.choose(random) else { return self.take(random) };
        let path = (*path).clone();
        if !path.contains('*') && random.random_ratio(1, 3) {
            return Wish::ReleaseFile { path };
        }
        Wish::Release { path, token: **token }
    }

    fn send(&mut self, random: &mut StdRng) -> Wish {
        let count = random.random_range(1..=3.min(self.peers.len()));
        let to: Vec<String> = self.peers.sample(random, count).cloned().collect();
        Wish::Send { to, text: self.number().to_string() }
    }

    fn share(&mut self, random: &mut StdRng) -> Wish {
        let definition = format!("version {}", self.number());
        Wish::Share { name: format!("{}.I{}", self.name, random.random_range(0..6)), definition }
    }
}

// ---- what was acknowledged -------------------------------------------------------------------------------------------

impl Agent {
    /// Takes the answer to the pending call into the ledger.
    pub(crate) fn acknowledge(&mut self, answer: Answer, shared: &Shared) -> Outcome {
        let Some(call) = self.pending.take() else { return Ok(()) };
        let now = shared.answered.fetch_add(1, Ordering::SeqCst) + 1;
        let had_effect = self.enter(&call, &answer, shared).map_err(|why| {
            Torment::broken(format!("{} was told of {call:?}: {} ({why})", self.name, answer.value))
        })?;
        self.note_change(&call, &answer, now);
        if had_effect {
            self.recent.push_back((call, answer));
            if self.recent.len() > REPEATED {
                self.recent.pop_front();
            }
        }
        Ok(())
    }

    /// Answers whether the call is over with an effect, so that repeating it must change nothing.
    fn enter(&mut self, call: &Call, answer: &Answer, shared: &Shared) -> Result<bool, String> {
        let value = &answer.value;
        let text = |name: &str| value[name].as_str().map(str::to_owned).ok_or_else(|| format!("no '{name}'"));
        if let Some(code) = &answer.refused {
            let in_order = match &call.wish {
                Wish::Acquire { .. } => matches!(&**code, "locked" | "deadlock"),
                Wish::Announce { .. } => code == "conflict",
                // Served just before.
                Wish::Leave { .. } => code == "ticket_not_found",
                _ => false,
            };
            return if in_order { Ok(false) } else { Err(format!("refused as {code}")) };
        }
        match &call.wish {
            Wish::Register => {
                self.registered = true;
                self.todos.clear();
            }
            Wish::Unregister => {
                self.registered = false;
                self.todos.clear();
                self.locks.clear();
                self.tickets.clear();
            }
            Wish::AddTodo { text: todo } => {
                let known = self.todos.insert(text("todo_id")?, (todo.clone(), "pending".to_owned()));
                if known.is_some() {
                    return Err("the id of another todo".to_owned());
                }
            }
            Wish::UpdateTodo { id, status } => {
                if let Some((_, now)) = self.todos.get_mut(id) {
                    (*status).clone_into(now);
                }
            }
            Wish::Acquire { path, wait_seconds, .. } => {
                if value["status"] == "waiting" {
                    let place = Place { ticket: text("ticket")?, newest_token: call.newest_token };
                    self.tickets.insert(path.clone(), place);
                    return Ok(false);
                }
                self.granted(path, value["token"].as_u64(), call.newest_token, shared)?;
                return Ok(*wait_seconds == 0);
            }
            Wish::Announce { path, .. } => {
                let before = self.locks.get(path).copied().flatten();
                self.locks.insert(path.clone(), before);
            }
            Wish::Release { path, .. } | Wish::ReleaseFile { path } => {
                if value["status"] != "released" {
                    return Err("it was the holder".to_owned());
                }
                self.locks.remove(path);
            }
            Wish::Wait { path, .. } => {
                if value["status"] == "granted" {
                    let newest =
                        self.tickets.remove(path).map_or(call.newest_token, |place| place.newest_token);
                    self.granted(path, value["token"].as_u64(), newest, shared)?;
                }
                return Ok(false);
            }
            Wish::Leave { path, .. } => {
                self.tickets.remove(path);
            }
            Wish::Send { to, text: number } => {
                let number = number.parse().map_err(|_| "its number")?;
                for peer in to {
                    self.sent.entry(peer.clone()).or_default().push(number);
                }
            }
            Wish::Read => return self.receive(value),
            Wish::Share { name, definition } => {
                self.interfaces.insert(name.clone(), definition.clone());
            }
        }
        Ok(true)
    }

    fn granted(
        &mut self,
        path: &str,
        token: Option<u64>,
        newest: u64,
        shared: &Shared,
    ) -> Result<(), String> {
        let token = token.ok_or("no token")?;
        let before = self.locks.insert(path.to_owned(), Some(token));
        self.tickets.remove(path);
        match before {
            Some(Some(held)) if held != token => return Err(format!("it held that lock with token {held}")),
            Some(_) => {}
            None if token <= newest => return Err(format!("token {newest} had been granted before")),
            None => {}
        }
        shared.newest_token.fetch_max(token, Ordering::SeqCst);
        Ok(())
    }

    fn receive(&mut self, value: &serde_json::Value) -> Result<bool, String> {
        let letters = value["messages"].as_array().ok_or("no messages")?;
        for letter in letters.iter().filter(|letter| letter["kind"] == "message") {
            let number = letter["text"].as_str().and_then(|text| text.parse::<u64>().ok());
            let (Some(from), Some(number)) = (letter["from"].as_str(), number) else {
                return Err(format!("a message that nobody sent: {letter}"));
            };
            let numbers = self.received.entry(from.to_owned()).or_default();
            if numbers.last().is_some_and(|last| *last >= number) {
                return Err(format!("message {number} of {from} came twice or late, after {numbers:?}"));
            }
            numbers.push(number);
        }
        Ok(!letters.is_empty())
    }

    fn note_change(&mut self, call: &Call, answer: &Answer, now: u64) {
        let is_waiting = answer.value["status"] == "waiting";
        let description = call.wish.description();
        if let Some(change) =
            self.changes.iter_mut().rfind(|change| Some(&*change.description) == description)
        {
            change.granted = answer.refused.is_none() && !is_waiting;
            change.over_at = (!is_waiting).then_some(now);
        }
    }
}
