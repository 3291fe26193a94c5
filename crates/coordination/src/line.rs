//! The line for locks: first come, first served.
//!
//! A place in the line is durable: it outlives the call that took it and a restart, and goes when its agent does. Nobody
//! overtakes: a newcomer who wants a file that somebody earlier waits for gets in line behind, also where the file itself
//! is free. Only those who want files in common are in each other's way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::agent::later;
use crate::lock::{Lock, Locks, Release};
use crate::project::{Project, Rule};
use crate::stamp::Stamp;
use crate::{Acquired, ChangeType, Event, LockView, Name, Rejection, Scope, Text, TicketId};

/// Somebody in the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiter {
    pub(crate) session: Name,
    pub(crate) scope: Scope,
    pub(crate) path: Name,
    pub(crate) change_type: ChangeType,
    pub(crate) description: Text,
    pub(crate) ttl: Option<SignedDuration>,
    pub(crate) since: Timestamp,
}

impl Waiter {
    pub(crate) fn view(&self) -> LockView {
        LockView {
            path: self.scope.as_str().to_owned(),
            session: self.session.clone(),
            token: 0,
            locked_at: self.since,
            change_type: self.change_type,
            description: self.description.clone(),
            expires_at: None,
            waiting: true,
        }
    }
}

/// Everybody who waits, by their tickets, which grow.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Line(BTreeMap<TicketId, Waiter>);

impl Line {
    /// The most places in the line of one project.
    const MOST: usize = 10_000;

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TicketId, &Waiter)> {
        self.0.iter().map(|(id, waiter)| (*id, waiter))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn check_room(&self) -> Result<(), Rejection> {
        if self.0.len() < Self::MOST {
            return Ok(());
        }
        Err(Rejection::Full {
            what: "the line for the project's locks".to_owned(),
            limit: Self::MOST,
            remedy: "try again without waiting",
        })
    }

    pub(crate) fn get(&self, id: TicketId) -> Option<&Waiter> {
        self.0.get(&id)
    }

    pub(crate) fn place_of(&self, session: &Name, scope: &Scope) -> Option<(TicketId, &Waiter)> {
        self.iter().find(|(_, waiter)| waiter.session == *session && waiter.scope == *scope)
    }

    /// The first of those who came before `ticket` and want a path of `scope`, and are not `session`.
    fn ahead<'a>(
        &'a self,
        ticket: TicketId,
        session: &'a Name,
        scope: &'a Scope,
    ) -> impl Iterator<Item = (TicketId, &'a Waiter)> {
        self.0
            .range(..ticket)
            .map(|(id, waiter)| (*id, waiter))
            .filter(|(_, waiter)| waiter.session != *session && waiter.scope.overlaps(scope))
    }

    /// The first who would be overtaken if `session` took `scope` now without having waited.
    pub(crate) fn ahead_of_newcomer<'a>(
        &'a self,
        session: &'a Name,
        scope: &'a Scope,
    ) -> Option<(TicketId, &'a Waiter)> {
        let end = self.place_of(session, scope).map_or(TicketId(Stamp::MAX), |(id, _)| id);
        self.ahead(end, session, scope).next()
    }

    fn join(&mut self, id: TicketId, waiter: Waiter) {
        self.0.insert(id, waiter);
    }

    pub(crate) fn leave(&mut self, id: TicketId) -> bool {
        self.0.remove(&id).is_some()
    }

    pub(crate) fn leave_scope(&mut self, session: &Name, scope: &Scope) {
        if !self.is_empty() {
            self.0.retain(|_, waiter| waiter.session != *session || waiter.scope != *scope);
        }
    }

    pub(crate) fn forget(&mut self, session: &Name) {
        self.0.retain(|_, waiter| waiter.session != *session);
    }
}

/// A place in the line, as its holder sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Its id.
    pub id: TicketId,
    /// What is waited for, normalised.
    pub path: String,
    /// 1 for the next to be served among those who want the same files.
    pub place: usize,
    /// Who holds what is waited for.
    pub held_by: Vec<LockView>,
}

/// One link of a circle of agents that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsFor {
    /// Who waits.
    pub session: Name,
    /// What for.
    pub path: String,
    /// Who has it, or is before them in the line.
    pub held_by: Name,
}

