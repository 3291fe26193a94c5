//! What became of due times that are over, for as long as it is kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{Fate, Record, ScheduleId};

/// What became of due times that are over: at most [`History::PER_SCHEDULE`] records of one schedule, and
/// [`History::IN_ALL`] of all schedules of a stream, the newest of each.
///
/// Which record goes follows from those that are kept, not from how they came: a node that read a snapshot drops the same
/// as one that saw every entry.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct History {
    records: BTreeMap<ScheduleId, VecDeque<Record>>,
    /// When the first record of each schedule was over, the oldest first.
    #[serde(skip)]
    oldest: BTreeSet<(i64, ScheduleId)>,
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
        let first = records.front().map(|first| first.at_ms);
        if !records.back_mut().is_some_and(|last| merge(last, &record)) {
            records.push_back(record);
            self.len += 1;
            if records.len() > Self::PER_SCHEDULE {
                records.pop_front();
                self.len -= 1;
            }
        }
        self.replace_first(id, first);
        while self.len > Self::IN_ALL || self.oldest.first().is_some_and(|(at_ms, _)| *at_ms < keep_after_ms)
        {
            self.drop_oldest();
        }
    }

    pub(crate) fn forget(&mut self, id: ScheduleId) {
        if let Some(records) = self.records.remove(&id) {
            self.len -= records.len();
            if let Some(first) = records.front() {
                self.oldest.remove(&(first.at_ms, id));
            }
        }
    }

    /// Works out anew in which order records go.
    pub(crate) fn index(&mut self) {
        let first = |(id, records): (&ScheduleId, &VecDeque<Record>)| Some((records.front()?.at_ms, *id));
        self.oldest = self.records.iter().filter_map(first).collect();
        self.len = self.records.values().map(VecDeque::len).sum();
    }

    /// Notes the first record of `id`, where that of `before` was noted.
    fn replace_first(&mut self, id: ScheduleId, before: Option<i64>) {
        let first = self.records.get(&id).and_then(VecDeque::front).map(|first| first.at_ms);
        if first == before {
            return;
        }
        if let Some(before) = before {
            self.oldest.remove(&(before, id));
        }
        self.oldest.extend(first.map(|first| (first, id)));
    }

    fn drop_oldest(&mut self) {
        let Some((at_ms, id)) = self.oldest.first().copied() else {
            self.len = 0;
            return;
        };
        if let Some(records) = self.records.get_mut(&id) {
            records.pop_front();
            self.len -= 1;
            if records.is_empty() {
                self.records.remove(&id);
            }
        }
        self.replace_first(id, Some(at_ms));
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
        assert_eq!(history.oldest.len(), 2);
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
