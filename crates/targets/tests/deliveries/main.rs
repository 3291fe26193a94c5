//! Deliveries to servers that answer by script; one file per kind of target.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

mod support;

mod letta;
mod webhook;