impl WaitsFor {
    pub(crate) fn circle(circle: &[Self]) -> String {
        let links = circle
            .iter()
            .map(|link| format!("'{}' waits for '{}' of '{}'", link.session, link.path, link.held_by));
        links.collect::<Vec<_>>().join(", ")
    }
}

impl Locks {
    pub(crate) fn ticket(&self, id: TicketId, session: &Name, scope: &Scope) -> Ticket {
        let held_by = self.overlapping(scope).filter(|lock| lock.session != *session);
        Ticket {
            id,
            path: scope.as_str().to_owned(),
            place: self.line.ahead(id, session, scope).count() + 1,
            held_by: held_by.map(Lock::view).collect(),
        }
    }

    /// The circle that would close if `session` began to wait for `scope`: everybody in it waits for the next, the last
    /// for `session`. None if there is no such circle; the shortest if there are several.
    pub(crate) fn circle_of(&self, session: &Name, scope: &Scope) -> Option<Vec<WaitsFor>> {
        let mut places: BTreeMap<&Name, Vec<(TicketId, &Scope)>> = BTreeMap::new();
        for (id, waiter) in self.line.iter() {
            places.entry(&waiter.session).or_default().push((id, &waiter.scope));
        }
        // Breadth first and without recursion: the line may be as long as it likes.
        let newcomer = [(TicketId(Stamp::MAX), scope)];
        let (mut waiter, mut waits, mut led_by) = (session, newcomer.as_slice(), None);
        let mut links: Vec<Link<'_>> = Vec::new();
        let mut seen = BTreeSet::new();
        loop {
            for (ticket, scope) in waits {
                for held_by in self.in_the_way(waiter, scope, *ticket) {
                    if held_by == session || seen.insert(held_by) {
                        links.push(Link { waiter, scope, held_by, led_by });
                    }
                    if held_by == session {
                        return Some(Link::circle(&links));
                    }
                }
            }
            let next = led_by.map_or(0, |led_by| led_by + 1);
            waiter = links.get(next)?.held_by;
            waits = places.get(waiter).map_or(&[], Vec::as_slice);
            led_by = Some(next);
        }
    }

    /// For whom `waiter`, who waits for `scope` since `ticket`, waits: those who hold it and those who are before it.
    fn in_the_way<'a>(
        &'a self,
        waiter: &'a Name,
        scope: &'a Scope,
        ticket: TicketId,
    ) -> impl Iterator<Item = &'a Name> {
        let holders = self.overlapping(scope).map(|lock| &lock.session);
        let ahead = self.line.ahead(ticket, waiter, scope).map(|(_, ahead)| &ahead.session);
        holders.chain(ahead).filter(move |name| *name != waiter)
    }
}

/// Somebody waits for somebody.
struct Link<'a> {
    waiter: &'a Name,
    scope: &'a Scope,
    held_by: &'a Name,
    /// The link, by its place among those found, whose `held_by` is this one's `waiter`.
    led_by: Option<usize>,
}

impl Link<'_> {
    /// The links that lead to the last one, in order.
    fn circle(links: &[Self]) -> Vec<WaitsFor> {
        let mut circle = Vec::new();
        let mut at = links.last();
        while let Some(link) = at {
            circle.push(WaitsFor {
                session: link.waiter.clone(),
                path: link.scope.as_str().to_owned(),
                held_by: link.held_by.clone(),
            });
            at = link.led_by.map(|led_by| &links[led_by]);
        }
        circle.reverse();
        circle
    }
}

// ---- commands ------------------------------------------------------------------------------------------------------

/// Takes the lock that one's place in the line was served with, or looks how the line stands.
#[derive(Debug, Clone)]
pub struct ClaimTicket {
    /// Whose place.
    pub session: Name,
    /// Which, as the caller wrote it.
    pub ticket: String,
}

