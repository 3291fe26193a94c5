//! What happened in a run, line by line.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// How many lines are kept to be shown with a failure.
const KEPT: usize = 60;

/// The lines of a run. Two runs of one seed have the same lines, and so the same digest.
#[derive(Debug)]
pub struct Trace {
    began: Instant,
    /// Whether every line is shown as it comes.
    shown: bool,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    digest: DefaultHasher,
    latest: VecDeque<String>,
}

impl Trace {
    /// An empty trace that begins now.
    pub fn new(shown: bool) -> Self {
        Self { began: Instant::now(), shown, lines: Mutex::default() }
    }

    /// Notes what happened, with the time since the beginning.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let at = Instant::now().duration_since(self.began).as_millis();
        let line = format!("{:>7}.{:03} {what}", at / 1_000, at % 1_000);
        if self.shown {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        line.hash(&mut lines.digest);
        if lines.latest.len() == KEPT {
            lines.latest.pop_front();
        }
        lines.latest.push_back(line);
    }

    /// A number that differs if any line differs.
    pub fn digest(&self) -> u64 {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).digest.finish()
    }

    /// The latest lines.
    pub fn latest(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.latest.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}
