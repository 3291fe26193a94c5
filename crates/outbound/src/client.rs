//! Sends a request and reads what comes back, within bounds.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use http_body_util::BodyExt;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use crate::body::OutBody;
use crate::dial::{Dial, Patient};
use crate::{Answer, Fault, Reach, tls};

/// Connections are kept this long for a next request.
///
/// Uvicorn and Node close a connection that was idle for 5 s. Giving up earlier means that a request seldom goes out on a
/// connection that the other side is closing at that moment.
const IDLE: Duration = Duration::from_secs(4);

/// How an [`Outbound`] connects.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which addresses may be called.
    pub reach: Reach,
    /// How long connecting may take, TLS included; names are looked up in this time too. Default: 10 s.
    pub connect_timeout: Duration,
    /// How many idle connections to one host and port are kept. Default: 8.
    pub idle_per_host: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { reach: Reach::Anywhere, connect_timeout: Duration::from_secs(10), idle_per_host: 8 }
    }
}

/// How long one request may take, and how much of the answer is taken.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the call until the last byte of the answer.
    pub timeout: Duration,
    /// How many bytes of the body are handed over. What exceeds them is read and thrown away.
    pub keep_bytes: usize,
    /// After how many bytes of body reading stops and the connection is given up.
    pub read_bytes: usize,
}

/// The way out: sends HTTP and HTTPS requests over connections that are used again. Cheap to clone.
///
/// Root certificates are those of the machine (or of `SSL_CERT_FILE`, `SSL_CERT_DIR`), read at the first `https` request.
#[derive(Clone)]
pub struct Outbound {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    plain: Client<Patient<Dial>, OutBody>,
    // Most servers never call https: neither the certificates nor their memory are taken before.
    secure: OnceLock<Client<Patient<HttpsConnector<Dial>>, OutBody>>,
}

impl Outbound {
    /// A way out as `options` say. Connects to nothing yet.
    pub fn new(options: Options) -> Self {
        let plain = pool(&options, Dial::new(options.reach.clone()));
        Self { shared: Arc::new(Shared { options, plain, secure: OnceLock::new() }) }
    }

    /// Sends `request`, whose URI is absolute, and reads the answer.
    ///
    /// An answer with whatever status is `Ok`, also if its body broke off: then [`Answer::end`] says why.
    ///
    /// # Errors
    /// There was no answer. [`Fault::sent`] says whether the request may have reached the other side.
    pub async fn send(&self, mut request: Request<Bytes>, limits: Limits) -> Result<Answer, Fault> {
        let deadline = Instant::now() + limits.timeout;
        request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static("switchboard"));
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let secure = request.uri().scheme() == Some(&http::uri::Scheme::HTTPS);
        let (parts, body) = request.into_parts();
        let (body, sent) = OutBody::new(body);
        let request = Request::from_parts(parts, body);

        let response =
            if secure { self.secure()?.request(request) } else { self.shared.plain.request(request) };
        let response = match timeout_at(deadline, response).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Fault::of_request(host, &error, sent.get())),
            Err(_elapsed) => return Err(Fault::TimedOut { host, after: limits.timeout, sent: sent.get() }),
        };
        let (parts, body) = response.into_parts();
        let (body, end) = read(host, body, limits, deadline).await;
        Ok(Answer { status: parts.status, headers: parts.headers, body, end })
    }

    fn secure(&self) -> Result<&Client<Patient<HttpsConnector<Dial>>, OutBody>, Fault> {
        if let Some(client) = self.shared.secure.get() {
            return Ok(client);
        }
        let config = tls::machine_config()?;
        Ok(self.shared.secure.get_or_init(|| self.secure_with(config)))
    }

    fn secure_with(
        &self,
        config: Arc<rustls::ClientConfig>,
    ) -> Client<Patient<HttpsConnector<Dial>>, OutBody> {
        let options = &self.shared.options;
        pool(options, HttpsConnector::from((Dial::new(options.reach.clone()), config)))
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outbound").field(&self.shared.options).finish()
    }
}

fn pool<C>(options: &Options, connector: C) -> Client<Patient<C>, OutBody>
where
    Patient<C>: hyper_util::client::legacy::connect::Connect + Clone,
{
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(options.idle_per_host)
        .build(Patient::new(connector, options.connect_timeout))
}

