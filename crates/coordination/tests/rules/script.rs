//! The language of the stories, and the stage on which they are played.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};

use expect_test::Expect;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use switchboard_coordination::{
    Acquire, Acquired, AddTodo, AgentTodos, AgentView, AllTodos, AnswerQuestion, Ask, Change, ChangeType,
    CheckWrite, ClaimTicket, CollectAnswer, Collected, CompleteTask, Delivery, Event, FilePath, Grant,
    Heartbeat, Interface, LeaveLine, Letter, LetterKind, ListAgents, ListInterfaces, ListLocks, ListMessages,
    LockView, MessageStatus, MyTodos, Name, Otherwise, PostMessage, Priority, Project, QueryInterface,
    ReadMessages, RecentChanges, Register, RegisterInterface, Rejection, ReleaseLock, Released, RenewLock,
    Rule, Scope, SendMessage, Settings, TakeMessages, Text, Ticket, Todo, TodoStatus, Ttl, Unregister,
    UpdateTodo,
};
use switchboard_exchange::{Decide, Decision, Machine as _};

/// Plays `script` and compares what happens with `expected`.
///
/// Each line is a time and a command, as in
/// ```text
/// 0s ada registers
/// 1s ada acquires src/** for 10s
/// 1s bob acquires src/a.rs waiting
/// 10s tick
/// ```
/// and gives one line of what is answered, with what happened `[in brackets]`. Between two lines time passes as in the
/// exchange: at each deadline the machine is ticked, which gives a line of its own if something happens. `asleep` turns
/// that off; `and` in place of the time puts a command into one batch with the one before, without a tick between them;
/// `restart` goes on with what the journal knows, `rebuild` as after a lost race. `100x` after the time plays the command
/// so many times and shows the last.
///
/// Words with spaces are quoted; `x*500` is a word of 500 letters. Besides what the story says, every line checks that
/// a machine made from a snapshot and one that replayed the journal have the same state and would decide the same, that
/// stamps and tokens grow, and that no two agents hold a path in common.
pub(crate) fn check(script: &str, expected: &Expect) {
    let mut stage = Stage::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        stage.play(line);
    }
    stage.pass_until(stage.now);
    stage.compare();
    stage.replay_from_the_start();
    expected.assert_eq(&stage.seen);
}

/// A project, its journal, and a second machine that only knows what the journal says.
struct Stage {
    live: Project,
    replayed: Project,
    settings: Settings,
    journal: Vec<String>,
    journal_bytes: usize,
    now: Timestamp,
    /// Nobody acts on deadlines between the lines.
    asleep: bool,
    last_stamp: (i64, i64),
    /// What each token was granted for: a path in a view may be a pattern or a file of that name.
    scopes: BTreeMap<u64, Scope>,
    seen: String,
}

impl Stage {
    fn new() -> Self {
        let settings = Settings::default();
        let mut live = Project::new();
        live.configure(&settings);
        live.resume(Timestamp::UNIX_EPOCH);
        Self {
            live,
            replayed: Project::new(),
            settings,
            journal: Vec::new(),
            journal_bytes: 0,
            now: Timestamp::UNIX_EPOCH,
            asleep: false,
            last_stamp: (0, 0),
            scopes: BTreeMap::new(),
            seen: String::new(),
        }
    }

