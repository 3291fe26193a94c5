//! What an exchange promises, with a machine that counts, a clock that is set by hand, and a journal that fails on
//! demand.

#![allow(missing_docs, reason = "a test's name says what it protects")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot have is a failed test")]

mod stage;

mod bounds;
mod cluster;
mod damage;
mod deadlines;
mod durability;
mod faults;
mod leaving;
mod repeats;
mod watching;
