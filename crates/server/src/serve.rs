//! Listeners, connections, and what every request passes before its route.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use switchboard_access::Caller;
use switchboard_tools::{View, ViewError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::app::{App, Core};
use crate::guard::Guard;
use crate::limits::Limits;
use crate::mcp::Endpoint;
use crate::metrics::OneMore;
use crate::problem::Problem;
use crate::routes;

/// An address that is listened on, and what is shown there.
#[derive(Debug)]
pub struct Listener {
    tcp: std::net::TcpListener,
    address: SocketAddr,
    view: View,
    requires_key: bool,
}

impl Listener {
    /// Listens on `address` at once; connections wait until [`serve`] takes them. All tools are shown.
    ///
    /// An address that other machines can reach is served only to holders of a key.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let listen = || {
            let tcp = std::net::TcpListener::bind(address)?;
            let address = tcp.local_addr()?;
            Ok((tcp, address))
        };
        let (tcp, address) = listen().map_err(|source| ServeError::Bind { address, source })?;
        Ok(Self { tcp, address, view: View::ALL, requires_key: !address.ip().is_loopback() })
    }

    /// Shows `view` at `/mcp`. A listener that shows the toolset `a2amcp` alone has the routes of that system and no
    /// others, so that its clients connect unchanged.
    #[must_use]
    pub fn showing(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// Asks every request for a key, also on this machine's own addresses.
    #[must_use]
    pub fn requiring_key(self) -> Self {
        Self { requires_key: true, ..self }
    }

    /// Where it listens; the port is the real one if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Why the doors do not open.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A listener shows a view that does not exist.
    #[error("the listener on {address} cannot show its view: {source}")]
    View {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: ViewError,
    },
}

/// What the routes of one listener share.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) app: Arc<Core>,
    /// What `/mcp` shows here.
    pub(crate) endpoint: Arc<Endpoint>,
}

/// One listener that is open.
struct Entrance {
    app: Arc<Core>,
    router: Router,
    guard: Guard,
    address: SocketAddr,
    requests: Semaphore,
    connections: Arc<Semaphore>,
}

/// Serves `app` on `listeners` until `stop`; then takes no more connections, answers what is running or waiting, ends
/// what streams, and returns, at the latest after [`Limits::stop_timeout`].
///
/// An app is served once: what was stopped stays so.
pub async fn serve(app: &App, listeners: Vec<Listener>, stop: CancellationToken) -> Result<(), ServeError> {
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let mut accepting = Vec::new();
    for listener in listeners {
        let (entrance, tcp) = open(app, listener)?;
        accepting.push(accept(Arc::new(entrance), tcp, connections.clone(), stop.clone(), abort.clone()));
    }
    futures::future::join_all(accepting).await;
    connections.close();

    let limit = app.core.options.limits.stop_timeout;
    app.core.stop.cancel();
    let ended = tokio::time::timeout(limit, async {
        answered(&app.core).await;
        app.core.close.cancel();
        connections.wait().await;
    })
    .await;
    if ended.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut: they did not end in time");
        app.core.close.cancel();
    }
    abort.cancel();
    connections.wait().await;
    Ok(())
}

fn open(app: &App, listener: Listener) -> Result<(Entrance, TcpListener), ServeError> {
    let Listener { tcp, address, view, requires_key } = listener;
    let bind = |source| ServeError::Bind { address, source };
    tcp.set_nonblocking(true).map_err(bind)?;
    let tcp = TcpListener::from_std(tcp).map_err(bind)?;
    let core = app.core.clone();
    let endpoint =
        core.mcp.endpoint(&view.to_string()).map_err(|source| ServeError::View { address, source })?;
    let guard =
        Guard::new(core.allowed.clone(), core.access.clone(), core.options.owner_token.clone(), requires_key);
    let limits = &core.options.limits;
    let entrance = Entrance {
        requests: Semaphore::new(limits.requests),
        connections: Arc::new(Semaphore::new(limits.connections)),
        router: routes::of(Door { app: core.clone(), endpoint }),
        app: core,
        guard,
        address,
    };
    Ok((entrance, tcp))
}

