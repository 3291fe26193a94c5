//! Who is here: registration, signs of life, completion and leaving.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::mailbox::Inbox;
use crate::project::{Project, Rule};
use crate::todo::Todo;
use crate::{Event, Name, Rejection, Text, TodoStatus};

/// How far an agent is with its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// At work.
    Active,
    /// Done, but still here.
    Completed,
}

/// A registered agent, as the journal has it, and when it was last seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Agent {
    pub(crate) task_id: Name,
    pub(crate) branch: Text,
    pub(crate) description: Text,
    pub(crate) status: AgentStatus,
    pub(crate) started_at: Timestamp,
    /// The last sign of life that is journalled.
    seen_at: Timestamp,
    pub(crate) todos: Vec<Todo>,
    pub(crate) inbox: Inbox,
    /// When it asked its latest questions, oldest first; at most a minute's worth.
    pub(crate) asked: VecDeque<Timestamp>,
    #[serde(skip)]
    soft: Soft,
}

/// What is known of an agent beside the journal.
#[derive(Debug, Clone, Default)]
struct Soft {
    /// The last sign of life on this node.
    seen_at: Option<Timestamp>,
    /// The last heartbeat that counted.
    beat_at: Option<Timestamp>,
    /// When it looked for messages within the last minute.
    pub(crate) checked: VecDeque<Timestamp>,
}

impl Agent {
    /// When it is taken for gone, if it stays silent.
    pub(crate) fn expires_at(&self, project: &Project) -> Timestamp {
        let settings = &project.settings;
        // Where other nodes serve the same project, the last sign of life may be known to one of them only; it is
        // journalled when a quarter of the time-out has passed, so that is how much longer we wait.
        let journalled = later(
            self.seen_at,
            if settings.shared { settings.heartbeat_timeout / 4 } else { SignedDuration::ZERO },
        );
        let seen = [Some(journalled), self.soft.seen_at, project.soft.resumed_at].into_iter().flatten().max();
        later(seen.unwrap_or(journalled), settings.heartbeat_timeout)
    }

    /// Notes a sign of life. Answers whether it is worth journalling.
    pub(crate) fn seen(&mut self, now: Timestamp, timeout: SignedDuration) -> bool {
        self.soft.seen_at = Some(self.soft.seen_at.map_or(now, |seen| seen.max(now)));
        now.duration_since(self.seen_at) > timeout / 4
    }

    pub(crate) fn apply_seen(&mut self, at: Timestamp) {
        self.seen_at = self.seen_at.max(at);
    }

    pub(crate) fn adopt(&mut self, stale: &mut Self) {
        self.soft = std::mem::take(&mut stale.soft);
    }

    /// The looks for messages within the minute before `now`, including one that came now.
    pub(crate) fn note_check(&mut self, now: Timestamp) {
        forget_older(&mut self.soft.checked, now);
        self.soft.checked.push_back(now);
    }

    /// Seconds until the next look for messages is within the limit; none if one is now.
    pub(crate) fn check_retry_after(&self, now: Timestamp, limit: usize) -> Option<i64> {
        retry_after(&self.soft.checked, now, limit)
    }

    pub(crate) fn view(&self, session: &Name) -> AgentView {
        AgentView {
            session: session.clone(),
            task_id: self.task_id.clone(),
            branch: self.branch.clone(),
            description: self.description.clone(),
            status: self.status,
            started_at: self.started_at,
        }
    }
}

/// `instant` moved on by `duration`; the end of time if there is no such instant.
pub(crate) fn later(instant: Timestamp, duration: SignedDuration) -> Timestamp {
    instant.checked_add(duration).unwrap_or(Timestamp::MAX)
}

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

pub(crate) fn forget_older(times: &mut VecDeque<Timestamp>, now: Timestamp) {
    while times.front().is_some_and(|time| now.duration_since(*time) >= MINUTE) {
        times.pop_front();
    }
}

/// A sliding window of a minute: whole seconds until one more is within `limit`; none if it is now.
pub(crate) fn retry_after(times: &VecDeque<Timestamp>, now: Timestamp, limit: usize) -> Option<i64> {
    let recent = times.iter().filter(|time| now.duration_since(**time) < MINUTE).count();
    let oldest_that_counts = recent.checked_sub(limit)?;
    let oldest = times.iter().rev().nth(recent - 1 - oldest_that_counts)?;
    Some(whole_seconds(MINUTE - now.duration_since(*oldest)))
}

