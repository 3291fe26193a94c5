//! Whatever comes in from outside, made up at random: nothing may crash, hang, or be answered as the server's own fault.
//!
//! A **target** takes bytes, hands them to the part it is named after, and panics if that does what it must not do. Its
//! **seeds**, in `corpus/`, are inputs from which others are made. The same targets are run in two ways:
//!
//! - `cargo xtask fuzz` lets libFuzzer look for inputs that reach code which none has reached before;
//! - the tests of this crate run every seed, everything that was ever found (`corpus/…/found-*`) and a few thousand
//!   changed seeds, always the same.
//!
//! Time is virtual: a call that waits for an hour is answered at once, and one that waits for ever is a finding.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a target reports a finding by panicking"
)]

mod targets;
pub use targets::{Target, all, by_name};

mod world;

mod mutate;
pub use mutate::Mutator;
