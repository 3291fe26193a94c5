//! Who may write which files.
//!
//! ```text
//!            granted                        released · lapsed · holder gone
//!   free ─────────────────▶ held by one ─────────────────────────────────▶ free, or granted to the first in line
//!            granted from the line          not claimed in time
//!   free ─────────────────▶ held, to be claimed ─────────────────────────▶ free, or granted to the next in line
//! ```
//!
//! Two locks are in each other's way if some path is covered by both. Every grant carries a **fencing token**, a number
//! that only grows in a project: whoever holds an older one for the same files has lost them (Kleppmann, "How to do
//! distributed locking", 2016). Time is the journal's: a lease lapses when an event says so, not by each reader's clock.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::agent::later;
use crate::line::{Line, Ticket};
use crate::project::{Project, Rule};
use crate::stamp::Stamp;
use crate::{Change, ChangeType, Event, FilePath, Name, Rejection, Scope, Text, TicketId};

/// How long a lock lasts if it is not renewed: 1 second to 7 days.
///
/// ```
/// # use switchboard_coordination::Ttl;
/// assert_eq!(Ttl::from_seconds(90)?.get().as_secs(), 90);
/// assert_eq!(Ttl::from_seconds(0).unwrap_err().to_string(), "must be 1 to 604800 seconds");
/// # Ok::<(), switchboard_coordination::InvalidTtl>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(SignedDuration);

/// A duration that is no time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {} seconds", Ttl::MAX_SECONDS)]
pub struct InvalidTtl;

impl Ttl {
    const MAX_SECONDS: i64 = 7 * 24 * 60 * 60;

    /// A time to live of `seconds`.
    pub const fn from_seconds(seconds: i64) -> Result<Self, InvalidTtl> {
        if seconds >= 1 && seconds <= Self::MAX_SECONDS {
            Ok(Self(SignedDuration::from_secs(seconds)))
        } else {
            Err(InvalidTtl)
        }
    }

    /// The duration.
    pub const fn get(self) -> SignedDuration {
        self.0
    }
}

/// A lock as the machine keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lock {
    pub(crate) session: Name,
    pub(crate) scope: Scope,
    pub(crate) token: u64,
    pub(crate) locked_at: Timestamp,
    pub(crate) change_type: ChangeType,
    pub(crate) description: Text,
    pub(crate) expires_at: Option<Timestamp>,
    /// The place in the line that it was granted to.
    pub(crate) ticket: Option<TicketId>,
    /// Until when a grant to somebody in the line is to be claimed.
    pub(crate) claim_by: Option<Timestamp>,
}

impl Lock {
    pub(crate) fn view(&self) -> LockView {
        LockView {
            path: self.scope.as_str().to_owned(),
            session: self.session.clone(),
            token: self.token,
            locked_at: self.locked_at,
            change_type: self.change_type,
            description: self.description.clone(),
            expires_at: self.expires_at,
            waiting: false,
        }
    }

    pub(crate) fn grant(&self) -> Grant {
        Grant { path: self.scope.as_str().to_owned(), token: self.token, expires_at: self.expires_at }
    }

    fn ends_at(&self) -> Option<Timestamp> {
        [self.expires_at, self.claim_by].into_iter().flatten().min()
    }
}

/// A lock, or a place in the line for one, as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockView {
    /// What it covers, normalised.
    pub path: String,
    /// Who holds it, or waits for it.
    pub session: Name,
    /// The fencing token; 0 for a place in the line.
    pub token: u64,
    /// Since when it is held or waited for.
    pub locked_at: Timestamp,
    /// What its holder is about to do.
    pub change_type: ChangeType,
    /// In its own words.
    pub description: Text,
    /// When it lapses unless it is renewed; none if it does not.
    pub expires_at: Option<Timestamp>,
    /// Whether this is a place in the line, not a lock.
    pub waiting: bool,
}

/// What the holder of a lock is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it covers, normalised.
    pub path: String,
    /// The fencing token.
    pub token: u64,
    /// When it lapses unless it is renewed; none if it does not.
    pub expires_at: Option<Timestamp>,
}

