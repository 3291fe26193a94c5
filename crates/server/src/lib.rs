//! The doors: MCP, REST, events, health and metrics.
//!
//! A door turns a request into a call of a tool or a look at a stream, and the answer into what its protocol says. It
//! decides nothing: who may hold a lock stands in the machines behind the tools.
//!
//! # How a program opens the doors
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use switchboard_server::{App, Listener, Options, Parts, ServeError, serve};
//! # use tokio_util::sync::CancellationToken;
//! # async fn start(parts: Parts, stop: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
//! let app = App::new(parts, Options::default());
//! let listeners = vec![
//!     Listener::bind("127.0.0.1:4100".parse()?)?,
//!     // What existing clients of A2AMCP expect at their address.
//!     Listener::bind("127.0.0.1:5000".parse()?)?.showing(app.view("a2amcp")?),
//! ];
//! for listener in &listeners {
//!     tracing::info!("listening on http://{}", listener.address());
//! }
//! serve(&app, listeners, stop).await?; // until `stop` is cancelled, and everything is answered
//! # Ok(())
//! # }
//! ```
//!
//! `stop` is cancelled on SIGTERM and Ctrl-C. The exchanges are stopped after `serve` returned, so that calls that are
//! running still get their answers. The library behind MCP logs every stateless request at `info` and every JSON-RPC
//! error at `warn`: programs filter the target `rmcp` to `error`.

mod serve;
pub use serve::{Listener, ServeError, serve};

mod app;
pub use app::{App, Options, Parts};

mod limits;
pub use limits::Limits;

mod routes;

mod guard;

mod mcp;
pub use mcp::{StdioError, serve_stdio};

mod conformance;
pub use conformance::CONFORMANCE;

mod a2amcp;

mod rest;

mod extract;

mod health;

mod metrics;

mod calls;

mod problem;
