//! HTTP as a client: to the running server, and to one elsewhere.

use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use ::http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use futures::Stream;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::sse::{SseEvent, SseParser};
use crate::{Exit, Failure};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server, and what to say to be let in. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    /// Without a slash at the end.
    base: String,
    bearer: Option<HeaderValue>,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum HttpError {
    /// Nobody was reached: the request was not sent.
    #[error("cannot connect to {base}: {why}")]
    Connect { base: String, why: String },
    /// The connection broke: it is not known what became of the request.
    #[error("the connection to {base} broke: {why}")]
    Lost { base: String, why: String },
}

impl Http {
    /// A client of the server at `base`, such as `http://127.0.0.1:4100`.
    pub(crate) fn new(base: &str, bearer: Option<&str>) -> Result<Self, Failure> {
        let base = base.trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|_| not_a_url(base))?;
        match uri.scheme_str() {
            Some("http") if uri.authority().is_some() => {}
            Some("https") => {
                return Err(Failure::config(format!(
                    "this program cannot speak TLS, which '{base}' asks for"
                ))
                .hint(
                    "forward a port, as in `ssh -L 4100:127.0.0.1:4100 HOST`, and use http://127.0.0.1:4100",
                ));
            }
            _ => return Err(not_a_url(base)),
        }
        let bearer = bearer.map(|key| {
            HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|_| Failure::config("the key contains characters that a key cannot have"))
        });
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(4).build(connector);
        Ok(Self { client, base: base.to_owned(), bearer: bearer.transpose()? })
    }

    /// Where the server is.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request and gives the beginning of the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response<Incoming>, HttpError> {
        let lost = |why: String| HttpError::Lost { base: self.base.clone(), why };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .body(Full::new(body))
            .map_err(|error| lost(error.to_string()))?;
        request.headers_mut().extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(bearer) = &self.bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.clone());
        }
        self.client.request(request).await.map_err(|error| {
            let why = root_cause(&error);
            if error.is_connect() { HttpError::Connect { base: self.base.clone(), why } } else { lost(why) }
        })
    }

    /// Sends JSON, or nothing, and gives the JSON of the answer; a text that is no JSON becomes a JSON text.
    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), HttpError> {
        let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let headers = if body.is_some() { &headers[..] } else { &[] };
        let response = self.send(method, path, headers, bytes).await?;
        let status = response.status();
        let bytes = self.read(response).await?;
        let value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok((status, value))
    }

    /// Sends JSON, or nothing, and gives the JSON of an answer that is a success.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let (status, answer) = self.json(method, path, body).await?;
        if status.is_success() { Ok(answer) } else { Err(refusal(status, &answer)) }
    }

    /// Reads an answer to its end.
    pub(crate) async fn read(&self, response: Response<Incoming>) -> Result<Bytes, HttpError> {
        let body = response.into_body().collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|error| HttpError::Lost { base: self.base.clone(), why: root_cause(&error) })
    }

    /// The events of an answer, as they come, but for those that say nothing.
    pub(crate) fn events(
        &self,
        response: Response<Incoming>,
    ) -> impl Stream<Item = Result<SseEvent, HttpError>> + use<> {
        let state = (response.into_body(), SseParser::default(), Vec::new().into_iter());
        let base = self.base.clone();
        futures::stream::try_unfold(state, move |(mut body, mut parser, mut ready)| {
            let base = base.clone();
            async move {
                loop {
                    if let Some(event) = ready.next() {
                        return Ok(Some((event, (body, parser, ready))));
                    }
                    match body.frame().await {
                        None => return Ok(None),
                        Some(Err(error)) => return Err(HttpError::Lost { base, why: root_cause(&error) }),
                        Some(Ok(frame)) => {
                            let mut events =
                                frame.data_ref().map(|bytes| parser.push(bytes)).unwrap_or_default();
                            // They only tell where to resume, and from when on.
                            events.retain(|event| !event.data.is_empty());
                            ready = events.into_iter();
                        }
                    }
                }
            }
        })
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::new(Exit::NoServer, error.to_string())
            .hint("`switchboard status` tells what runs; `switchboard serve` starts a server")
    }
}

/// What an answer that is no success says.
pub(crate) fn refusal(status: StatusCode, body: &Value) -> Failure {
    let exit = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Exit::Denied,
        _ => Exit::Failed,
    };
    let error = body.get("error").unwrap_or(body);
    let message = match (error.get("message").and_then(Value::as_str), error) {
        (Some(message), _) => message.to_owned(),
        (None, Value::String(text)) if !text.is_empty() => text.clone(),
        _ => format!("the server answered {status}"),
    };
    let failure = Failure::new(exit, message);
    match error.get("hint").and_then(Value::as_str) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The bytes of a path's part, with what a path cannot hold escaped.
pub(crate) fn escape(part: &str) -> String {
    use std::fmt::Write as _;
    part.bytes().fold(String::with_capacity(part.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(byte.into());
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

fn not_a_url(text: &str) -> Failure {
    Failure::config(format!("'{text}' is no address of a server: write it as http://HOST:PORT"))
}

/// What lies at the bottom of an error: libraries wrap it in words that say nothing.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