/// Why a lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// Its holder said so.
    Released,
    /// Its time to live was over.
    Lapsed,
    /// It was granted to somebody in the line who did not come for it.
    Unclaimed,
}

/// All locks of a project, and the line of those who wait.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Locks {
    /// Locks on one file each.
    files: BTreeMap<Arc<str>, Lock>,
    /// Locks on folders and globs.
    patterns: BTreeMap<Arc<str>, Lock>,
    pub(crate) line: Line,
    last_token: u64,
}

impl Locks {
    /// The most locks of one project.
    const MOST: usize = 100_000;

    fn group(&self, scope: &Scope) -> &BTreeMap<Arc<str>, Lock> {
        if scope.is_literal() { &self.files } else { &self.patterns }
    }

    fn group_mut(&mut self, scope: &Scope) -> &mut BTreeMap<Arc<str>, Lock> {
        if scope.is_literal() { &mut self.files } else { &mut self.patterns }
    }

    /// The lock on exactly `scope`.
    pub(crate) fn get(&self, scope: &Scope) -> Option<&Lock> {
        self.group(scope).get(scope.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lock> {
        self.files.values().chain(self.patterns.values())
    }

    fn len(&self) -> usize {
        self.files.len() + self.patterns.len()
    }

    /// The locks that have a path in common with `scope`.
    pub(crate) fn overlapping<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = &'a Lock> {
        let prefix = scope.literal_prefix();
        // Every path under a pattern begins with its prefix, so only that stretch of the ordered files is looked at.
        let files = self
            .files
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(path, _)| path.starts_with(prefix))
            .take(if scope.is_literal() { 1 } else { usize::MAX });
        files.chain(&self.patterns).map(|(_, lock)| lock).filter(|lock| lock.scope.overlaps(scope))
    }

    /// The first lock of somebody else in the way of `session`.
    pub(crate) fn blocking<'a>(&'a self, session: &'a Name, scope: &'a Scope) -> Option<&'a Lock> {
        self.overlapping(scope).find(|lock| lock.session != *session)
    }

    pub(crate) fn next_token(&self) -> u64 {
        self.last_token + 1
    }

    /// Removes what an agent that left held and waited for.
    pub(crate) fn forget(&mut self, session: &Name) {
        self.files.retain(|_, lock| lock.session != *session);
        self.patterns.retain(|_, lock| lock.session != *session);
        self.line.forget(session);
    }

    pub(crate) fn deadlines(&self) -> impl Iterator<Item = Timestamp> {
        self.iter().filter_map(Lock::ends_at)
    }

    /// The lock or the place in the line that keeps `session` from taking `scope` now.
    fn obstacle(&self, session: &Name, scope: &Scope) -> Option<LockView> {
        if let Some(lock) = self.blocking(session, scope) {
            return Some(lock.view());
        }
        // A file under the caller's own folder or pattern is its already: there is nobody to overtake.
        if scope.is_literal() && self.overlapping(scope).next().is_some() {
            return None;
        }
        self.line.ahead_of_newcomer(session, scope).map(|(_, waiter)| waiter.view())
    }
}

// ---- commands ------------------------------------------------------------------------------------------------------

/// Takes a lock, or a place in the line for it.
#[derive(Debug, Clone)]
pub struct Acquire {
    /// Who wants it.
    pub session: Name,
    /// What it is to cover.
    pub scope: Scope,
    /// The path as the agent wrote it.
    pub path: Name,
    /// What the agent is about to do.
    pub change_type: ChangeType,
    /// In its own words.
    pub description: Text,
    /// How long it lasts; none for until it is released or the holder is gone.
    pub ttl: Option<Ttl>,
    /// Whether to wait in line if it is not free.
    pub wait: bool,
}

/// What became of a wish for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acquired {
    /// The caller holds it.
    Granted(Grant),
    /// The caller waits for it.
    Waiting(Ticket),
}

