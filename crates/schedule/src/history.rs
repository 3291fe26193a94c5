//! What became of due times that are over, for as long as it is kept.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{Fate, Record, ScheduleId};

/// What became of due times that are over: at most [`History::PER_SCHEDULE`] records of one schedule, and
/// [`History::IN_ALL`] of all schedules of a stream, the newest of each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct History {
    records: BTreeMap<ScheduleId, VecDeque<Record>>,
    /// One entry per record, oldest first, and some for records that are gone already; see `gone`.
    #[serde(skip)]
    order: VecDeque<ScheduleId>,
    /// How many of the oldest entries of `order` stand for records that are gone.
    #[serde(skip)]
    gone: HashMap<ScheduleId, usize>,
    #[serde(skip)]
    len: usize,
}

impl History {
    pub(crate) const PER_SCHEDULE: usize = 100;
    pub(crate) const IN_ALL: usize = 10_000;

    /// The records of `id`, oldest first.
    pub(crate) fn of(&self, id: ScheduleId) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.get(&id).into_iter().flatten()
    }

    /// All records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ScheduleId, &Record)> {
        self.records.iter().flat_map(|(id, records)| records.iter().map(|record| (*id, record)))
    }

    pub(crate) fn add(&mut self, id: ScheduleId, record: Record, keep_after_ms: i64) {
        let records = self.records.entry(id).or_default();
        if let Some(last) = records.back_mut()
            && merge(last, &record)
        {
            return;
        }
        records.push_back(record);
        self.order.push_back(id);
        self.len += 1;
        if records.len() > Self::PER_SCHEDULE {
            records.pop_front();
            *self.gone.entry(id).or_default() += 1;
            self.len -= 1;
        }
        while self.len > Self::IN_ALL || self.oldest().is_some_and(|record| record.at_ms < keep_after_ms) {
            self.drop_oldest();
        }
        if self.order.len() > 2 * Self::IN_ALL {
            self.index();
        }
    }

    pub(crate) fn forget(&mut self, id: ScheduleId) {
        if let Some(records) = self.records.remove(&id) {
            self.len -= records.len();
            *self.gone.entry(id).or_default() += records.len();
        }
    }

    /// Works out anew in which order records go.
    pub(crate) fn index(&mut self) {
        let mut all: Vec<_> = self.iter().map(|(id, record)| (record.at_ms, id)).collect();
        all.sort_by_key(|(at_ms, _)| *at_ms);
        self.len = all.len();
        self.order = all.into_iter().map(|(_, id)| id).collect();
        self.gone.clear();
    }

    fn oldest(&mut self) -> Option<&Record> {
        while let Some(id) = self.order.front() {
            match self.gone.get_mut(id) {
                Some(gone) if *gone > 1 => *gone -= 1,
                Some(_) => {
                    self.gone.remove(id);
                }
                None => break,
            }
            self.order.pop_front();
        }
        self.records.get(self.order.front()?)?.front()
    }

    fn drop_oldest(&mut self) {
        let Some(id) = self.order.pop_front() else {
            self.len = 0;
            return;
        };
        if let Some(records) = self.records.get_mut(&id) {
            records.pop_front();
            if records.is_empty() {
                self.records.remove(&id);
            }
        }
        self.len -= 1;
    }
}

/// Makes `record` part of `last` if both say that due times were skipped for the same reason, one after the other.
fn merge(last: &mut Record, record: &Record) -> bool {
    let Fate::Skipped { why, last_ms, count, or_more } = &mut last.fate else { return false };
    let Fate::Skipped { why: why_too, last_ms: last_too, count: count_too, or_more: more_too } = &record.fate
    else {
        return false;
    };
    if why != why_too || record.due_ms <= *last_ms {
        return false;
    }
    *last_ms = *last_too;
    *count = count.saturating_add(*count_too);
    *or_more |= more_too;
    last.at_ms = record.at_ms;
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SkipReason;

    fn delivered(at_ms: i64) -> Record {
        Record { due_ms: at_ms, at_ms, fate: Fate::Delivered { reply: None }, attempts: 1 }
    }

    fn skipped(due_ms: i64, why: SkipReason) -> Record {
        let fate = Fate::Skipped { why, last_ms: due_ms, count: 1, or_more: false };
        Record { due_ms, at_ms: due_ms, fate, attempts: 0 }
    }

    #[test]
    fn a_busy_schedule_takes_no_room_from_a_quiet_one() {
        let (busy, quiet) = (ScheduleId::new(1), ScheduleId::new(2));
        let mut history = History::default();
        history.add(quiet, delivered(0), i64::MIN);
        for at_ms in 0..100_000 {
            history.add(busy, delivered(at_ms), i64::MIN);
        }
        assert_eq!(history.of(busy).count(), History::PER_SCHEDULE);
        assert_eq!(history.of(quiet).count(), 1);
        assert!(history.order.len() <= 2 * History::IN_ALL);
    }

    #[test]
    fn the_oldest_go_first_by_number_and_by_time() {
        let mut history = History::default();
        for id in 0..=History::IN_ALL as u64 {
            history.add(ScheduleId::new(id), delivered(id.cast_signed()), i64::MIN);
        }
        assert_eq!(history.of(ScheduleId::new(0)).count(), 0);
        assert_eq!(history.of(ScheduleId::new(1)).count(), 1);
        history.add(ScheduleId::new(99_999), delivered(99_999), 5_000);
        assert_eq!(history.of(ScheduleId::new(4_999)).count(), 0);
        assert_eq!(history.of(ScheduleId::new(5_000)).count(), 1);
        history.forget(ScheduleId::new(5_000));
        history.add(ScheduleId::new(99_999), delivered(100_000), 5_002);
        assert_eq!(history.iter().map(|(_, record)| record.at_ms).min(), Some(5_002));
        assert_eq!(history.iter().count(), history.len);
    }

    #[test]
    fn what_was_skipped_in_a_row_is_one_record() {
        let id = ScheduleId::new(1);
        let mut history = History::default();
        for due_ms in 0..5 {
            history.add(id, skipped(due_ms, SkipReason::Overlap), i64::MIN);
        }
        history.add(id, skipped(5, SkipReason::Missed), i64::MIN);
        let records: Vec<_> = history.of(id).collect();
        assert_eq!(records.len(), 2);
        assert_eq!(
            records[0].fate,
            Fate::Skipped { why: SkipReason::Overlap, last_ms: 4, count: 5, or_more: false }
        );
        history.add(
            id,
            Record { due_ms: 6, at_ms: 6, fate: Fate::Dead { error: Arc::from("no") }, attempts: 1 },
            0,
        );
        assert_eq!(history.of(id).count(), 3);
    }
}
