//! The machine of one project: what it knows, and how its parts make up one whole.

use std::collections::VecDeque;

use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchboard_exchange::{Decide, Decision, Machine};

use crate::agent::Agent;
use crate::lock::Locks;
use crate::mailbox::Mail;
use crate::stamp::Stamp;
use crate::{Change, Completion, Event, Interface, MessageId, Name, Rejection, Text};

/// What the rules take from configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// An agent that is silent for so long is taken for gone. Default: 120 s.
    pub heartbeat_timeout: SignedDuration,
    /// How long a lock granted to an agent in the line waits to be claimed before the next in line gets it.
    /// Default: 60 s.
    pub claim_window: SignedDuration,
    /// Whether early heartbeats and frequent looks for messages are refused. Default: no.
    pub strict_rate_limits: bool,
    /// Whether agents are told of each other's doings by messages of type `event`. Default: no.
    pub system_events: bool,
    /// Whether other nodes serve the same project; see [`Sharing`](switchboard_journal::Sharing).
    pub shared: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat_timeout: SignedDuration::from_secs(120),
            claim_window: SignedDuration::from_secs(60),
            strict_rate_limits: false,
            system_events: false,
            shared: false,
        }
    }
}

/// Everything a project knows. Commands are the types that the modules of this crate name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Project {
    pub(crate) agents: IndexMap<Name, Agent>,
    pub(crate) mail: Mail,
    pub(crate) locks: Locks,
    /// The latest changes, oldest first.
    pub(crate) changes: VecDeque<Change>,
    pub(crate) interfaces: IndexMap<Name, Interface>,
    pub(crate) completions: IndexMap<Name, Completion>,
    pub(crate) last_stamp: Stamp,
    #[serde(skip)]
    pub(crate) settings: Settings,
    #[serde(skip)]
    pub(crate) soft: Soft,
}

/// What is not in the journal.
#[derive(Debug, Default)]
pub(crate) struct Soft {
    /// When this node began to serve the project: every agent gets a full period from then on.
    pub(crate) resumed_at: Option<Timestamp>,
    /// No later than the earliest instant at which a tick has something to say.
    wake_at: Option<Timestamp>,
}

impl Soft {
    /// A tick may have something to say at `instant`.
    pub(crate) fn wake_at(&mut self, instant: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(instant, |wake_at| wake_at.min(instant)));
    }
}

/// One command of a project: who says it, and what it means. Implemented by the commands of this crate.
pub trait Rule: Send + 'static {
    /// What the caller is told.
    type Reply: Serialize + DeserializeOwned + Send + 'static;

    /// The command's name in the journal and in traces.
    const NAME: &'static str;

    /// The agent that shows by this command that it lives.
    fn speaker(&self) -> Option<&Name> {
        None
    }

    /// Decides what the command means for `project` at `now`.
    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Self::Reply>, Rejection>;

    /// Notes the command in soft state.
    fn note(&self, project: &mut Project, now: Timestamp, accepted: bool) {
        let _ = (project, now, accepted);
    }
}

impl<C: Rule> Decide<C> for Project {
    type Reply = C::Reply;
    const NAME: &'static str = C::NAME;

    fn decide(&self, now: Timestamp, command: &C) -> Result<Decision<Event, C::Reply>, Rejection> {
        command.decide(self, now)
    }

    fn observe(&mut self, now: Timestamp, command: &C, accepted: bool) -> Option<Event> {
        command.note(self, now, accepted);
        let session = command.speaker()?;
        let timeout = self.settings.heartbeat_timeout;
        let worth_journalling = self.agents.get_mut(session)?.seen(now, timeout);
        worth_journalling.then(|| Event::AgentSeen { session: session.clone(), at: now })
    }
}

impl Machine for Project {
    const VERSION: u32 = 1;
    type Settings = Settings;
    type Event = Event;
    type Rejection = Rejection;

    fn new() -> Self {
        Self::default()
    }

