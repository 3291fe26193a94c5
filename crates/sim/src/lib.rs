//! The machines and the exchange under virtual time, crashes and races.
//!
//! What runs here is what ships: [`Exchange`](switchboard_exchange::Exchange), the machine of a project and the service
//! over them. What is simulated is everything below and around: a store that refuses, forgets to answer and crashes the
//! node that writes ([`journal`]), clocks that jump and stand still ([`clock`]), and clients that repeat, double and
//! abandon their calls ([`world`]).
//!
//! A run is drawn from its **seed** alone: an even seed has one node, an odd one three nodes on one store. The same seed
//! gives the same run, line by line ([`trace`]).
//!
//! What is checked: each entry as it is written, by a second reading of the journal ([`ledger`]); each reply as it comes,
//! and each node's state at every step, against both ([`checks`]).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a simulation that cannot go on has found something, and stops"
)]

pub mod trace;

pub mod clock;

pub mod journal;

pub mod scopes;

pub mod ledger;

pub mod calls;

pub mod checks;

pub mod world;

pub mod seeds;

pub mod crash;

pub mod schedules;
