//! The rules of schedules, as scripts of commands and what happens.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a script that cannot be read is a failed test")]

mod script;

mod changes;
mod claims;
mod missed;
mod overlap;
mod passes;
mod retries;
mod timing;