async fn read(
    host: String,
    body: hyper::body::Incoming,
    limits: Limits,
    deadline: Instant,
) -> (Bytes, Result<(), Fault>) {
    let mut kept = BytesMut::new();
    let mut len = 0_usize;
    let mut body = pin!(body);
    let end = loop {
        match timeout_at(deadline, body.frame()).await {
            Ok(None) => break Ok(()),
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                len = len.saturating_add(data.len());
                let room = limits.keep_bytes.saturating_sub(kept.len());
                kept.extend_from_slice(&data[..data.len().min(room)]);
                if len > limits.read_bytes {
                    break Err(Fault::TooLong { limit: limits.read_bytes });
                }
            }
            Ok(Some(Err(error))) => break Err(Fault::broken(host, &error, true)),
            Err(_elapsed) => break Err(Fault::TimedOut { host, after: limits.timeout, sent: true }),
        }
    };
    (kept.freeze(), end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeServer, Reply};

    const LIMITS: Limits =
        Limits { timeout: Duration::from_secs(30), keep_bytes: 1 << 10, read_bytes: 1 << 20 };

    fn post(url: &str, body: &'static str) -> Request<Bytes> {
        Request::post(url).body(Bytes::from_static(body.as_bytes())).unwrap()
    }

    #[tokio::test]
    async fn a_connection_is_used_again() {
        let server = FakeServer::always(Reply::new(200)).await;
        let out = Outbound::new(Options::default());
        for _ in 0..5 {
            out.send(post(&server.url("/"), "x"), LIMITS).await.unwrap();
        }
        let connections: Vec<_> = server.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0; 5]);
    }

    #[tokio::test]
    async fn no_more_of_an_answer_is_kept_than_asked_for() {
        let server = FakeServer::always(Reply::new(200).body("x".repeat(10_000))).await;
        let out = Outbound::new(Options::default());
        let answer = out.send(post(&server.url("/"), "x"), LIMITS).await.unwrap();
        assert_eq!((answer.body.len(), answer.end), (1 << 10, Ok(())));

        let limits = Limits { read_bytes: 5_000, ..LIMITS };
        let answer = out.send(post(&server.url("/"), "x"), limits).await.unwrap();
        assert_eq!(answer.end, Err(Fault::TooLong { limit: 5_000 }));
    }

    #[tokio::test]
    async fn a_silent_server_was_sent_the_request() {
        let server = FakeServer::always(Reply::silence()).await;
        let out = Outbound::new(Options::default());
        let limits = Limits { timeout: Duration::from_millis(50), ..LIMITS };
        let fault = out.send(post(&server.url("/"), "x"), limits).await.unwrap_err();
        assert!(matches!(fault, Fault::TimedOut { sent: true, .. }), "{fault}");
    }

    #[tokio::test]
    async fn a_handshake_that_is_not_answered_sends_nothing() {
        // A listener that nobody accepts from: the machine completes TCP, TLS stays without a word.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let out = Outbound::new(Options { connect_timeout: Duration::from_millis(50), ..Options::default() });
        let _ = out.shared.secure.set(out.secure_with(tls::config(rustls::RootCertStore::empty())));
        let fault = out.send(post(&url, "x"), LIMITS).await.unwrap_err();
        assert!(matches!(fault, Fault::Connect { .. }), "{fault}");
        assert!(!fault.sent());
        assert!(fault.to_string().contains("not connected within 50 ms"), "{fault}");
    }

    #[tokio::test]
    async fn nobody_listening_is_a_fault_that_says_so() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let out = Outbound::new(Options::default());
        let fault = out.send(post(&format!("http://{address}/"), "x"), LIMITS).await.unwrap_err();
        assert_eq!(fault.to_string(), format!("cannot connect to {address}: connection refused"));
    }

    #[tokio::test]
    async fn a_connection_that_breaks_after_the_request_may_have_delivered_it() {
        let server = FakeServer::always(Reply::hang_up()).await;
        let out = Outbound::new(Options::default());
        let fault = out.send(post(&server.url("/"), "x"), LIMITS).await.unwrap_err();
        assert!(matches!(fault, Fault::Broken { sent: true, .. }), "{fault}");
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_keeps_its_status() {
        let server = FakeServer::always(Reply::new(200).body("half").cut()).await;
        let out = Outbound::new(Options::default());
        let answer = out.send(post(&server.url("/"), "x"), LIMITS).await.unwrap();
        assert_eq!((answer.status.as_u16(), &*answer.body), (200, &b"half"[..]));
        assert!(matches!(answer.end, Err(Fault::Broken { .. })), "{:?}", answer.end);
    }

    #[tokio::test]
    async fn loopback_is_out_of_reach_by_number_by_name_and_in_disguise() {
        let server = FakeServer::always(Reply::new(200)).await;
        let port = server.address.port();
        let out = Outbound::new(Options { reach: Reach::public(Vec::new()), ..Options::default() });
        for host in [
            "127.0.0.1",
            "localhost",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0",
        ] {
            let fault = out.send(post(&format!("http://{host}:{port}/"), "x"), LIMITS).await.unwrap_err();
            assert!(
                matches!(fault, Fault::Forbidden { .. }) || fault.to_string().contains("lookup"),
                "{host}: {fault}"
            );
        }
        assert!(server.seen().is_empty());
    }

    #[tokio::test]
    async fn a_host_that_is_named_as_allowed_is_in_reach_and_no_other_name_of_it() {
        let server = FakeServer::always(Reply::new(200)).await;
        let port = server.address.port();
        let reach = Reach::public([format!("LOCALHOST:{port}")]);
        let out = Outbound::new(Options { reach, ..Options::default() });
        out.send(post(&format!("http://localhost:{port}/"), "x"), LIMITS).await.unwrap();
        let fault = out.send(post(&format!("http://127.0.0.1:{port}/"), "x"), LIMITS).await.unwrap_err();
        assert_eq!(
            fault.to_string(),
            format!("127.0.0.1:{port} is at 127.0.0.1, which is not a public address")
        );
    }

    #[tokio::test]
    async fn https_is_spoken_with_a_server_whose_certificate_is_known_and_no_other() {
        let (address, root) = crate::tls::tests::server(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        let url = format!("https://localhost:{}/", address.port());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).unwrap();
        let out = Outbound::new(Options::default());
        let _ = out.shared.secure.set(out.secure_with(tls::config(roots)));
        assert_eq!(out.send(post(&url, "x"), LIMITS).await.unwrap().status, 204);

        let stranger = Outbound::new(Options::default());
        let _ = stranger.shared.secure.set(stranger.secure_with(tls::config(rustls::RootCertStore::empty())));
        let fault = stranger.send(post(&url, "x"), LIMITS).await.unwrap_err();
        assert!(!fault.sent());
        assert!(fault.to_string().contains("certificate"), "{fault}");
    }
}
