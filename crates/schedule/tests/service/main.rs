//! What may be relied on of the service: what is due is delivered, when it is due, for as long as it is wanted.
//!
//! Time is virtual: it passes when nothing else is left to do, so a test that waits for an instant takes none.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test ends where it cannot go on, and its clock is paused: time passes when nothing else is left to do"
)]

mod delivering;
mod passing;
mod places;
mod stage;
mod steering;
mod stopping;
