//! The real server under real clients, each with a connection of its own.
//!
//! [`kill`] ends it with `kill -9` under load, starts it again on the same data and compares what it says with what it
//! had acknowledged. [`kill_schedules`] does the same while wake-up calls are due. [`race`] lets clients want one lock at the same instant and counts the winners.
//!
//! A process that is killed loses what it holds in memory, not what it wrote: the kernel keeps that. What survives a
//! power cut is up to the journal's syncs, which are tested beside it.
//!
//! A **team** is a project of the server with its agents. An agent's **ledger** is what the server acknowledged to it, and
//! the one **call** at most whose answer it never saw.

mod server;
pub use server::{Server, binary};

mod client;

mod call;

mod ledger;

mod team;

mod inspect;

pub mod kill;

mod receiver;

mod planner;

pub mod kill_schedules;

pub mod race;

/// Why a run ended early, or what the server did that it must not do.
#[derive(Debug, thiserror::Error)]
pub enum Torment {
    /// The connection ended before the answer was complete. Expected of a server that was killed.
    #[error("the server was gone before it answered: {0}")]
    Lost(#[source] std::io::Error),
    /// The server broke a promise.
    #[error("{0}")]
    Broken(String),
    /// The run itself could not go on.
    #[error("{doing}: {cause}")]
    Stuck {
        /// What was tried.
        doing: String,
        /// Why it failed.
        #[source]
        cause: std::io::Error,
    },
}

impl Torment {
    fn broken(what: impl Into<String>) -> Self {
        Self::Broken(what.into())
    }

    fn stuck(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::Stuck { doing, cause }
    }
}

type Outcome<T = ()> = Result<T, Torment>;
