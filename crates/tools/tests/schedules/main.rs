//! The tools of schedules on a clock of the test's own: what takes minutes elsewhere.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod world;

mod agtos;
mod promptyoself;
