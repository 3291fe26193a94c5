//! The program as its users run it: real processes, each test with a home of its own.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

mod bridge;
mod commands;
mod configuration;
mod keys;
mod schedules;
mod server;
mod support;
