//! The rules of a project, each as a story: commands at given times, and what is answered and happens.
//!
//! [`script::check`] explains the language. Times and ids begin at 0, so `todo-5.000000` is what was added at `5s`.

#![allow(missing_docs, reason = "a test's name says what it protects")]
#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT` writes them")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a story that cannot be read is a failed test")]

mod script;

mod agents;
mod changes;
mod interfaces;
mod limits;
mod line;
mod liveness;
mod locks;
mod messages;
mod questions;
mod todos;
