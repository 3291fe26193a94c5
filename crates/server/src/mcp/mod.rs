//! The Model Context Protocol, over Streamable HTTP, its deprecated predecessor HTTP+SSE, and stdio.
//!
//! An **endpoint** is what one view looks like to MCP clients: its tools, its name, its instructions. Endpoints are made
//! once per view and shared by every transport.
//!
//! Clients of protocol 2026-07-28 are served without state. Those of earlier protocols get a session if they can read
//! server-sent events and begin with `initialize`, from 2025-11-25 on with streams that can be resumed; all others, such as
//! a bare `curl`, are answered as JSON, statelessly.
//!
//! Where the toolset `bus` is shown, published events are resources, which can be read and subscribed to.
//!
//! Errors that a tool does not answer itself are JSON-RPC errors:
//!
//! | code | meaning |
//! |---|---|
//! | -32700 | the body is not JSON, or nested too deeply |
//! | -32600 | the body is JSON but no request; a bound of the server was exceeded |
//! | -32602 | `Unknown tool: <name>`, or a bad command id |
//! | -32003 | the caller's key is not valid for the toolset or project |
//! | -32000 | the server has too many calls, or is shutting down: call again |
//! | -32603 | the tool failed, a fault of the server |

mod endpoint;
pub(crate) use endpoint::{Endpoint, Lifecycle, Mcp};

mod handler;
pub(crate) use handler::Unstreamed;

mod progress;

mod topics;
pub(crate) use topics::Topics;

mod answer;

mod http;
pub(crate) use http::{default_view, routes};

mod sse;
pub(crate) use sse::{SseSessions, routes as sse_routes};

mod stdio;
pub use stdio::{StdioError, serve_stdio};