    fn play(&mut self, line: &str) {
        let mut words = Words::of(line);
        let in_the_same_batch = words.flag("and");
        if !in_the_same_batch {
            let at = Timestamp::UNIX_EPOCH + words.duration();
            self.pass_until(at);
            self.now = at;
        }
        let times = words.times();
        let mut said = None;
        for time in 0..times {
            if !in_the_same_batch && (time > 0 || words.is_for_the_machine()) {
                self.tick();
            }
            said = self.command(words.clone());
        }
        if let Some(said) = said {
            let times = if times > 1 { format!(" ({times} times)") } else { String::new() };
            writeln!(self.seen, "{}{times} {said}", time(self.now)).unwrap();
        }
        // What fills its bounds is compared once, at the end.
        if self.journal_bytes < 10_000_000 {
            self.compare();
        }
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    /// Acts on the deadlines up to `end`; those at `end` itself only if time stands still.
    fn pass_until(&mut self, end: Timestamp) {
        while !self.asleep
            && let Some(deadline) = self.live.next_deadline()
            && (deadline <= self.now || deadline < end)
        {
            self.now = self.now.max(deadline);
            self.tick();
        }
    }

    /// As the exchange does it before every batch of commands, and at a deadline.
    fn tick(&mut self) {
        if self.live.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            let events = self.live.tick(self.now);
            if !events.is_empty() {
                let shown = self.apply(events);
                writeln!(self.seen, "{} {shown}", time(self.now)).unwrap();
            }
            self.live.ticked(self.now);
        }
    }

    fn restart(&mut self) -> String {
        let mut again = self.reloaded();
        again.resume(self.now);
        self.live = again;
        let abandoned = self.live.abandon(self.now);
        format!("restarted {}", self.apply(abandoned)).trim_end().to_owned()
    }

    /// What the exchange does with a machine that ran ahead of the journal.
    fn rebuild(&mut self) -> String {
        let mut again = self.reloaded();
        again.resume(self.now);
        let stale = std::mem::replace(&mut self.live, again);
        self.live.adopt(stale);
        "rebuilt".to_owned()
    }

    // ---- commands --------------------------------------------------------------------------------------------------

    fn send<C: Rule + Debug>(&mut self, command: &C, show: impl Fn(&C::Reply) -> String) -> String {
        let decided = Decide::decide(&self.live, self.now, command);
        if !self.depends_on_soft_state(C::NAME) {
            self.compare_decisions(command, &decided);
        }
        let observed = self.live.observe(self.now, command, decided.is_ok());
        let (mut events, said) = match decided {
            Ok(Decision { events, reply }) => (events, show(&reply)),
            Err(rejection) => (Vec::new(), Self::refusal(&rejection)),
        };
        events.extend(observed);
        let who = command.speaker().map_or_else(String::new, |name| format!("{name}: "));
        format!("{who}{said} {}", self.apply(events)).trim_end().to_owned()
    }

    fn apply(&mut self, events: Vec<Event>) -> String {
        let shown: Vec<String> = events.iter().map(shown_event).collect();
        for event in events {
            self.check_growth(&event);
            let json = serde_json::to_string(&event).unwrap();
            let read_back: Event = serde_json::from_str(&json).unwrap();
            assert_eq!(read_back, event, "read back from {json}");
            self.live.apply(&event);
            self.replayed.apply(&read_back);
            self.journal_bytes += json.len();
            self.journal.push(json);
        }
        if shown.is_empty() { String::new() } else { format!("[{}]", shown.join(" · ")) }
    }

    fn refusal(rejection: &Rejection) -> String {
        match rejection {
            Rejection::Locked { path, by } => format!("refused: {path} is taken by {}", lock(by)),
            Rejection::NotTheHolder { lock: theirs, .. } => format!("refused: held by {}", lock(theirs)),
            Rejection::InterfaceNotFound { similar, .. } => {
                format!(
                    "refused: {rejection}, like {}",
                    similar.iter().map(Name::as_str).collect::<Vec<_>>().join(" ")
                )
            }
            rejection => format!("refused: {rejection}"),
        }
    }