impl Rule for ClaimTicket {
    type Reply = Acquired;
    const NAME: &'static str = "lock_claim";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Acquired>, Rejection> {
        project.agent(&self.session)?;
        let locks = &project.locks;
        let not_found = || Rejection::TicketNotFound { ticket: self.ticket.clone() };
        let id = TicketId::parse(&self.ticket).ok_or_else(not_found)?;
        if let Some(waiter) = locks.line.get(id).filter(|waiter| waiter.session == self.session) {
            return Ok(Decision::unchanged(Acquired::Waiting(locks.ticket(
                id,
                &self.session,
                &waiter.scope,
            ))));
        }
        let lock = locks
            .iter()
            .find(|lock| lock.ticket == Some(id) && lock.session == self.session)
            .ok_or_else(not_found)?;
        let grant = Acquired::Granted(lock.grant());
        if lock.claim_by.is_none() {
            return Ok(Decision::unchanged(grant));
        }
        Ok(Decision::event(Event::LockClaimed { scope: lock.scope.clone(), at: now }, grant))
    }
}

/// Gives a place in the line up, and the lock that it was served with if nobody has claimed it yet.
#[derive(Debug, Clone)]
pub struct LeaveLine {
    /// Whose place.
    pub session: Name,
    /// Which, as the caller wrote it.
    pub ticket: String,
}

impl Rule for LeaveLine {
    type Reply = ();
    const NAME: &'static str = "lock_leave_line";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, ()>, Rejection> {
        project.agent(&self.session)?;
        let locks = &project.locks;
        let not_found = || Rejection::TicketNotFound { ticket: self.ticket.clone() };
        let ticket = TicketId::parse(&self.ticket).ok_or_else(not_found)?;
        if locks.line.get(ticket).is_some_and(|waiter| waiter.session == self.session) {
            return Ok(Decision::event(Event::LineLeft { ticket, at: now }, ()));
        }
        // It may have been served meanwhile: whoever leaves does not know that it holds a lock.
        let unclaimed = |lock: &&Lock| {
            lock.ticket == Some(ticket) && lock.session == self.session && lock.claim_by.is_some()
        };
        let lock = locks.iter().find(unclaimed).ok_or_else(not_found)?;
        let released = Event::LockReleased {
            session: self.session.clone(),
            scope: lock.scope.clone(),
            token: lock.token,
            why: Release::Unclaimed,
            at: now,
        };
        Ok(Decision::event(released, ()))
    }
}

// ---- who is next, and what the events mean ---------------------------------------------------------------------------

impl Project {
    /// Whether somebody in the line can be served.
    pub(crate) fn can_promote(&self, now: Timestamp) -> bool {
        !self.locks.line.is_empty() && !self.decide_promotions(now).is_empty()
    }

    /// Serves everybody in the line whom neither a lock nor somebody earlier is in the way of.
    pub(crate) fn decide_promotions(&self, now: Timestamp) -> Vec<Event> {
        let locks = &self.locks;
        let mut events = Vec::new();
        // Those looked at so far, served or not: either way they are in the way of whoever comes later.
        let mut earlier: Vec<&Waiter> = Vec::new();
        let mut token = locks.next_token();
        for (ticket, waiter) in locks.line.iter() {
            let overtaken = earlier
                .iter()
                .any(|before| before.session != waiter.session && before.scope.overlaps(&waiter.scope));
            earlier.push(waiter);
            if overtaken || locks.blocking(&waiter.session, &waiter.scope).is_some() {
                continue;
            }
            events.push(Event::LockGranted {
                session: waiter.session.clone(),
                scope: waiter.scope.clone(),
                path: waiter.path.clone(),
                token,
                change_type: waiter.change_type,
                description: waiter.description.clone(),
                expires_at: waiter.ttl.map(|ttl| later(now, ttl)),
                ticket: Some(ticket),
                claim_by: Some(later(now, self.settings.claim_window)),
                at: now,
            });
            token += 1;
        }
        events
    }

    pub(crate) fn apply_line_joined(&mut self, ticket: TicketId, waiter: Waiter) {
        self.last_stamp = self.last_stamp.max(ticket.0);
        self.locks.line.join(ticket, waiter);
    }

    pub(crate) fn apply_line_left(&mut self, ticket: TicketId) {
        if self.locks.line.leave(ticket) {
            self.promote_line();
        }
    }

    /// Whether nobody waits under this ticket any more: it was served, given up, or its agent is gone.
    pub(crate) fn has_left_line(&self, ticket: TicketId) -> bool {
        self.locks.line.get(ticket).is_none()
    }

    /// Something is free, or somebody left the line: the next tick serves whom it can.
    pub(crate) fn promote_line(&mut self) {
        if !self.locks.line.is_empty() {
            self.soft.wake_at(Timestamp::MIN);
        }
    }
}
