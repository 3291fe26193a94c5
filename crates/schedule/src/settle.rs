//! What comes of deliveries.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use switchboard_exchange::{Decide, Decision};

use crate::due::{end_after, retry_of};
use crate::event::Event;
use crate::timetable::Schedule;
use crate::{NodeId, Occurrence, OccurrenceId, Outcome, Rejection, ScheduleId, SkipReason, Timetable};

/// Says what came of deliveries that a node had claimed.
///
/// A success counts whoever reports it and however late; a failure only if the node still has the claim under which it
/// tried, since otherwise somebody else tries already. What is closed stays as it is, so a report can be repeated.
#[derive(Debug, Clone)]
pub struct Settle {
    /// Who delivered.
    pub node: NodeId,
    /// What came of it.
    pub attempts: Vec<Attempt>,
}

/// One attempt, and what came of it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// To deliver what.
    pub occurrence: OccurrenceId,
    /// Which attempt it was; the first is 1.
    pub number: u32,
    /// What came of it.
    pub outcome: Outcome,
}

impl Decide<Settle> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_settle";

    fn decide(&self, now: Timestamp, command: &Settle) -> Result<Decision<Event, ()>, Rejection> {
        let at = now.as_millisecond();
        let mut events = Vec::with_capacity(command.attempts.len());
        // Whether a schedule is over depends on what was settled before in the same report.
        let mut later: HashMap<ScheduleId, Schedule> = HashMap::new();
        for attempt in &command.attempts {
            let OccurrenceId { due_ms, schedule: id } = attempt.occurrence;
            let Some(schedule) = later.get(&id).or_else(|| self.get(id)) else { continue };
            let Some(open) = schedule.occurrence(due_ms) else { continue };
            let settled = self.settle(schedule, open, &command.node, attempt, at);
            if !settled.is_empty() {
                let mut after = schedule.clone();
                after.settled(due_ms, &settled);
                later.insert(id, after);
            }
            events.extend(settled);
        }
        Ok(Decision::events(events, ()))
    }
}

/// Gives back what a node had claimed and did not begin because it was called off.
#[derive(Debug, Clone)]
pub(crate) struct Return {
    /// Who had claimed it.
    pub(crate) node: NodeId,
    /// What, and for which attempt.
    pub(crate) claims: Vec<(OccurrenceId, u32)>,
}

impl Decide<Return> for Timetable {
    type Reply = ();
    const NAME: &'static str = "schedule_return";

    fn decide(&self, now: Timestamp, command: &Return) -> Result<Decision<Event, ()>, Rejection> {
        // Whoever reads its claims anew after a fault gives back again what it gave back before.
        let claims: BTreeSet<_> = command.claims.iter().copied().collect();
        let withdrawn = claims.into_iter().filter_map(|(occurrence, attempt)| {
            let OccurrenceId { due_ms: due, schedule: id } = occurrence;
            let schedule = self.get(id)?;
            let open = schedule.occurrence(due).filter(|open| schedule.is_called_off(open))?;
            let claims = open.claimed_by.as_ref() == Some(&command.node) && open.attempts == attempt;
            let why = SkipReason::Cancelled;
            claims.then_some(Event::Withdrawn { id, due, why, at: now.as_millisecond() })
        });
        Ok(Decision::events(withdrawn.collect::<Vec<_>>(), ()))
    }
}

impl Timetable {
    fn settle(
        &self,
        schedule: &Schedule,
        open: &Occurrence,
        node: &NodeId,
        attempt: &Attempt,
        at: i64,
    ) -> Vec<Event> {
        let OccurrenceId { due_ms: due, schedule: id } = attempt.occurrence;
        match &attempt.outcome {
            Outcome::Delivered { reply } => {
                let reply = reply.as_deref().map(cut);
                let mut events = vec![Event::Delivered { id, due, at, reply }];
                events.extend(end_after(schedule, id, open, true, at));
                events
            }
            Outcome::Failed { .. }
                if open.claimed_by.as_ref() != Some(node) || open.attempts != attempt.number =>
            {
                Vec::new()
            }
            Outcome::Failed { error, permanent, retry_after } => {
                let goes_on = schedule.status.is_live() && !permanent;
                let pause = retry_of(self, schedule).pause_ms(attempt.occurrence, open.attempts);
                let pause = pause.filter(|_| goes_on).map(|pause| {
                    let asked = retry_after
                        .map_or(0, |after| i64::try_from(after.as_millis()).unwrap_or(MAX_PAUSE_MS));
                    pause.max(asked).min(MAX_PAUSE_MS)
                });
                let retry = pause.map(|pause| at.saturating_add(pause));
                let mut events = vec![Event::Failed { id, due, at, error: cut(error), retry }];
                if retry.is_none() {
                    events.extend(end_after(schedule, id, open, false, at));
                }
                events
            }
        }
    }
}

/// The longest pause that a target can ask for: one day, in milliseconds.
const MAX_PAUSE_MS: i64 = 86_400_000;

/// `text`, at most [`Outcome::MAX_REPLY`] bytes of it.
fn cut(text: &str) -> Arc<str> {
    let end = (0..=Outcome::MAX_REPLY.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].into()
}