/// Rounded up, at least 1.
fn whole_seconds(duration: SignedDuration) -> i64 {
    (duration.as_secs() + i64::from(duration.subsec_nanos() > 0)).max(1)
}

/// An agent, as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    /// Its name.
    pub session: Name,
    /// The task it works on.
    pub task_id: Name,
    /// The git branch it works on.
    pub branch: Text,
    /// What it does.
    pub description: Text,
    /// How far it is.
    pub status: AgentStatus,
    /// When it registered.
    pub started_at: Timestamp,
}

/// A task was reported as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The task.
    pub task_id: Name,
    /// Who reported it.
    pub session: Name,
    /// When.
    pub completed_at: Timestamp,
}

/// Why an agent left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leaving {
    /// It said so.
    Unregistered,
    /// It was silent for longer than the heartbeat time-out.
    Expired,
}

// ---- commands ------------------------------------------------------------------------------------------------------

/// An agent comes, or starts over under the same name: then its todos are gone, its locks and messages stay.
#[derive(Debug, Clone)]
pub struct Register {
    /// Its name in the project.
    pub session: Name,
    /// The task it works on.
    pub task_id: Name,
    /// The git branch it works on.
    pub branch: Text,
    /// What it does.
    pub description: Text,
}

impl Rule for Register {
    type Reply = Vec<Name>;
    const NAME: &'static str = "agent_register";

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Vec<Name>>, Rejection> {
        let others: Vec<Name> =
            project.agents.keys().filter(|session| **session != self.session).cloned().collect();
        let mut events = vec![Event::AgentRegistered {
            session: self.session.clone(),
            task_id: self.task_id.clone(),
            branch: self.branch.clone(),
            description: self.description.clone(),
            at: now,
        }];
        events.extend(project.notice("agent_joined", &self.session, now, || {
            format!("Agent {} joined: {}", self.session, self.description)
        }));
        Ok(Decision::events(events, others))
    }
}

/// A sign of life.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// Whose.
    pub session: Name,
}

impl Heartbeat {
    /// Heartbeats closer than this to the last one change nothing.
    const CLOSEST: SignedDuration = SignedDuration::from_secs(10);

    fn too_soon_after(&self, project: &Project, now: Timestamp) -> Option<Timestamp> {
        let beat_at = project.agents.get(&self.session)?.soft.beat_at?;
        (now.duration_since(beat_at) < Self::CLOSEST && now >= beat_at).then_some(beat_at)
    }
}

impl Rule for Heartbeat {
    /// When the beat that counts was recorded.
    type Reply = Timestamp;
    const NAME: &'static str = "agent_heartbeat";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Timestamp>, Rejection> {
        project.agent(&self.session)?;
        match self.too_soon_after(project, now) {
            None => Ok(Decision::unchanged(now)),
            Some(beat_at) if project.settings.strict_rate_limits => Err(Rejection::RateLimited {
                what: "min 10 seconds between heartbeats",
                retry_after_seconds: whole_seconds(Self::CLOSEST - now.duration_since(beat_at)),
            }),
            Some(beat_at) => Ok(Decision::unchanged(beat_at)),
        }
    }

    fn note(&self, project: &mut Project, now: Timestamp, accepted: bool) {
        if accepted
            && self.too_soon_after(project, now).is_none()
            && let Some(agent) = project.agents.get_mut(&self.session)
        {
            agent.soft.beat_at = Some(now);
        }
    }
}

/// Who is here, in the order of registration.
#[derive(Debug, Clone)]
pub struct ListAgents;

impl Rule for ListAgents {
    type Reply = Vec<AgentView>;
    const NAME: &'static str = "agent_list";

    fn decide(
        &self,
        project: &Project,
        _now: Timestamp,
    ) -> Result<Decision<Event, Vec<AgentView>>, Rejection> {
        let agents = project.agents.iter().map(|(session, agent)| agent.view(session)).collect();
        Ok(Decision::unchanged(agents))
    }
}

/// A task is done. Also an agent that is taken for gone may say so, else its orchestrator would never learn.
#[derive(Debug, Clone)]
pub struct CompleteTask {
    /// Who says so.
    pub session: Name,
    /// The task.
    pub task_id: Name,
}