    fn configure(&mut self, settings: &Settings) {
        self.settings = settings.clone();
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::AgentRegistered { session, task_id, branch, description, at } => {
                self.apply_registered(session, task_id, branch, description, *at);
            }
            Event::AgentSeen { session, at } => {
                if let Some(agent) = self.agents.get_mut(session) {
                    agent.apply_seen(*at);
                }
            }
            Event::AgentLeft { session, why: _, at: _ } => self.apply_left(session),
            Event::TaskCompleted { session, task_id, at } => self.apply_completed(session, task_id, *at),

            Event::TodoAdded { session, id, text, priority, at } => {
                self.apply_todo_added(session, *id, text, *priority, *at);
            }
            Event::TodoUpdated { session, id, status, at } => {
                self.apply_todo_updated(session, *id, *status, *at);
            }

            Event::MessageSent { id, to, message_type, content, broadcast, at } => {
                self.apply_message_sent(id, to, message_type, content, *broadcast, *at);
            }
            Event::QuestionAsked { id, to, question_type, content, requires_response, waits_until, at } => {
                self.apply_asked(id, to, question_type, content, *requires_response, *waits_until, *at);
            }
            Event::AnswerAwaited { id, until } => self.apply_awaited(*id, *until),
            Event::WaitEnded { id, at } => self.apply_wait_ended(*id, *at),
            Event::QuestionAnswered { id, response, at } => self.apply_answered(*id, response, *at),
            Event::AnswerDelivered { id, at } => self.apply_answer_delivered(*id, *at),
            Event::MessagesDelivered { session, ids, at } => self.apply_delivered(session, ids, *at),
            Event::MessagesRead { session, ids, at } => self.apply_read(session, ids, *at),
            Event::Noticed { id, to, event, content, at } => {
                self.apply_noticed(id, to, event, content, *at);
            }

            Event::LockGranted {
                session,
                scope,
                path,
                token,
                change_type,
                description,
                expires_at,
                ticket,
                claim_by,
                at,
            } => self.apply_granted(
                crate::lock::Lock {
                    session: session.clone(),
                    scope: scope.clone(),
                    token: *token,
                    locked_at: *at,
                    change_type: *change_type,
                    description: description.clone(),
                    expires_at: *expires_at,
                    ticket: *ticket,
                    claim_by: *claim_by,
                },
                path,
            ),
            Event::LockRenewed { scope, expires_at, at: _ } => self.apply_renewed(scope, *expires_at),
            Event::LockClaimed { scope, at: _ } => self.apply_claimed(scope),
            Event::LockReleased { session: _, scope, token: _, why: _, at: _ } => self.apply_released(scope),
            Event::LineJoined { ticket, session, scope, path, change_type, description, ttl, at } => {
                self.apply_line_joined(
                    *ticket,
                    crate::line::Waiter {
                        session: session.clone(),
                        scope: scope.clone(),
                        path: path.clone(),
                        change_type: *change_type,
                        description: description.clone(),
                        ttl: *ttl,
                        since: *at,
                    },
                );
            }
            Event::LineLeft { ticket, at: _ } => self.apply_line_left(*ticket),

            Event::InterfaceRegistered { session, name, definition, file_path, at } => {
                self.interfaces.insert(
                    name.clone(),
                    Interface {
                        definition: definition.clone(),
                        registered_by: session.clone(),
                        file_path: file_path.clone(),
                        registered_at: *at,
                    },
                );
            }
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.soft.wake_at
    }

    fn tick(&self, now: Timestamp) -> Vec<Event> {
        let mut events = self.decide_expiries(now);
        events.extend(self.decide_waits_over(now));
        events.extend(self.decide_lapses(now));
        // Whatever the above frees is handed on by the tick that follows their being applied.
        if events.is_empty() {
            events.extend(self.decide_promotions(now));
        }
        events
    }

    fn ticked(&mut self, now: Timestamp) {
        // What a tick's own events made possible at once is still to be looked at.
        let at_once = self.soft.wake_at == Some(Timestamp::MIN) && self.can_promote(now);
        let expiries = self.agents.values().map(|agent| agent.expires_at(self));
        let waits = self.mail.wait_deadlines();
        let locks = self.locks.deadlines();
        let earliest = expiries.chain(waits).chain(locks).min();
        self.soft.wake_at = if at_once { Some(Timestamp::MIN) } else { earliest };
    }

    fn resume(&mut self, now: Timestamp) {
        self.soft.resumed_at = Some(now);
        // The first batch finds out what is due; from then on the deadlines are exact.
        self.soft.wake_at = Some(Timestamp::MIN);
        self.ticked(now);
    }

    fn abandon(&self, now: Timestamp) -> Vec<Event> {
        self.mail.open_waits().map(|id| Event::WaitEnded { id, at: now }).collect()
    }

    fn adopt(&mut self, mut stale: Self) {
        self.soft.resumed_at = stale.soft.resumed_at;
        for (session, agent) in &mut self.agents {
            if let Some(stale) = stale.agents.get_mut(session) {
                agent.adopt(stale);
            }
        }
        // The deadlines were worked out without what was just taken over.
        self.soft.wake_at(Timestamp::MIN);
    }
}

impl Project {
    /// The most completion records that are kept; the oldest go first.
    pub(crate) const MAX_COMPLETIONS: usize = 10_000;

    /// Tells all agents but `about` of something, if the settings say so. Who has no room in its inbox is not told.
    pub(crate) fn notice(
        &self,
        event: &str,
        about: &Name,
        now: Timestamp,
        content: impl FnOnce() -> String,
    ) -> Option<Event> {
        self.notice_after(self.last_stamp, event, about, now, content)
    }

    /// The same, where the events decided along with it used stamps up to `last`.
    pub(crate) fn notice_after(
        &self,
        last: Stamp,
        event: &str,
        about: &Name,
        now: Timestamp,
        content: impl FnOnce() -> String,
    ) -> Option<Event> {
        if !self.settings.system_events {
            return None;
        }
        let others = self.agents.iter().filter(|(session, _)| *session != about);
        let with_room = others.filter(|(session, agent)| agent.inbox.check_room(session).is_ok());
        let to: Vec<Name> = with_room.map(|(session, _)| session.clone()).collect();
        if to.is_empty() {
            return None;
        }
        let id = MessageId { from: about.clone(), stamp: Stamp::next(now, last) };
        // Both texts are made of texts within bounds; what does not fit is shortened rather than dropped.
        let event = Name::new(event).ok()?;
        let mut content = content();
        let end = content.floor_char_boundary(Text::MAX_BYTES);
        content.truncate(end);
        Some(Event::Noticed { id, to, event, content: Text::new(content).ok()?, at: now })
    }

    /// The tasks reported as done, in the order of their first report.
    pub fn completions(&self) -> impl Iterator<Item = &Completion> {
        self.completions.values()
    }
}
