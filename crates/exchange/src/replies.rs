//! First replies, kept for a while, so that a repeated command has no second effect.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::CommandId;
use crate::command::FirstReply;

/// A first reply and when it was given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Remembered {
    at: Timestamp,
    reply: FirstReply,
}

/// The first replies of one stream. The same after every replay: what is forgotten follows from the times journalled.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    by_id: HashMap<CommandId, Remembered>,
    oldest_first: VecDeque<(Timestamp, CommandId)>,
}

impl Replies {
    /// The most that one stream remembers, whatever the window.
    const MOST: usize = 4_096;

    pub(crate) fn get(&self, id: &CommandId) -> Option<&FirstReply> {
        self.by_id.get(id).map(|remembered| &remembered.reply)
    }

    pub(crate) fn remember(&mut self, at: Timestamp, reply: FirstReply) {
        self.oldest_first.push_back((at, reply.id.clone()));
        self.by_id.insert(reply.id.clone(), Remembered { at, reply });
    }

    pub(crate) fn forget(&mut self, now: Timestamp, window: SignedDuration) {
        while let Some((at, id)) = self.oldest_first.front() {
            if self.oldest_first.len() <= Self::MOST && now.duration_since(*at) <= window {
                return;
            }
            // An id that was used again after its window is remembered by its later use: a replay sees both.
            if self.by_id.get(id).is_some_and(|remembered| remembered.at == *at) {
                self.by_id.remove(id);
            }
            self.oldest_first.pop_front();
        }
    }

    pub(crate) fn to_snapshot(&self) -> Vec<Remembered> {
        self.oldest_first
            .iter()
            .filter_map(|(at, id)| self.by_id.get(id).filter(|remembered| remembered.at == *at).cloned())
            .collect()
    }

    pub(crate) fn from_snapshot(remembered: Vec<Remembered>) -> Self {
        let mut replies = Self::default();
        for Remembered { at, reply } in remembered {
            replies.remember(at, reply);
        }
        replies
    }
}
