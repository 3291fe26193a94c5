//! What agents said they would change, newest last.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::project::{Project, Rule};
use crate::{Event, Name, Rejection, Text};

/// What an agent is about to do with a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeType {
    /// Make it.
    Create,
    /// Change it.
    #[default]
    Modify,
    /// Remove it.
    Delete,
    /// Change its shape, not its meaning.
    Refactor,
}

/// One grant of a lock, remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Who got the lock.
    pub session: Name,
    /// The path as the agent wrote it.
    pub path: Name,
    /// What it was about to do.
    pub change_type: ChangeType,
    /// In its own words.
    pub description: Text,
    /// When.
    pub at: Timestamp,
}

/// The latest changes, newest first.
#[derive(Debug, Clone)]
pub struct RecentChanges {
    /// How many at most; no more than [`RecentChanges::KEPT`] are kept.
    pub limit: usize,
    /// Only those no older than this.
    pub within: Option<SignedDuration>,
}

impl RecentChanges {
    /// How many changes a project remembers.
    pub const KEPT: usize = 100;
}

impl Rule for RecentChanges {
    type Reply = Vec<Change>;
    const NAME: &'static str = "change_list";

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Vec<Change>>, Rejection> {
        let recent =
            |change: &&Change| self.within.is_none_or(|within| now.duration_since(change.at) <= within);
        let changes = project.changes.iter().rev().filter(recent).take(self.limit).cloned().collect();
        Ok(Decision::unchanged(changes))
    }
}

impl Project {
    pub(crate) fn remember_change(&mut self, change: Change) {
        if self.changes.len() == RecentChanges::KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }
}
