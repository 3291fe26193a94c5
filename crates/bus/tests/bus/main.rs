//! What may be relied on of the bus: its rules, its service, and its patterns.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test ends where it cannot go on, and its clock is paused: time passes when nothing else is left to do"
)]

mod patterns;
mod retention;
mod rules;
mod service;
mod stage;
mod throughput;
