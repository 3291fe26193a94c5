//! MCP over the standard streams of this process.

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio_pipes;
use switchboard_access::Caller;
use switchboard_tools::{Session, ViewError};
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use crate::app::App;

/// Why MCP over the standard streams did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// There is no such view.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The client did not introduce itself as MCP asks.
    #[error("the MCP client at the other end of the standard streams did not begin as MCP asks: {0}")]
    Handshake(#[source] Box<ServerInitializeError>),
}

/// Serves the view called `view` over standard input and output until the client closes them, or until `stop`.
/// Nothing else may write to standard output meanwhile.
pub async fn serve_stdio(app: &App, view: &str, stop: CancellationToken) -> Result<(), StdioError> {
    let endpoint = app.core.mcp.endpoint(view)?;
    let handler = Handler::new(endpoint.shown.clone(), app.core.calls.clone(), Caller::local())
        .over(Session::stdio("stdio"));
    let session = match serve_server_with_ct(handler, stdio_pipes(), stop).await {
        Ok(session) => session,
        // Whoever opens and closes the streams without a word wanted nothing.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(Box::new(error))),
    };
    // The library withdraws what is under way when the client is gone or `stop` comes, and waits for the last answers.
    let _ = session.waiting().await;
    Ok(())
}