    fn command(&mut self, mut words: Words) -> Option<String> {
        let first = words.next();
        Some(match first.as_str() {
            "tick" => return None,
            "asleep" => {
                self.asleep = true;
                return None;
            }
            "settings" => {
                self.set(words);
                return None;
            }
            "restart" => self.restart(),
            "rebuild" => self.rebuild(),
            "agents" => self.send(&ListAgents, |agents| list(agents, agent)),
            "todos" => self.send(&AllTodos, |all| list(all, agent_todos)),
            "locks" => {
                let within = words.option("within").map(|scope| Scope::parse(&scope).unwrap());
                self.send(&ListLocks { within }, |locks| {
                    format!("held {}; waiting {}", list(&locks.held, lock), list(&locks.waiting, lock))
                })
            }
            "changes" => {
                let limit = words.option("limit").map_or(20, |limit| limit.parse().unwrap());
                let within = words.option("within").map(|within| duration(&within));
                self.send(&RecentChanges { limit, within }, |changes| list(changes, change))
            }
            "messages" => self.send(&ListMessages { limit: words.limit() }, |all| list(all, delivery)),
            "interface" => self.send(&QueryInterface { name: words.name() }, interface),
            "interfaces" => self.send(&ListInterfaces, |all| {
                list(all, |named| format!("{} {}", named.name, interface(&named.interface)))
            }),
            "completions" => {
                let all: Vec<_> = self.live.completions().collect();
                list(&all, |done| {
                    format!("{} by {} at {}", done.task_id, done.session, time(done.completed_at))
                })
            }
            "somebody" => {
                assert_eq!(words.next(), "checks");
                self.check_write(None, words)
            }
            _ => {
                let session = name(&first);
                self.agent_command(session, words)
            }
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm per verb of the language")]
    fn agent_command(&mut self, session: Name, mut words: Words) -> String {
        let verb = words.next();
        match verb.as_str() {
            "registers" => {
                let command = Register {
                    task_id: name(&words.option("task").unwrap_or_else(|| "t".to_owned())),
                    branch: text(&words.option("branch").unwrap_or_default()),
                    description: text(&words.option("as").unwrap_or_default()),
                    session: session.clone(),
                };
                format!(
                    "{session}: {}",
                    self.send(&command, |others| format!("others {}", list(others, Name::to_string)))
                )
            }
            "beats" => self.send(&Heartbeat { session }, |at| format!("beat of {}", time(*at))),
            "completes" => {
                self.send(&CompleteTask { session, task_id: words.name() }, |()| "done".to_owned())
            }
            "unregisters" => self.send(&Unregister { session }, |todos| {
                format!(
                    "left with {} todos: {} completed, {} pending, {} in progress",
                    todos.total, todos.completed, todos.pending, todos.in_progress
                )
            }),

            "adds" => {
                let text = words.text();
                let priority = match words.any() {
                    None => Priority::High,
                    Some("medium") => Priority::Medium,
                    Some("low") => Priority::Low,
                    Some(word) => panic!("no priority: {word}"),
                };
                self.send(&AddTodo { session, text, priority }, |id| format!("added {id}"))
            }
            "marks" => {
                let id = words.next();
                let status = serde_json::from_value(words.next().into()).unwrap();
                self.send(&UpdateTodo { session, id, status }, |id| format!("updated {id}"))
            }
            "todos" => self.send(&MyTodos { session }, |todos| list(todos, todo)),

            "sends" => {
                let content = words.text();
                let to = words.option("to").map(|to| to.split(',').map(name).collect());
                let message_type = name(&words.option("type").unwrap_or_else(|| "info".to_owned()));
                self.send(&SendMessage { session, to, message_type, content }, |sent| {
                    let id = sent.id.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
                    format!("sent {id} to {}", sent.recipients)
                })
            }
            "posts" => {
                let content = words.text();
                let to = name(&words.option("to").unwrap());
                let command = PostMessage { from: session, to, message_type: name("schedule"), content };
                self.send(&command, |id| format!("posted {id}"))
            }
            "takes" => self.send(&TakeMessages { session }, |letters| list(letters, letter)),
            "reads" => {
                let acknowledge = words.option("ack").map(|ids| ids.split(',').map(str::to_owned).collect());
                let command = ReadMessages {
                    session,
                    keep: words.flag("keep"),
                    acknowledge: acknowledge.unwrap_or_default(),
                    limit: words.limit(),
                };
                self.send(&command, |read| format!("{} and {} more", list(&read.letters, letter), read.more))
            }
            "status" => {
                let id = words.option("of");
                self.send(&MessageStatus { session, id, limit: words.limit() }, |all| list(all, delivery))
            }

            "asks" => {
                let (to, content) = (words.name(), words.text());
                let waits_until = words.option("waiting").map(|time| self.now + duration(&time));
                let command = Ask {
                    from: session,
                    to,
                    question_type: name(&words.option("type").unwrap_or_else(|| "help".to_owned())),
                    content,
                    requires_response: waits_until.is_some(),
                    waits_until,
                };
                self.send(&command, |id| format!("asked {id}"))
            }
            "answers" => {
                let (id, response) = (words.next(), words.text());
                let to = words.option("to").map(|to| name(&to));
                self.send(&AnswerQuestion { from: session, to, id, response }, |to| format!("answered {to}"))
            }
            "collects" => {
                let id = words.next();
                let otherwise = match (words.flag("stopping"), words.option("waiting")) {
                    (true, _) => Otherwise::StopWaiting,
                    (false, Some(time)) => Otherwise::WaitUntil(self.now + duration(&time)),
                    (false, None) => Otherwise::Leave,
                };
                let said = self.send(&CollectAnswer { session: session.clone(), id, otherwise }, collected);
                // Stopping is said in the name of the asker, not by it.
                if otherwise == Otherwise::StopWaiting { format!("{session}: {said}") } else { said }
            }

            "announces" => {
                let command = Acquire {
                    scope: Scope::literal(FilePath::parse(&words.peek()).unwrap()),
                    path: words.name(),
                    session,
                    change_type: words.change_type(),
                    description: text(&words.option("because").unwrap_or_default()),
                    ttl: None,
                    wait: false,
                };
                self.send(&command, acquired)
            }
            "acquires" => {
                let command = Acquire {
                    scope: Scope::parse(&words.peek()).unwrap(),
                    path: words.name(),
                    session,
                    change_type: words.change_type(),
                    description: text(&words.option("because").unwrap_or_default()),
                    ttl: words.ttl(),
                    wait: words.flag("waiting"),
                };
                self.send(&command, acquired)
            }
            "releases" => {
                let (scope, token) = (words.scope(), words.token());
                self.send(&ReleaseLock { session, scope, token }, |released| match released {
                    Released::Released => "released".to_owned(),
                    Released::NotLocked => "was not locked".to_owned(),
                })
            }
            "renews" => {
                let (scope, token, ttl) = (words.scope(), words.token(), words.ttl());
                self.send(&RenewLock { session, scope, token, ttl }, |renewed| {
                    format!("renewed {}", grant(renewed))
                })
            }
            "checks" => self.check_write(Some(session), words),
            "claims" => self.send(&ClaimTicket { session, ticket: words.next() }, acquired),
            "leaves" => {
                self.send(&LeaveLine { session, ticket: words.next() }, |()| "left the line".to_owned())
            }

            "shares" => {
                let command = RegisterInterface {
                    session,
                    name: words.name(),
                    definition: words.text(),
                    file_path: words.option("in").map(|path| name(&path)),
                };
                self.send(&command, |()| "shared".to_owned())
            }
            verb => panic!("no such verb: {verb}"),
        }
    }

    fn check_write(&mut self, session: Option<Name>, mut words: Words) -> String {
        let command = CheckWrite {
            session,
            path: FilePath::parse(&words.next()).unwrap(),
            token: words.token(),
            must_hold: words.flag("must-hold"),
        };
        self.send(&command, |may| {
            let allowed = if may.allowed { "may" } else { "may not" };
            let because = may.lock.as_ref().map(|by| format!(", {}", lock(by))).unwrap_or_default();
            format!("{allowed}: {:?}{because}", may.reason)
        })
    }

    fn set(&mut self, mut words: Words) {
        match words.next().as_str() {
            "strict" => self.settings.strict_rate_limits = true,
            "events" => self.settings.system_events = true,
            "shared" => self.settings.shared = true,
            "heartbeat" => self.settings.heartbeat_timeout = words.duration(),
            "claim" => self.settings.claim_window = words.duration(),
            setting => panic!("no such setting: {setting}"),
        }
        self.live.configure(&self.settings);
        self.replayed.configure(&self.settings);
    }

    // ---- what holds in every story ---------------------------------------------------------------------------------

    /// Soft state is known to the live machine alone.
    fn depends_on_soft_state(&self, command: &str) -> bool {
        command == Heartbeat::NAME || command == TakeMessages::NAME && self.settings.strict_rate_limits
    }

    fn reloaded(&self) -> Project {
        let mut again: Project = serde_json::from_str(&state_of(&self.live)).unwrap();
        again.configure(&self.settings);
        again
    }

    fn compare_decisions<C: Rule + Debug>(
        &self,
        command: &C,
        decided: &Result<Decision<Event, C::Reply>, Rejection>,
    ) {
        let form = |decided: &Result<Decision<Event, C::Reply>, Rejection>| match decided {
            Ok(decision) => Ok((decision.events.clone(), serde_json::to_value(&decision.reply).unwrap())),
            Err(rejection) => Err(rejection.clone()),
        };
        // The snapshots of a long story would take long: those are compared once per line.
        if self.journal_bytes < 100_000 {
            let again = Decide::decide(&self.reloaded(), self.now, command);
            assert_eq!(form(decided), form(&again), "a machine from a snapshot decides {command:?}");
        }
        let again = Decide::decide(&self.replayed, self.now, command);
        assert_eq!(form(decided), form(&again), "a machine that replayed the journal decides {command:?}");
    }

    fn compare(&mut self) {
        let state = state_of(&self.live);
        assert!(state == state_of(&self.replayed), "replayed state is not the live state");
        assert!(state == state_of(&self.reloaded()), "the state in a snapshot is not the live state");
        let locks = Decide::decide(&self.live, self.now, &ListLocks { within: None }).unwrap().reply.held;
        for (index, one) in locks.iter().enumerate().take(100) {
            for other in locks.iter().skip(index + 1).take(100) {
                let share = self.scopes[&one.token].overlaps(&self.scopes[&other.token]);
                assert!(!share || one.session == other.session, "{one:?} and {other:?} share a path");
            }
        }
    }

    fn check_growth(&mut self, event: &Event) {
        let id = match event {
            Event::TodoAdded { id, .. } => id.to_string(),
            Event::MessageSent { id, .. } | Event::QuestionAsked { id, .. } | Event::Noticed { id, .. } => {
                id.to_string()
            }
            Event::LineJoined { ticket, .. } => ticket.to_string(),
            Event::LockGranted { session, scope, token, .. } => {
                let is_new = self.scopes.last_key_value().is_none_or(|(last, _)| *token > *last);
                assert!(is_new || self.holds(session, *token), "token {token} was granted before");
                let first = self.scopes.entry(*token).or_insert_with(|| scope.clone());
                assert_eq!(first, scope, "token {token} was granted for");
                return;
            }
            _ => return,
        };
        let (_, stamp) = id.rsplit_once('-').unwrap();
        let (seconds, micros) = stamp.split_once('.').unwrap();
        let stamp = (seconds.parse().unwrap(), micros.parse().unwrap());
        assert!(stamp > self.last_stamp, "{id} does not come after {:?}", self.last_stamp);
        self.last_stamp = stamp;
    }

    fn holds(&self, session: &Name, token: u64) -> bool {
        let locks = Decide::decide(&self.live, self.now, &ListLocks { within: None }).unwrap().reply.held;
        locks.iter().any(|lock| lock.session == *session && lock.token == token)
    }

    fn replay_from_the_start(&self) {
        let mut again = Project::new();
        for json in &self.journal {
            again.apply(&serde_json::from_str(json).unwrap());
        }
        assert!(state_of(&again) == state_of(&self.live), "replayed state is not the live state");
    }
}

fn state_of(project: &impl Serialize) -> String {
    serde_json::to_string(project).unwrap()
}

// ---- reading -------------------------------------------------------------------------------------------------------

/// The words of a line: plain ones in order, `key value` pairs and flags taken out by name.
#[derive(Debug, Clone)]
struct Words {
    left: Vec<String>,
}

impl Words {
    fn of(line: &str) -> Self {
        let quoted = line.split('"').enumerate();
        let left = quoted.flat_map(|(index, part)| {
            if index % 2 == 1 {
                vec![part.to_owned()]
            } else {
                part.split_whitespace().map(str::to_owned).collect()
            }
        });
        Self { left: left.collect() }
    }

    fn next(&mut self) -> String {
        assert!(!self.left.is_empty(), "the line ends too early");
        long(&self.left.remove(0))
    }

    fn peek(&self) -> String {
        long(&self.left[0])
    }

    /// Whether the line is a command, before which the exchange ticks.
    fn is_for_the_machine(&self) -> bool {
        !matches!(self.any(), Some("settings" | "asleep" | "restart" | "rebuild"))
    }

    fn any(&self) -> Option<&str> {
        self.left.first().map(String::as_str)
    }

    fn name(&mut self) -> Name {
        name(&self.next())
    }

    fn text(&mut self) -> Text {
        text(&self.next())
    }

    fn scope(&mut self) -> Scope {
        Scope::parse(&self.next()).unwrap()
    }

    fn duration(&mut self) -> SignedDuration {
        duration(&self.next())
    }

    fn times(&mut self) -> usize {
        let times = self.any().and_then(|word| word.strip_suffix('x')?.parse().ok());
        if times.is_some() {
            self.left.remove(0);
        }
        times.unwrap_or(1)
    }

    fn flag(&mut self, flag: &str) -> bool {
        let found = self.left.iter().position(|word| word == flag);
        found.map(|index| self.left.remove(index)).is_some()
    }

    fn option(&mut self, key: &str) -> Option<String> {
        let index = self.left.iter().position(|word| word == key)?;
        self.left.remove(index);
        Some(long(&self.left.remove(index)))
    }

    fn limit(&mut self) -> usize {
        self.option("limit").map_or(100, |limit| limit.parse().unwrap())
    }

    fn token(&mut self) -> Option<u64> {
        self.option("token").map(|token| token.parse().unwrap())
    }

    fn ttl(&mut self) -> Option<Ttl> {
        self.option("for").map(|ttl| Ttl::from_seconds(duration(&ttl).as_secs()).unwrap())
    }

    fn change_type(&mut self) -> ChangeType {
        self.option("to").map_or(ChangeType::Modify, |word| serde_json::from_value(word.into()).unwrap())
    }
}

fn name(word: &str) -> Name {
    Name::new(word).unwrap()
}

fn text(word: &str) -> Text {
    Text::new(word).unwrap()
}

/// `x*500` is 500 times `x`.
fn long(word: &str) -> String {
    let repeated = word.split_once('*').and_then(|(unit, times)| Some(unit.repeat(times.parse().ok()?)));
    repeated.unwrap_or_else(|| word.to_owned())
}

/// `90s`, `1.5s`, `2m` or `24h`.
fn duration(word: &str) -> SignedDuration {
    let (number, unit) = word.split_at(word.len() - 1);
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("no duration: {word}"));
    let seconds = match unit {
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => panic!("no duration: {word}"),
    };
    SignedDuration::try_from_secs_f64(seconds).unwrap()
}

// ---- showing -------------------------------------------------------------------------------------------------------

fn time(at: Timestamp) -> String {
    let micros = at.as_microsecond();
    match (micros / 1_000_000, micros % 1_000_000) {
        (seconds, 0) if seconds >= 3_600 && seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        (seconds, 0) => format!("{seconds}s"),
        (seconds, rest) => format!("{seconds}.{}s", format!("{rest:06}").trim_end_matches('0')),
    }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    match items {
        [] => "none".to_owned(),
        items if items.len() > 12 => {
            let (first, last) = (show(&items[0]), show(&items[items.len() - 1]));
            format!("{} items: {first} … {last}", items.len())
        }
        items => items.iter().map(show).collect::<Vec<_>>().join(" | "),
    }
}

fn short(text: &str) -> String {
    if text.len() > 60 { format!("<{} bytes>", text.len()) } else { text.to_owned() }
}

fn until(word: &str, at: Option<Timestamp>) -> String {
    at.map(|at| format!(" {word} {}", time(at))).unwrap_or_default()
}

fn agent(agent: &AgentView) -> String {
    let described: String = [&agent.branch, &agent.description]
        .iter()
        .filter(|text| !text.as_str().is_empty())
        .fold(String::new(), |described, text| described + &format!(" '{text}'"));
    format!(
        "{} {}{described} {:?} since {}",
        agent.session,
        agent.task_id,
        agent.status,
        time(agent.started_at)
    )
}

fn todo(todo: &Todo) -> String {
    let status = match todo.status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in progress",
        TodoStatus::Completed => "completed",
        TodoStatus::Blocked => "blocked",
    };
    let (at, priority) = (until("at", todo.completed_at), todo.priority.number());
    format!("{} '{}' {status}{at} priority {priority}", todo.id, short(todo.text.as_str()))
}

fn agent_todos(of: &AgentTodos) -> String {
    format!("{}: {}", of.agent.session, list(&of.todos, todo))
}

fn letter(letter: &Letter) -> String {
    let kind = match &letter.kind {
        LetterKind::Note { message_type, broadcast: true } => format!("to all, {message_type}"),
        LetterKind::Note { message_type, broadcast: false } => format!("{message_type}"),
        LetterKind::Question { question_type, requires_response: true } => {
            format!("{question_type}? answer needed")
        }
        LetterKind::Question { question_type, requires_response: false } => format!("{question_type}?"),
        LetterKind::Response { response_to } => format!("answer to {response_to}"),
        LetterKind::LockGranted { ticket, path, token, claim_by } => {
            format!("{path} is yours by {ticket} as #{token}{}", until("claim by", *claim_by))
        }
        LetterKind::Notice { event } => format!("event {event}"),
    };
    let again = if letter.delivered_before { " again" } else { "" };
    format!("{} ({kind}) '{}'{again}", letter.id, short(letter.content.as_str()))
}

fn delivery(delivery: &Delivery) -> String {
    let mut shown = format!("{} stored {}", delivery.id, time(delivery.stored_at));
    for receipt in &delivery.receipts {
        let (delivered, read) = (until("delivered", receipt.delivered_at), until("read", receipt.read_at));
        write!(shown, ", {}{delivered}{read}", receipt.session).unwrap();
    }
    if delivery.is_question {
        shown.push_str(", question");
        shown.push_str(&until("answered", delivery.answered_at));
        shown.push_str(&until("known", delivery.answer_delivered_at));
    }
    shown
}

fn collected(collected: &Collected) -> String {
    match collected {
        Collected::Answer { response, answered_at, delivered_before } => {
            let again = if *delivered_before { ", again" } else { "" };
            format!("answer '{}' of {}{again}", short(response.as_str()), time(*answered_at))
        }
        Collected::Pending { to, delivered_at, read_at } => {
            format!("pending at {to}{}{}", until("delivered", *delivered_at), until("read", *read_at))
        }
    }
}

fn lock(lock: &LockView) -> String {
    let as_what = if lock.waiting { "in line".to_owned() } else { format!("#{}", lock.token) };
    let because = lock.description.as_str();
    let because = if because.is_empty() { String::new() } else { format!(" '{because}'") };
    let (since, end) = (time(lock.locked_at), until("until", lock.expires_at));
    let change = if lock.change_type == ChangeType::Modify {
        String::new()
    } else {
        format!(" {:?}", lock.change_type)
    };
    format!("{} {} {as_what}{change}{because} since {since}{end}", lock.session, lock.path)
}

fn grant(grant: &Grant) -> String {
    format!("{} #{}{}", grant.path, grant.token, until("until", grant.expires_at))
}

fn acquired(acquired: &Acquired) -> String {
    match acquired {
        Acquired::Granted(granted) => format!("granted {}", grant(granted)),
        Acquired::Waiting(Ticket { id, path, place, held_by }) => {
            let held_by = list(held_by, |lock| format!("{} {}", lock.session, lock.path));
            format!("waits {id} for {path}, place {place}, held by {held_by}")
        }
    }
}

fn change(change: &Change) -> String {
    format!(
        "{} {} {:?} '{}' at {}",
        change.session,
        change.path,
        change.change_type,
        change.description,
        time(change.at)
    )
}

fn interface(interface: &Interface) -> String {
    let path = interface.file_path.as_ref().map(|path| format!(" in {path}")).unwrap_or_default();
    let (by, at) = (&interface.registered_by, time(interface.registered_at));
    format!("'{}'{path} by {by} at {at}", short(interface.definition.as_str()))
}

/// The event's name and what tells it from others of its kind.
fn shown_event(event: &Event) -> String {
    match event {
        Event::AgentRegistered { session, .. } => format!("{session} registered"),
        Event::AgentSeen { session, .. } => format!("{session} seen"),
        Event::AgentLeft { session, why, .. } => format!("{session} left: {why:?}"),
        Event::TaskCompleted { task_id, .. } => format!("{task_id} completed"),
        Event::TodoAdded { session, .. } => format!("todo of {session}"),
        Event::TodoUpdated { id, status, .. } => format!("{id} {status:?}"),
        Event::MessageSent { to, .. } => format!("message to {}", list(to, Name::to_string)),
        Event::QuestionAsked { to, waits_until, .. } => {
            format!("question to {to}{}", until("awaited until", *waits_until))
        }
        Event::AnswerAwaited { until: at, .. } => format!("awaited{}", until("until", Some(*at))),
        Event::WaitEnded { .. } => "wait ended".to_owned(),
        Event::QuestionAnswered { .. } => "question answered".to_owned(),
        Event::AnswerDelivered { .. } => "answer delivered".to_owned(),
        Event::MessagesDelivered { session, ids, .. } => format!("{} delivered to {session}", ids.len()),
        Event::MessagesRead { session, ids, .. } => format!("{} read by {session}", ids.len()),
        Event::Noticed { to, event, content, .. } => {
            format!("{} told {event} '{}'", list(to, Name::to_string), short(content.as_str()))
        }
        Event::LockGranted { session, scope, token, expires_at, claim_by, .. } => format!(
            "{session} locks {scope} #{token}{}{}",
            until("until", *expires_at),
            until("claim by", *claim_by)
        ),
        Event::LockRenewed { scope, expires_at, .. } => {
            format!("{scope} renewed{}", until("until", *expires_at))
        }
        Event::LockClaimed { scope, .. } => format!("{scope} claimed"),
        Event::LockReleased { session, scope, token, why, .. } => {
            format!("{session} loses {scope} #{token}: {why:?}")
        }
        Event::LineJoined { session, scope, .. } => format!("{session} lines up for {scope}"),
        Event::LineLeft { ticket, .. } => format!("{ticket} given up"),
        Event::InterfaceRegistered { name, .. } => format!("interface {name}"),
    }
}