impl Rule for CompleteTask {
    type Reply = ();
    const NAME: &'static str = "task_complete";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, _project: &Project, now: Timestamp) -> Result<Decision<Event, ()>, Rejection> {
        let event =
            Event::TaskCompleted { session: self.session.clone(), task_id: self.task_id.clone(), at: now };
        Ok(Decision::event(event, ()))
    }
}

/// An agent leaves: its locks, todos, places in lines and unread messages go with it.
#[derive(Debug, Clone)]
pub struct Unregister {
    /// Who leaves.
    pub session: Name,
}

/// How many todos an agent left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoSummary {
    /// All, blocked ones too.
    pub total: usize,
    /// Done.
    pub completed: usize,
    /// Not begun.
    pub pending: usize,
    /// Begun.
    pub in_progress: usize,
}

impl Rule for Unregister {
    type Reply = TodoSummary;
    const NAME: &'static str = "agent_unregister";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, TodoSummary>, Rejection> {
        let todos = &project.agent(&self.session)?.todos;
        let count = |status| todos.iter().filter(|todo| todo.status == status).count();
        let summary = TodoSummary {
            total: todos.len(),
            completed: count(TodoStatus::Completed),
            pending: count(TodoStatus::Pending),
            in_progress: count(TodoStatus::InProgress),
        };
        let mut events = Vec::new();
        project.decide_leaving(&self.session, Leaving::Unregistered, now, &mut events);
        Ok(Decision::events(events, summary))
    }
}

// ---- what the events mean ------------------------------------------------------------------------------------------

impl Project {
    /// The agent called `session`, who must be registered to do what it wants to do.
    pub(crate) fn agent(&self, session: &Name) -> Result<&Agent, Rejection> {
        self.agents.get(session).ok_or_else(|| Rejection::NotRegistered { session: session.clone() })
    }

    /// Adds to `events` that `session` leaves, and that the others are told.
    fn decide_leaving(&self, session: &Name, why: Leaving, now: Timestamp, events: &mut Vec<Event>) {
        let last_told = events.iter().rev().find_map(|event| match event {
            Event::Noticed { id, .. } => Some(id.stamp),
            _ => None,
        });
        let last = last_told.unwrap_or(self.last_stamp);
        let told = self.notice_after(last, "agent_left", session, now, || format!("Agent {session} left"));
        events.push(Event::AgentLeft { session: session.clone(), why, at: now });
        events.extend(told);
    }

    pub(crate) fn decide_expiries(&self, now: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        for (session, _) in self.agents.iter().filter(|(_, agent)| agent.expires_at(self) <= now) {
            self.decide_leaving(session, Leaving::Expired, now, &mut events);
        }
        events
    }

    pub(crate) fn apply_registered(
        &mut self,
        session: &Name,
        task_id: &Name,
        branch: &Text,
        description: &Text,
        at: Timestamp,
    ) {
        let before = self.agents.get_mut(session);
        let agent = Agent {
            task_id: task_id.clone(),
            branch: branch.clone(),
            description: description.clone(),
            status: AgentStatus::Active,
            started_at: at,
            seen_at: at,
            todos: Vec::new(),
            inbox: before.as_ref().map(|agent| agent.inbox.clone()).unwrap_or_default(),
            asked: before.as_ref().map(|agent| agent.asked.clone()).unwrap_or_default(),
            soft: before.map(|agent| std::mem::take(&mut agent.soft)).unwrap_or_default(),
        };
        let expires_at = agent.expires_at(self);
        self.agents.insert(session.clone(), agent);
        self.soft.wake_at(expires_at);
    }

    pub(crate) fn apply_completed(&mut self, session: &Name, task_id: &Name, at: Timestamp) {
        if let Some(agent) = self.agents.get_mut(session) {
            agent.status = AgentStatus::Completed;
        }
        let completion = Completion { task_id: task_id.clone(), session: session.clone(), completed_at: at };
        self.completions.insert(task_id.clone(), completion);
        if self.completions.len() > Self::MAX_COMPLETIONS {
            self.completions.shift_remove_index(0);
        }
    }

    pub(crate) fn apply_left(&mut self, session: &Name) {
        let Some(agent) = self.agents.shift_remove(session) else { return };
        self.forget_inbox(session, &agent.inbox);
        self.locks.forget(session);
        self.promote_line();
    }
}