impl Rule for Acquire {
    type Reply = Acquired;
    const NAME: &'static str = "lock_acquire";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Acquired>, Rejection> {
        project.agent(&self.session)?;
        let locks = &project.locks;
        let mine = locks.get(&self.scope).filter(|lock| lock.session == self.session);
        if mine.is_none() {
            if let Some(by) = locks.obstacle(&self.session, &self.scope) {
                return self.decide_blocked(project, by, now);
            }
            if locks.len() >= Locks::MOST {
                return Err(Rejection::Full {
                    what: "the project's list of locks".to_owned(),
                    limit: Locks::MOST,
                    remedy: "release locks, or lock a folder instead of its files",
                });
            }
        }
        // A caller that gets by itself what it waits for has its place in the line served, so that a call that still
        // waits there finds the lock.
        let place = locks.line.place_of(&self.session, &self.scope).map(|(ticket, _)| ticket);
        let granted = Event::LockGranted {
            session: self.session.clone(),
            scope: self.scope.clone(),
            path: self.path.clone(),
            token: mine.map_or_else(|| locks.next_token(), |lock| lock.token),
            change_type: self.change_type,
            description: self.description.clone(),
            expires_at: self.ttl.map(|ttl| later(now, ttl.get())),
            ticket: mine.and_then(|lock| lock.ticket).or(place),
            claim_by: None,
            at: now,
        };
        let grant = Grant {
            path: self.scope.as_str().to_owned(),
            token: mine.map_or_else(|| locks.next_token(), |lock| lock.token),
            expires_at: self.ttl.map(|ttl| later(now, ttl.get())),
        };
        let mut events = vec![granted];
        events.extend(project.notice("file_change_announced", &self.session, now, || {
            format!("Agent {} locked {}", self.session, self.path)
        }));
        Ok(Decision::events(events, Acquired::Granted(grant)))
    }
}

impl Acquire {
    fn decide_blocked(
        &self,
        project: &Project,
        by: LockView,
        now: Timestamp,
    ) -> Result<Decision<Event, Acquired>, Rejection> {
        let locks = &project.locks;
        if !self.wait {
            return Err(Rejection::Locked { path: self.path.as_str().to_owned(), by: Box::new(by) });
        }
        if let Some((id, _)) = locks.line.place_of(&self.session, &self.scope) {
            // Asking again keeps the place.
            return Ok(Decision::unchanged(Acquired::Waiting(locks.ticket(id, &self.session, &self.scope))));
        }
        if let Some(circle) = locks.circle_of(&self.session, &self.scope) {
            return Err(Rejection::Deadlock { circle });
        }
        locks.line.check_room()?;
        let ticket = TicketId(Stamp::next(now, project.last_stamp));
        let joined = Event::LineJoined {
            ticket,
            session: self.session.clone(),
            scope: self.scope.clone(),
            path: self.path.clone(),
            change_type: self.change_type,
            description: self.description.clone(),
            ttl: self.ttl.map(Ttl::get),
            at: now,
        };
        let ticket = locks.ticket(ticket, &self.session, &self.scope);
        Ok(Decision::event(joined, Acquired::Waiting(ticket)))
    }
}

/// Gives a lock back.
#[derive(Debug, Clone)]
pub struct ReleaseLock {
    /// Who gives it back.
    pub session: Name,
    /// What it covers.
    pub scope: Scope,
    /// The fencing token, to be sure that it is still the same grant.
    pub token: Option<u64>,
}

/// What became of the wish to give a lock back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Released {
    /// It is free.
    Released,
    /// It was free.
    NotLocked,
}

impl Rule for ReleaseLock {
    type Reply = Released;
    const NAME: &'static str = "lock_release";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Released>, Rejection> {
        project.agent(&self.session)?;
        let Some(lock) = project.locks.get(&self.scope) else {
            return Ok(Decision::unchanged(Released::NotLocked));
        };
        check_holder(lock, &self.session, self.token)?;
        let mut events = vec![Event::LockReleased {
            session: self.session.clone(),
            scope: self.scope.clone(),
            token: lock.token,
            why: Release::Released,
            at: now,
        }];
        events.extend(project.notice("file_lock_released", &self.session, now, || {
            format!("Agent {} released {}", self.session, self.scope)
        }));
        Ok(Decision::events(events, Released::Released))
    }
}

