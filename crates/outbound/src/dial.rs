//! Connects: looks a name up, judges what it found, and connects to what it judged.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::Reach;

type Connecting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("address {0} may not be called")]
    Forbidden(IpAddr),
    #[error("lookup failed")]
    Lookup(#[source] io::Error),
    #[error("lookup found no address")]
    NoAddress,
    #[error("not connected")]
    Refused(#[source] io::Error),
    #[error("not connected in time")]
    TimedOut(Duration),
}

/// Connects by TCP to addresses within its reach.
///
/// Look-up and judgement happen here, in one step with connecting, so that no second look-up can tell another address, and
/// so that addresses written as numbers are judged like names.
#[derive(Clone)]
pub(crate) struct Dial {
    reach: Reach,
}

impl Dial {
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach }
    }

    async fn connect(reach: Reach, uri: Uri) -> Result<TokioIo<TcpStream>, DialError> {
        let host = uri.host().unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = uri.port_u16().unwrap_or(if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 });
        let found: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
            Ok(address) => vec![(address, port).into()],
            Err(_) => tokio::net::lookup_host((bare, port)).await.map_err(DialError::Lookup)?.collect(),
        };
        let first = found.first().ok_or(DialError::NoAddress)?.ip();

        let mut error = DialError::Forbidden(first);
        for address in found {
            if !reach.allows(bare, port, address.ip()) {
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    prepare(&stream);
                    return Ok(TokioIo::new(stream));
                }
                Err(cause) => error = DialError::Refused(cause),
            }
        }
        Err(error)
    }
}

/// A request is written at once, and a peer that vanished is noticed in about two minutes although an answer may take
/// longer.
fn prepare(stream: &TcpStream) {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_mins(1)).with_interval(Duration::from_secs(15));
    let outcome = stream.set_nodelay(true).and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keepalive));
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection goes without its socket options");
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Connecting<Self::Response, DialError>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(Self::connect(self.reach.clone(), uri))
    }
}

/// A connector that gives up after a time, whatever it was doing: looking up, connecting, or shaking hands.
#[derive(Clone)]
pub(crate) struct Patient<C> {
    inner: C,
    limit: Duration,
}

impl<C> Patient<C> {
    pub(crate) fn new(inner: C, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

impl<C> Service<Uri> for Patient<C>
where
    C: Service<Uri>,
    C::Error: Into<Box<dyn Error + Send + Sync>>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Connecting<C::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let limit = self.limit;
        let connecting = tokio::time::timeout(limit, self.inner.call(uri));
        Box::pin(async move {
            match connecting.await {
                Ok(outcome) => outcome.map_err(Into::into),
                Err(_elapsed) => Err(DialError::TimedOut(limit).into()),
            }
        })
    }
}
