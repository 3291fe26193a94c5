//! The doors as clients find them: a real server on a real port, and a real HTTP client.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails a test")]

mod journal;
mod support;

mod addresses;
mod bus;
mod guard;
mod limits;
mod mcp_http;
mod rest;
mod schedules;
mod sse;
