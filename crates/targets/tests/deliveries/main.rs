//! Deliveries to servers that answer by script, and to the parts of our own; one file per kind of target.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

mod server;
mod support;

mod bus;
mod inbox;
mod letta;
mod tool;
mod webhook;