/// Resolves once no call runs.
async fn answered(core: &Core) {
    // Calls end by themselves within a second of `stop`; nothing tells when the last one does.
    while core.calls.running() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn accept(
    entrance: Arc<Entrance>,
    tcp: TcpListener,
    connections: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = tcp.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, address = %entrance.address, "a connection was not accepted");
                // Out of file descriptors, most likely: some connection has to end first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // With Nagle's algorithm every event of a stream waits for the client's acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let Ok(place) = entrance.connections.clone().try_acquire_owned() else {
            connections.spawn(turn_away(stream, entrance.app.options.limits.connections));
            continue;
        };
        // Boxed, since the task would hold it twice over.
        let serving = Box::pin(connect(entrance.clone(), stream, stop.clone()));
        let abort = abort.clone();
        connections.spawn(async move {
            abort.run_until_cancelled(serving).await;
            drop(place);
        });
    }
}

/// Tells a client that there are too many connections.
async fn turn_away(mut stream: TcpStream, limit: usize) {
    let body = format!(
        r#"{{"error":{{"code":"busy","message":"{limit} connections are open, the most this address takes (limits.connections)"}}}}"#
    );
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let say = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), say).await;
}

async fn connect(entrance: Arc<Entrance>, stream: TcpStream, stop: CancellationToken) {
    let _counted = OneMore::of(&entrance.app.metrics.gauges().connections);
    let own = stream.local_addr().ok().map(|address| address.ip());
    let builder = http_of(&entrance.app.options.limits);
    let service = service_fn(move |request| {
        let entrance = entrance.clone();
        async move { Ok::<_, Infallible>(entrance.answer(request, own).await) }
    });
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

fn http_of(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // What is a little over the limits still gets an answer that says so; see `check_headers`.
    let buffer = limits.header_bytes.saturating_mul(4).max(64 << 10);
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout).max_buf_size(buffer);
    if limits.headers >= HYPER_HEADERS {
        // Above its own number the library keeps them on the heap, which costs time.
        http1.max_headers(limits.headers.saturating_mul(2));
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .max_header_list_size(u32::try_from(buffer).unwrap_or(u32::MAX));
    builder
}

/// How many header lines the HTTP library takes if it is told nothing.
const HYPER_HEADERS: usize = 100;

impl Entrance {
    async fn answer(&self, request: Request<Incoming>, own: Option<IpAddr>) -> Response {
        let route = routes::label(request.uri().path());
        let response = self.pass(request, own).await;
        self.app.metrics.answered(route, response.status().as_u16());
        response
    }

    /// Everything a request must pass, and its route.
    async fn pass(&self, request: Request<Incoming>, own: Option<IpAddr>) -> Response {
        let caller = match self.admit(&request, own) {
            Ok(caller) => caller,
            Err(problem) => return problem.into_response(),
        };
        let Ok(_place) = self.requests.try_acquire() else {
            let limit = self.app.options.limits.requests;
            let message =
                format!("{limit} requests are being answered, the most this address takes (limits.requests)");
            return Problem::busy(message).into_response();
        };
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(caller);
        match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    fn admit(&self, request: &Request<Incoming>, own: Option<IpAddr>) -> Result<Caller, Problem> {
        check_headers(request.headers(), &self.app.options.limits)?;
        self.guard.admit(request.uri(), request.headers(), own)
    }
}

fn check_headers(headers: &HeaderMap, limits: &Limits) -> Result<(), Problem> {
    let too_large = |message: String| {
        Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", message))
    };
    if headers.len() > limits.headers {
        return too_large(format!(
            "the request has {} header lines, this server takes {} (limits.headers)",
            headers.len(),
            limits.headers
        ));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > limits.header_bytes {
        return too_large(format!(
            "the request has {bytes} bytes of headers, this server takes {} (limits.header_bytes)",
            limits.header_bytes
        ));
    }
    Ok(())
}