fn check_holder(lock: &Lock, session: &Name, token: Option<u64>) -> Result<(), Rejection> {
    let path = lock.scope.as_str().to_owned();
    if lock.session != *session {
        return Err(Rejection::NotTheHolder { path, lock: Box::new(lock.view()) });
    }
    match token {
        Some(given) if given != lock.token => {
            Err(Rejection::StaleToken { path, given, current: Box::new(lock.grant()) })
        }
        _ => Ok(()),
    }
}

/// Keeps a lock for longer.
#[derive(Debug, Clone)]
pub struct RenewLock {
    /// Who holds it.
    pub session: Name,
    /// What it covers.
    pub scope: Scope,
    /// The fencing token, to be sure that it is still the same grant.
    pub token: Option<u64>,
    /// How long from now; none for until it is released.
    pub ttl: Option<Ttl>,
}

impl Rule for RenewLock {
    type Reply = Grant;
    const NAME: &'static str = "lock_renew";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Grant>, Rejection> {
        project.agent(&self.session)?;
        let lock = project
            .locks
            .get(&self.scope)
            .ok_or_else(|| Rejection::NotLocked { path: self.scope.as_str().to_owned() })?;
        check_holder(lock, &self.session, self.token)?;
        let expires_at = self.ttl.map(|ttl| later(now, ttl.get()));
        let renewed = Event::LockRenewed { scope: self.scope.clone(), expires_at, at: now };
        Ok(Decision::event(renewed, Grant { expires_at, ..lock.grant() }))
    }
}

/// May `session` write `path` now?
#[derive(Debug, Clone)]
pub struct CheckWrite {
    /// Who wants to write. Need not be registered; none stands for somebody who holds no lock.
    pub session: Option<Name>,
    /// What it wants to write.
    pub path: FilePath,
    /// The fencing token under which it believes to hold the path.
    pub token: Option<u64>,
    /// Whether a path that nobody holds may not be written either.
    pub must_hold: bool,
}

/// Whether a path may be written, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayWrite {
    /// Whether it may.
    pub allowed: bool,
    /// Why.
    pub reason: WriteReason,
    /// The lock that decides; none if there is none.
    pub lock: Option<LockView>,
}

/// Why a path may be written or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteReason {
    /// Allowed: the caller holds it.
    Yours,
    /// Allowed, unless a lock is asked for: nobody holds it.
    Free,
    /// Not allowed: another agent holds it.
    LockedByOther,
    /// Not allowed: the caller holds it by a newer grant than it thinks, so somebody else may have written since.
    StaleToken,
}

impl Rule for CheckWrite {
    type Reply = MayWrite;
    const NAME: &'static str = "lock_check";

    fn speaker(&self) -> Option<&Name> {
        self.session.as_ref()
    }

    fn decide(&self, project: &Project, _now: Timestamp) -> Result<Decision<Event, MayWrite>, Rejection> {
        let scope = Scope::literal(self.path.clone());
        let is_mine = |lock: &&Lock| self.session.as_ref() == Some(&lock.session);
        let foreign = project.locks.overlapping(&scope).find(|lock| !is_mine(lock));
        let mut mine = project.locks.overlapping(&scope).filter(is_mine).peekable();
        let (allowed, reason, lock) = match (foreign, mine.peek().copied()) {
            (Some(foreign), _) => (false, WriteReason::LockedByOther, Some(foreign)),
            (None, Some(lock)) => match self.token {
                Some(token) if !mine.any(|lock| lock.token == token) => {
                    (false, WriteReason::StaleToken, Some(lock))
                }
                _ => (true, WriteReason::Yours, Some(lock)),
            },
            // A token without a lock: the lease is over, whatever the caller believes.
            (None, None) if self.token.is_some() => (false, WriteReason::StaleToken, None),
            (None, None) => (!self.must_hold, WriteReason::Free, None),
        };
        Ok(Decision::unchanged(MayWrite { allowed, reason, lock: lock.map(Lock::view) }))
    }
}

