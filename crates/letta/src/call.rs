//! One call: a request, the redirects it leads to, and the answer at the end.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, LOCATION};
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Uri};
use serde::Deserialize;
use serde_json::Value;
use switchboard_outbound::{Answer, Fault, Limits, join};
use tokio::time::Instant;

use crate::Letta;

/// How many redirects a call follows.
const MAX_REDIRECTS: usize = 5;

/// The longest detail in an error, in bytes.
const MAX_DETAIL: usize = 512;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PROJECT: HeaderName = HeaderName::from_static("x-project");

/// Why a call failed. Its text is the `{cause}` of the contract; it holds no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Letta answered that it does not.
    #[error("HTTP {status}: {detail}")]
    Status {
        /// The status: anything but 2xx.
        status: u16,
        /// The `detail` of the body, or else the status in words; at most 512 bytes.
        detail: String,
    },
    /// There was no answer, or no whole one.
    #[error("{0}")]
    Fault(Fault),
    /// The answer is not what Letta answers.
    #[error("the answer is not {expected}: is this a Letta server?")]
    NotUnderstood {
        /// What it should have been.
        expected: &'static str,
    },
    /// Letta has more agents than are read.
    #[error("Letta lists more than {limit}")]
    TooMany {
        /// The bound that was passed.
        limit: &'static str,
    },
    /// The id cannot be that of an agent. Nothing was sent.
    #[error("'{}' cannot be the id of an agent: 1 to 256 bytes, no control characters, not . or ..", .0.escape_debug())]
    IllFormedAgent(String),
    /// There is no source code to upload. Nothing was sent.
    #[error("source_code is empty")]
    NoSource,
}

/// What a call sends, and how much of the answer it takes.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// Path and query, after the base URL.
    pub(crate) path: String,
    /// JSON; empty for none.
    pub(crate) body: Bytes,
    pub(crate) idempotency_key: Option<&'a HeaderValue>,
    pub(crate) limits: Limits,
}

impl Letta {
    /// Makes `call` and returns the answer, whatever its status.
    ///
    /// Redirects keep method and body: Letta redirects between `/v1/agents` and `/v1/agents/` with any of 301, 302, 307
    /// and 308. Not 303: it says that the request was dealt with and something else can be read, which may be a page that
    /// asks to log in, and its 200 would pass for a delivery.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Answer, Fault> {
        let shared = &*self.shared;
        let deadline = Instant::now() + call.limits.timeout;
        let Ok(mut uri) = format!("{}{}", shared.base_url, call.path).parse::<Uri>() else {
            // Segments are encoded and the base URL was read before.
            return Err(Fault::Connect { host: "Letta".into(), cause: "the path is too long".into() });
        };
        for redirects in 0.. {
            let timeout = deadline.saturating_duration_since(Instant::now());
            let limits = Limits { timeout, ..call.limits };
            let answer = shared.out.send(self.request(call, &uri), limits).await;
            let answer = answer.map_err(|fault| with_whole_time(fault, call.limits.timeout))?;
            if !matches!(answer.status.as_u16(), 301 | 302 | 307 | 308) || redirects == MAX_REDIRECTS {
                return Ok(answer);
            }
            match answer.headers.get(LOCATION).and_then(|to| join(&uri, to.to_str().ok()?)) {
                Some(to) => uri = to,
                None => return Ok(answer),
            }
        }
        unreachable!("the loop ends by returning")
    }

    fn request(&self, call: &Call<'_>, uri: &Uri) -> Request<Bytes> {
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        if !call.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = call.idempotency_key {
            headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        if is_trusted(&self.shared.base, uri) {
            let fields = [(AUTHORIZATION, &self.shared.authorization), (PROJECT, &self.shared.project)];
            for (name, value) in fields {
                if let Some(value) = value {
                    headers.insert(name, value.clone());
                }
            }
        }
        request
    }

    /// The error that `answer` is: `detail` of the body, or else the status in words.
    pub(crate) fn status_error(&self, answer: &Answer) -> CallError {
        let detail = detail(&answer.body).unwrap_or_else(|| {
            let reason = answer.status.canonical_reason().unwrap_or("no reason given");
            if answer.status.is_redirection() {
                format!("{reason}, which leads nowhere this client follows")
            } else {
                reason.to_owned()
            }
        });
        let detail = self.without_token(detail);
        let detail = detail[..detail.floor_char_boundary(MAX_DETAIL)].to_owned();
        CallError::Status { status: answer.status.as_u16(), detail }
    }

    /// A 2xx answer read to its end; an error otherwise.
    pub(crate) fn success(&self, answer: Answer) -> Result<Answer, CallError> {
        if !answer.status.is_success() {
            return Err(self.status_error(&answer));
        }
        match answer.end.clone() {
            Ok(()) => Ok(answer),
            Err(fault) => Err(CallError::Fault(fault)),
        }
    }

    /// `text` without the token, which a server or a proxy may have repeated.
    fn without_token(&self, text: String) -> String {
        match &self.shared.token {
            Some(token) if text.contains(token.as_str()) => text.replace(token.as_str(), "***"),
            Some(_) | None => text,
        }
    }
}

