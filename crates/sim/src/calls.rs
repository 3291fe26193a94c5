//! What agents do: one call, as a client makes it through the service, and what a client remembers of the replies.

use std::sync::Arc;

use jiff::SignedDuration;
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::Value;
use switchboard_coordination::{
    Acquire, AddTodo, AnswerQuestion, Ask, ChangeType, CheckWrite, ClaimTicket, CollectAnswer, CompleteTask,
    Coordination, CoordinationError, FilePath, Heartbeat, LeaveLine, MyTodos, Name, Otherwise, Patience,
    Priority, Project, ReadMessages, Register, RegisterInterface, ReleaseLock, RenewLock, SendMessage,
    TakeMessages, Text, TodoStatus, Ttl, Unregister, UpdateTodo,
};
use switchboard_exchange::{CommandId, Decide};
use tokio_util::sync::CancellationToken;

use crate::ledger::stamp_text;
use crate::scopes::{PATHS, SCOPES, scope};

/// What an agent wishes for. Texts are those it would write, times are in seconds.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "they are named after the commands they become")]
pub enum Wish {
    Register,
    Heartbeat,
    Unregister,
    Complete,
    AddTodo,
    UpdateTodo { id: String, status: TodoStatus },
    MyTodos,
    Send { to: Option<Vec<String>> },
    Take,
    Read { limit: usize, keep: bool, acknowledge: Vec<String> },
    Ask { to: String, wait: Option<i64> },
    WaitForAnswer { id: String, wait: i64 },
    Answer { id: String },
    Collect { id: String },
    Acquire { scope: &'static str, ttl: Option<i64>, in_line: bool, wait: Option<i64> },
    WaitForLock { ticket: String, wait: i64 },
    Release { scope: &'static str, token: Option<u64> },
    Renew { scope: &'static str, token: Option<u64>, ttl: Option<i64> },
    Claim { ticket: String },
    LeaveLine { ticket: String },
    Check { path: &'static str, token: Option<u64> },
    Share { name: String },
}

/// One call of one agent.
#[derive(Debug, Clone)]
pub struct Call {
    /// Unique in a run.
    pub number: u64,
    /// Which project.
    pub project: Name,
    /// Who calls.
    pub session: Name,
    /// What for.
    pub wish: Wish,
    /// The command id, if the client gives one.
    pub id: Option<CommandId>,
}

/// A name that is one.
pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn a_text(text: &str) -> Text {
    Text::new(text).expect("a text")
}

fn ttl(seconds: Option<i64>) -> Option<Ttl> {
    seconds.map(|seconds| Ttl::from_seconds(seconds).expect("a time to live"))
}

/// The patience of a caller that nobody interrupts.
pub fn patience(seconds: i64) -> Patience {
    Patience {
        time: SignedDuration::from_secs(seconds),
        cancelled: CancellationToken::new(),
        progress: Arc::new(|_, _| {}),
    }
}

fn value(reply: &impl serde::Serialize) -> Value {
    serde_json::to_value(reply).expect("a reply is JSON")
}

impl Wish {
    /// Whether the call is one command and its reply that command's, so that a repetition gets the same reply.
    pub fn is_one_command(&self) -> bool {
        match self {
            Self::Ask { wait, .. } | Self::Acquire { wait, .. } => wait.is_none(),
            Self::WaitForAnswer { .. } | Self::WaitForLock { .. } => false,
            _ => true,
        }
    }

    /// Whether this successful reply means that the journal shows the call's own text.
    pub fn must_show(&self, reply: &Value) -> bool {
        match self {
            Self::Register
            | Self::Complete
            | Self::AddTodo
            | Self::Ask { .. }
            | Self::Answer { .. }
            | Self::Share { .. } => true,
            Self::Send { .. } => reply["recipients"] != 0,
            _ => false,
        }
    }

    /// Whether the reply holds letters that are out of the inbox, or stay there.
    pub fn takes_letters(&self) -> Option<bool> {
        match self {
            Self::Take => Some(true),
            Self::Read { keep, .. } => Some(!keep),
            _ => None,
        }
    }
}

impl Call {
    /// A text that no other call has, and that appears in the journal if this one did something.
    pub fn marker(&self) -> String {
        format!("m{}", self.number)
    }

    /// Makes the call.
    #[expect(clippy::too_many_lines, reason = "one arm per command")]
    pub async fn make(&self, service: &Coordination) -> Result<Value, CoordinationError> {
        let session = self.session.clone();
        let (marker, id, project) = (self.marker(), self.id.clone(), &self.project);
        match &self.wish {
            Wish::Register => {
                let command = Register {
                    session,
                    task_id: name("task"),
                    branch: a_text("main"),
                    description: a_text(&marker),
                };
                self.send(service, command).await
            }
            Wish::Heartbeat => self.send(service, Heartbeat { session }).await,
            Wish::Unregister => self.send(service, Unregister { session }).await,
            Wish::Complete => {
                let command = CompleteTask { session, task_id: name(&marker) };
                service.complete(project, command, id).await.map(|()| Value::Null)
            }
            Wish::AddTodo => {
                let priority = Priority::default();
                self.send(service, AddTodo { session, text: a_text(&marker), priority }).await
            }
            Wish::UpdateTodo { id, status } => {
                self.send(service, UpdateTodo { session, id: id.clone(), status: *status }).await
            }
            Wish::MyTodos => self.send(service, MyTodos { session }).await,
            Wish::Send { to } => {
                let to = to.as_ref().map(|to| to.iter().map(|to| name(to)).collect());
                let (message_type, content) = (name("info"), a_text(&marker));
                self.send(service, SendMessage { session, to, message_type, content }).await
            }
            Wish::Take => self.send(service, TakeMessages { session }).await,
            Wish::Read { limit, keep, acknowledge } => {
                let acknowledge = acknowledge.clone();
                self.send(service, ReadMessages { session, limit: *limit, keep: *keep, acknowledge }).await
            }
            Wish::Ask { to, wait } => {
                let question = Ask {
                    from: session,
                    to: name(to),
                    question_type: name("help"),
                    content: a_text(&marker),
                    requires_response: true,
                    waits_until: None,
                };
                let asked = service.ask(project, question, wait.map(patience), id).await?;
                Ok(if wait.is_some() { value(&asked) } else { value(&asked.0) })
            }
            Wish::WaitForAnswer { id, wait } => service
                .wait_for_answer(project, &session, id, &patience(*wait))
                .await
                .map(|collected| value(&collected)),
            Wish::Answer { id } => {
                let response = a_text(&marker);
                self.send(service, AnswerQuestion { from: session, to: None, id: id.clone(), response }).await
            }
            Wish::Collect { id } => {
                let otherwise = Otherwise::Leave;
                self.send(service, CollectAnswer { session, id: id.clone(), otherwise }).await
            }
            Wish::Acquire { scope: text, ttl: seconds, in_line, wait } => {
                let command = Acquire {
                    session,
                    scope: scope(text),
                    path: name(text),
                    change_type: ChangeType::Modify,
                    description: a_text(&marker),
                    ttl: ttl(*seconds),
                    wait: *in_line,
                };
                if let Some(wait) = wait {
                    let patience = patience(*wait);
                    service.acquire(project, command, Some(&patience), id).await.map(|got| value(&got))
                } else {
                    self.send(service, command).await
                }
            }
            Wish::WaitForLock { ticket, wait } => service
                .wait_for_lock(project, &session, ticket, &patience(*wait))
                .await
                .map(|got| value(&got)),
            Wish::Release { scope: text, token } => {
                self.send(service, ReleaseLock { session, scope: scope(text), token: *token }).await
            }
            Wish::Renew { scope: text, token, ttl: seconds } => {
                let ttl = ttl(*seconds);
                self.send(service, RenewLock { session, scope: scope(text), token: *token, ttl }).await
            }
            Wish::Claim { ticket } => {
                self.send(service, ClaimTicket { session, ticket: ticket.clone() }).await
            }
            Wish::LeaveLine { ticket } => {
                self.send(service, LeaveLine { session, ticket: ticket.clone() }).await
            }
            Wish::Check { path, token } => {
                let path = FilePath::parse(path).expect("a path");
                let command = CheckWrite { session: Some(session), path, token: *token, must_hold: false };
                self.send(service, command).await
            }
            Wish::Share { name: of } => {
                let (name, definition) = (name(of), a_text(&marker));
                self.send(service, RegisterInterface { session, name, definition, file_path: None }).await
            }
        }
    }

    async fn send<C>(&self, service: &Coordination, command: C) -> Result<Value, CoordinationError>
    where
        Project: Decide<C>,
        C: Send + 'static,
    {
        service.send(&self.project, command, self.id.clone()).await.map(|reply| value(&reply))
    }
}

/// What a client remembers of a project.
#[derive(Debug, Default)]
pub struct Memory {
    /// Whether it was told that it is not registered.
    pub must_register: bool,
    /// Its todos.
    todos: Vec<String>,
    /// Its places in lines.
    tickets: Vec<String>,
    /// The questions it asked.
    pub asked: Vec<String>,
    /// The questions it was asked.
    to_answer: Vec<String>,
    /// Letters that it was handed and did not acknowledge.
    kept: Vec<String>,
    /// What it was granted.
    grants: Vec<(&'static str, u64)>,
}

impl Memory {
    /// Takes note of a reply.
    pub fn learn(&mut self, call: &Call, reply: &Value) {
        let own = |stamp: &Value| stamp.as_i64().map(stamp_text);
        match &call.wish {
            Wish::Register => self.must_register = false,
            Wish::AddTodo => self.todos.extend(own(reply).map(|id| format!("todo-{id}"))),
            Wish::Ask { wait, .. } => {
                let id = if wait.is_some() { &reply[0] } else { reply };
                self.asked.extend(own(&id["stamp"]).map(|id| format!("{}-{id}", call.session)));
            }
            Wish::Take | Wish::Read { .. } => {
                for letter in letters(reply) {
                    let id = letter["id"].as_str().unwrap_or_default().to_owned();
                    if letter["kind"].get("Question").is_some() {
                        self.to_answer.push(id.clone());
                    }
                    if id.starts_with("ticket-") {
                        self.tickets.push(id.clone());
                    }
                    self.kept.push(id);
                }
            }
            Wish::Acquire { .. } | Wish::WaitForLock { .. } | Wish::Claim { .. } => {
                if let Some(grant) = reply.get("Granted") {
                    let path = grant["path"].as_str().unwrap_or_default();
                    let text = SCOPES.iter().map(|(text, _)| *text).find(|text| scope(text).as_str() == path);
                    self.grants.extend(text.zip(grant["token"].as_u64()));
                } else if let Some(id) = own(&reply["Waiting"]["id"]) {
                    self.tickets.push(format!("ticket-{id}"));
                }
            }
            _ => {}
        }
    }

    /// What an agent with this memory might wish for next.
    pub fn wish(&self, rng: &mut StdRng, me: &str, agents: &[&str]) -> Wish {
        if self.must_register && rng.random_bool(0.7) {
            return Wish::Register;
        }
        let others: Vec<&str> = agents.iter().copied().filter(|agent| *agent != me).collect();
        let other = |rng: &mut StdRng| others.choose(rng).map_or_else(String::new, |&other| other.to_owned());
        let (text, _) = SCOPES.choose(rng).expect("scopes");
        let seconds = |rng: &mut StdRng| rng.random_bool(0.5).then(|| rng.random_range(1..60));
        match rng.random_range(0..100) {
            0..2 => Wish::Register,
            2..5 => Wish::Heartbeat,
            5 => Wish::Unregister,
            6 => Wish::Complete,
            7..13 => Wish::AddTodo,
            13..16 => match self.todos.choose(rng) {
                Some(id) => {
                    let status = *[TodoStatus::InProgress, TodoStatus::Completed].choose(rng).expect("two");
                    Wish::UpdateTodo { id: id.clone(), status }
                }
                None => Wish::MyTodos,
            },
            16..20 => Wish::Share { name: format!("I{}", rng.random_range(0..3)) },
            20..32 => {
                let to = rng.random_bool(0.6).then(|| vec![other(rng), other(rng)]);
                Wish::Send { to }
            }
            32..39 => Wish::Take,
            39..44 => {
                let acknowledge =
                    self.kept.iter().filter(|_| rng.random_bool(0.3)).cloned().collect::<Vec<_>>();
                let keep = rng.random_bool(0.7);
                Wish::Read { limit: rng.random_range(1..4), keep, acknowledge }
            }
            44..50 => {
                let wait = rng.random_bool(0.7).then(|| rng.random_range(1..45));
                Wish::Ask { to: other(rng), wait }
            }
            50..57 => match self.to_answer.choose(rng) {
                Some(id) => Wish::Answer { id: id.clone() },
                None => Wish::Read { limit: 3, keep: true, acknowledge: Vec::new() },
            },
            57..60 => match self.asked.choose(rng) {
                Some(id) if rng.random_bool(0.5) => Wish::Collect { id: id.clone() },
                Some(id) => Wish::WaitForAnswer { id: id.clone(), wait: rng.random_range(1..30) },
                None => Wish::MyTodos,
            },
            60..78 => {
                let wait = rng.random_bool(0.4).then(|| rng.random_range(1..45));
                let in_line = wait.is_some() || rng.random_bool(0.6);
                Wish::Acquire { scope: text, ttl: seconds(rng), in_line, wait }
            }
            78..87 => match self.grants.choose(rng) {
                Some((scope, token)) => {
                    Wish::Release { scope, token: rng.random_bool(0.5).then_some(*token) }
                }
                None => Wish::Release { scope: text, token: None },
            },
            87..90 => match self.grants.choose(rng) {
                Some((scope, token)) => Wish::Renew { scope, token: Some(*token), ttl: seconds(rng) },
                None => Wish::Renew { scope: text, token: None, ttl: seconds(rng) },
            },
            90..95 => match self.tickets.last() {
                Some(ticket) if rng.random_bool(0.6) => Wish::Claim { ticket: ticket.clone() },
                Some(ticket) if rng.random_bool(0.5) => {
                    Wish::WaitForLock { ticket: ticket.clone(), wait: rng.random_range(1..30) }
                }
                Some(ticket) => Wish::LeaveLine { ticket: ticket.clone() },
                None => Wish::Heartbeat,
            },
            _ => {
                let token = self.grants.choose(rng).map(|(_, token)| *token).filter(|_| rng.random_bool(0.5));
                Wish::Check { path: PATHS.choose(rng).expect("paths"), token }
            }
        }
    }
}

/// The letters of a reply to a call that takes or reads them.
pub fn letters(reply: &Value) -> &[Value] {
    let letters = if reply.is_array() { reply } else { &reply["letters"] };
    letters.as_array().map_or(&[], Vec::as_slice)
}

/// The answer that a reply to a waiting or a collecting call holds.
pub fn collected(reply: &Value) -> Option<&Value> {
    reply.get("Answer").or_else(|| reply.get(1)?.get("Answer"))
}