/// All locks and the line for them.
#[derive(Debug, Clone)]
pub struct ListLocks {
    /// Only those that have a path in common with this.
    pub within: Option<Scope>,
}

/// All locks and the line for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockList {
    /// Locks on files, then on patterns, each by path.
    pub held: Vec<LockView>,
    /// Who waits, first come first.
    pub waiting: Vec<LockView>,
}

impl Rule for ListLocks {
    type Reply = LockList;
    const NAME: &'static str = "lock_list";

    fn decide(&self, project: &Project, _now: Timestamp) -> Result<Decision<Event, LockList>, Rejection> {
        let locks = &project.locks;
        let held = match &self.within {
            Some(scope) => locks.overlapping(scope).map(Lock::view).collect(),
            None => locks.iter().map(Lock::view).collect(),
        };
        let waiting = locks
            .line
            .iter()
            .filter(|(_, waiter)| self.within.as_ref().is_none_or(|scope| scope.overlaps(&waiter.scope)))
            .map(|(_, waiter)| waiter.view())
            .collect();
        Ok(Decision::unchanged(LockList { held, waiting }))
    }
}

// ---- time, and what the events mean ----------------------------------------------------------------------------------

impl Project {
    pub(crate) fn decide_lapses(&self, now: Timestamp) -> Vec<Event> {
        let over = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        self.locks
            .iter()
            .filter_map(|lock| {
                let why = if over(lock.claim_by) {
                    Release::Unclaimed
                } else if over(lock.expires_at) {
                    Release::Lapsed
                } else {
                    return None;
                };
                Some(Event::LockReleased {
                    session: lock.session.clone(),
                    scope: lock.scope.clone(),
                    token: lock.token,
                    why,
                    at: now,
                })
            })
            .collect()
    }

    pub(crate) fn apply_granted(&mut self, lock: Lock, path: &Name) {
        self.remember_change(Change {
            session: lock.session.clone(),
            path: path.clone(),
            change_type: lock.change_type,
            description: lock.description.clone(),
            at: lock.locked_at,
        });
        self.locks.last_token = self.locks.last_token.max(lock.token);
        if let Some(ticket) = lock.ticket {
            self.locks.line.leave(ticket);
            if lock.claim_by.is_some() {
                self.tell_granted(&lock, ticket);
            }
        }
        // Somebody who holds a lock need not wait for it.
        self.locks.line.leave_scope(&lock.session, &lock.scope);
        if let Some(ends_at) = lock.ends_at() {
            self.soft.wake_at(ends_at);
        }
        let replaced = self.locks.group_mut(&lock.scope).insert(lock.scope.as_str().into(), lock);
        if let Some(before) = replaced {
            self.untell_granted(&before);
        }
    }

    pub(crate) fn apply_renewed(&mut self, scope: &Scope, expires_at: Option<Timestamp>) {
        self.apply_claimed(scope);
        if let Some(lock) = self.locks.group_mut(scope).get_mut(scope.as_str()) {
            lock.expires_at = expires_at;
        }
        if let Some(expires_at) = expires_at {
            self.soft.wake_at(expires_at);
        }
    }

    pub(crate) fn apply_claimed(&mut self, scope: &Scope) {
        if let Some(lock) = self.locks.group_mut(scope).get_mut(scope.as_str()) {
            lock.claim_by = None;
            let claimed = lock.clone();
            self.untell_granted(&claimed);
        }
    }

    pub(crate) fn apply_released(&mut self, scope: &Scope) {
        if let Some(lock) = self.locks.group_mut(scope).remove(scope.as_str()) {
            self.untell_granted(&lock);
            self.promote_line();
        }
    }
}
