//! Delivery by hand: kinds of targets that are not delivered when they are due, but when somebody asks for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::{Decide, Decision};

use crate::due::open_for_pass;
use crate::event::Event;
use crate::{OccurrenceId, Rejection, ScheduleId, Timetable};

/// Delivers once all that is due of one kind of target, also what failed before and waits for its next try.
///
/// What somebody delivers already is left to them: of several passes at once each occurrence belongs to one.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The kind of target.
    pub kind: Arc<str>,
}

/// An occurrence that a pass delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Which.
    pub occurrence: OccurrenceId,
    /// To whom.
    pub to: Arc<str>,
    /// How many attempts there were before.
    pub attempts: u32,
}

impl Decide<Pass> for Timetable {
    /// By due time, then by number.
    type Reply = Vec<Passed>;
    const NAME: &'static str = "schedule_pass";

    fn decide(&self, now: Timestamp, command: &Pass) -> Result<Decision<Event, Vec<Passed>>, Rejection> {
        let now_ms = now.as_millisecond();
        let mut events = Vec::new();
        let mut passed = Vec::new();
        for (_, id) in self.index.by_pass.range(..=(now_ms, ScheduleId::new(u64::MAX))) {
            let Some(schedule) = self.get(*id).filter(|schedule| schedule.spec.address.kind == command.kind)
            else {
                continue;
            };
            let opened = open_for_pass(self, *id, schedule, now_ms);
            for event in &opened {
                if let Event::Opened { id, due, .. } = event {
                    let occurrence = OccurrenceId { due_ms: *due, schedule: *id };
                    passed.push(Passed { occurrence, to: schedule.spec.address.to.clone(), attempts: 0 });
                }
            }
            events.extend(opened);
        }
        let waiting = self.index.waiting.iter().map(|(_, occurrence)| occurrence);
        let in_line = self.index.lanes.values().flat_map(|turn| &turn.ready);
        // In an order that follows from the schedules alone.
        let all: BTreeSet<_> = self.index.held.iter().chain(waiting).chain(in_line).collect();
        for occurrence in all {
            let Some(schedule) = self.get(occurrence.schedule) else { continue };
            let Some(open) = schedule.occurrence(occurrence.due_ms) else { continue };
            if schedule.spec.address.kind != command.kind || open.released || open.due_ms > now_ms {
                continue;
            }
            let OccurrenceId { due_ms: due, schedule: id } = *occurrence;
            events.push(Event::Released { id, due, ready: now_ms });
            passed.push(Passed {
                occurrence: *occurrence,
                to: schedule.spec.address.to.clone(),
                attempts: open.attempts,
            });
        }
        passed.sort_by_key(|passed| passed.occurrence);
        Ok(Decision::events(events, passed))
    }
}