/// Bounds for calls whose answer matters to the last byte.
pub(crate) const fn whole(timeout: Duration) -> Limits {
    Limits { timeout, keep_bytes: 8 << 20, read_bytes: 8 << 20 }
}

/// Whether `uri` is where the token belongs: the same scheme, host and port as `base`; or `https` at the default port in
/// place of `http` at its own, as servers redirect to their secure selves.
fn is_trusted(base: &Uri, uri: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().unwrap_or_default().to_ascii_lowercase();
    let (from, to) = (place(base), place(uri));
    host(base) == host(uri) && (from == to || (from, to) == ((false, 80), (true, 443)))
}

/// Whether it is secure, and the port.
fn place(uri: &Uri) -> (bool, u16) {
    let secure = uri.scheme() == Some(&Scheme::HTTPS);
    (secure, uri.port_u16().unwrap_or(if secure { 443 } else { 80 }))
}

/// A fault tells the time of the whole call, not what the redirects before it had left.
fn with_whole_time(fault: Fault, timeout: Duration) -> Fault {
    match fault {
        Fault::TimedOut { host, sent, after: _ } => Fault::TimedOut { host, after: timeout, sent },
        fault => fault,
    }
}

/// The `detail` of a JSON body on one line: a text, or what FastAPI lists about each field.
fn detail(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Problem {
        detail: Value,
    }
    let text = match serde_json::from_slice::<Problem>(body).ok()?.detail {
        Value::Null => return None,
        Value::String(text) => text,
        other => other.to_string(),
    };
    let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_belongs_to_the_origin_and_its_secure_self() {
        for (base, to, trusted) in [
            ("http://letta:8283", "http://letta:8283/v1/agents/", true),
            ("http://letta:8283", "http://LETTA:8283/x", true),
            ("http://letta", "http://letta:80/x", true),
            ("http://letta", "https://letta/x", true),
            ("https://letta", "http://letta/x", false),
            ("http://letta:8283", "https://letta:8283/x", false),
            ("http://letta:8283", "http://letta:8284/x", false),
            ("http://letta:8283", "http://letta.example:8283/x", false),
        ] {
            assert_eq!(is_trusted(&base.parse().unwrap(), &to.parse().unwrap()), trusted, "{base} {to}");
        }
    }

    #[test]
    fn a_detail_is_one_line() {
        assert_eq!(detail(br#"{"detail":"a\n b\u0007"}"#).as_deref(), Some("a b"));
        assert_eq!(detail(br#"{"detail":[{"loc":["id"]}]}"#).as_deref(), Some(r#"[{"loc":["id"]}]"#));
        assert_eq!(detail(br#"{"detail":null}"#), None);
        assert_eq!(detail(br#"{"detail":" "}"#), None);
        assert_eq!(detail(b"<html>"), None);
    }
}
