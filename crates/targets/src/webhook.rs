//! Signed HTTP requests to whatever URL.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, join_all};
use hmac::{Hmac, KeyInit, Mac};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::Sha256;
use switchboard_outbound::{Answer, Fault, Limits, Options, Outbound, Reach, encode_segment, parse_url};
use switchboard_schedule::{Delivery, Manners, Message, Outcome, Retry, Target};

/// How many deliveries go to one host and port at once, and as many idle connections to it are kept.
const PER_HOST: usize = 64;

/// The longest URL, in bytes.
const MAX_URL: usize = 2_048;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How webhooks are called.
#[derive(Clone)]
pub struct WebhookOptions {
    /// The key of the signatures. Receivers know it too, in Standard Webhooks' spelling: `whsec_` and these bytes in
    /// base64. 24 to 64 bytes by that specification; any other number works.
    pub secret: Arc<[u8]>,
    /// Whether addresses may be called that are not public: this machine's own, and those of private networks. Default: no.
    pub allow_private: bool,
    /// Hosts that may be called wherever they are: names or addresses (IPv6 in brackets), each alone or with a port.
    pub allowed_hosts: Vec<String>,
    /// How long one attempt may take, until the last byte of the answer. Default: 15 s.
    pub timeout: Duration,
}

/// What a key begins with in Standard Webhooks' spelling.
const SECRET_PREFIX: &str = "whsec_";

/// A key as receivers are given it: `whsec_` and its bytes in base64.
///
/// ```
/// let spelled = switchboard_targets::spelled_secret(b"a key of at least 24 bytes");
/// assert_eq!(spelled, "whsec_YSBrZXkgb2YgYXQgbGVhc3QgMjQgYnl0ZXM=");
/// assert_eq!(switchboard_targets::read_secret(&spelled).unwrap(), b"a key of at least 24 bytes");
/// ```
pub fn spelled_secret(secret: &[u8]) -> String {
    format!("{SECRET_PREFIX}{}", BASE64_STANDARD.encode(secret))
}

/// The bytes of a key that is spelled so; none if it is not, or is empty.
pub fn read_secret(spelled: &str) -> Option<Vec<u8>> {
    let secret = BASE64_STANDARD.decode(spelled.trim().strip_prefix(SECRET_PREFIX)?).ok()?;
    (!secret.is_empty()).then_some(secret)
}

impl WebhookOptions {
    /// The defaults, and this secret.
    pub fn new(secret: impl Into<Arc<[u8]>>) -> Self {
        let timeout = Duration::from_secs(15);
        Self { secret: secret.into(), allow_private: false, allowed_hosts: Vec::new(), timeout }
    }
}

impl fmt::Debug for WebhookOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookOptions")
            .field("allow_private", &self.allow_private)
            .field("allowed_hosts", &self.allowed_hosts)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The kind `webhook`: a `POST` to a URL, signed as Standard Webhooks says.
///
/// ```text
/// webhook-id: schedule-93@2025-01-02T09:00:00Z
/// webhook-timestamp: 1735808400
/// webhook-signature: v1,<base64 of HMAC-SHA256 over "{id}.{timestamp}.{body}">
///
/// {"schedule":"93","name":"report","key":"schedule-93@2025-01-02T09:00:00Z",
///  "due":"2025-01-02T09:00:00Z","attempt":1,"message":"Write the report"}
/// ```
///
/// The id is the key of the delivery, the same on all attempts; the timestamp is that of the attempt. `message` is a JSON
/// string or the JSON value that was scheduled.
///
/// | answer | outcome |
/// |---|---|
/// | 2xx | delivered; the first 1,024 bytes of a body that is text or JSON are the reply |
/// | 3xx | failed: redirects are not followed, since a signed message is for whom it was meant |
/// | 408, 409, 425, 429, 5xx, none | failed, tried again, after `Retry-After` if there is one |
/// | any other 4xx | failed for good |
///
/// Addresses that are not public are refused for good unless the options allow them, judged after the name is looked up and
/// at the moment of connecting. Proxies of the environment are not used.
#[derive(Clone)]
pub struct Webhook {
    mac: Hmac<Sha256>,
    reach: Reach,
    timeout: Duration,
    out: Outbound,
}

impl Webhook {
    /// Webhooks as `options` say. Connects to nothing yet.
    pub fn new(options: WebhookOptions) -> Self {
        let mac = Hmac::new_from_slice(&options.secret)
            .unwrap_or_else(|error| unreachable!("HMAC takes keys of every length: {error}"));
        let reach =
            if options.allow_private { Reach::Anywhere } else { Reach::public(options.allowed_hosts) };
        let out = Outbound::new(Options {
            reach: reach.clone(),
            connect_timeout: options.timeout.min(Duration::from_secs(10)),
            idle_per_host: PER_HOST,
        });
        Self { mac, reach, timeout: options.timeout, out }
    }

    async fn deliver_one(&self, delivery: Delivery) -> Outcome {
        let url = match self.url(&delivery.address.to) {
            Ok(url) => url,
            Err(error) => return Outcome::refused(error),
        };
        let request = self.request(url, &delivery, SystemTime::now());
        let limits = Limits { timeout: self.timeout, keep_bytes: Outcome::MAX_REPLY, read_bytes: 64 << 10 };
        match self.out.send(request, limits).await {
            Ok(answer) => outcome(&answer, SystemTime::now()),
            Err(fault @ Fault::Forbidden { .. }) => Outcome::refused(fault.to_string()),
            Err(fault) => Outcome::failed(fault.to_string()),
        }
    }

    /// Reads a destination. The error says what would be right.
    fn url(&self, to: &str) -> Result<Uri, String> {
        if to.len() > MAX_URL {
            return Err(format!("a webhook's URL has at most {MAX_URL} bytes; this one has {}", to.len()));
        }
        let url = parse_url(to).map_err(|error| error.to_string())?;
        let host = url.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
        match bare.parse::<IpAddr>() {
            Ok(address) if !self.reach.allows(bare, port, address) => Err(format!(
                "{address} is not a public address, and not among the hosts that webhooks may call (schedule.webhook_hosts)"
            )),
            Ok(_) | Err(_) => Ok(url),
        }
    }

    fn request(&self, url: Uri, delivery: &Delivery, now: SystemTime) -> Request<Bytes> {
        let body = body(delivery);
        let id = HeaderValue::from_str(&delivery.key).ok();
        let id = id.or_else(|| HeaderValue::from_str(&encode_segment(&delivery.key)).ok());
        let id = id.unwrap_or_else(|| HeaderValue::from_static(""));
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = self.sign(id.as_bytes(), seconds, &body);

        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = url;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(WEBHOOK_ID, id);
        headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(seconds));
        headers.insert(WEBHOOK_SIGNATURE, signature);
        request
    }

    fn sign(&self, id: &[u8], seconds: u64, body: &[u8]) -> HeaderValue {
        let mut mac = self.mac.clone();
        for part in [id, b".", seconds.to_string().as_bytes(), b".", body] {
            mac.update(part);
        }
        let signature = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        HeaderValue::from_str(&signature)
            .unwrap_or_else(|error| unreachable!("base64 fits into a header field: {error}"))
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Target for Webhook {
    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn manners(&self) -> Manners {
        Manners {
            ordered: false,
            at_once: 1_024,
            per_group: PER_HOST,
            batch: 1,
            // The attempt ends itself before, and says why.
            timeout: self.timeout + Duration::from_secs(5),
            // 5 s, 15 s, 45 s … at most an hour apart, ten attempts within about four hours: a deployment that went wrong
            // is noticed and put right in that time.
            retry: Retry { first_ms: 5_000, factor: 3, max_ms: 3_600_000, attempts: Some(10) },
        }
    }

    fn check(&self, to: &str, _message: &Message) -> Result<(), String> {
        self.url(to).map(drop)
    }

    /// Host and port, as they are written in the URL.
    fn group<'a>(&self, to: &'a str) -> &'a str {
        let rest = to.split_once("://").map_or(to, |(_, rest)| rest);
        rest.split(['/', '?']).next().unwrap_or(rest)
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        join_all(deliveries.into_iter().map(|delivery| self.deliver_one(delivery))).boxed()
    }
}

fn outcome(answer: &Answer, now: SystemTime) -> Outcome {
    let status = answer.status;
    if status.is_success() {
        return Outcome::Delivered { reply: answer.text(Outcome::MAX_REPLY) };
    }
    let line = answer.status_line();
    let error = if status.is_redirection() {
        format!("HTTP {line}: webhooks follow no redirects; schedule the URL that it leads to")
    } else {
        match answer.text(256) {
            Some(text) => format!("HTTP {line}: {text}"),
            None => format!("HTTP {line}"),
        }
    };
    let passes = matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::CONFLICT
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS
    );
    let permanent = status.is_client_error() && !passes;
    Outcome::Failed { error, permanent, retry_after: answer.retry_after(now).filter(|_| !permanent) }
}

#[derive(Serialize)]
struct Payload<'a> {
    schedule: String,
    name: &'a str,
    key: &'a str,
    due: String,
    attempt: u32,
    message: Said<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(&'a str),
    Json(&'a RawValue),
}

fn body(delivery: &Delivery) -> Bytes {
    let message = match &delivery.message {
        Message::Text(text) => Said::Text(text),
        // A JSON message was made from a value; were it none, it would still be a text.
        Message::Json(json) => serde_json::from_str(json).map_or(Said::Text(json), Said::Json),
    };
    let due = Timestamp::from_millisecond(delivery.due_ms).unwrap_or_default();
    let payload = Payload {
        schedule: delivery.schedule.to_string(),
        name: &delivery.name,
        key: &delivery.key,
        due: due.to_string(),
        attempt: delivery.attempt,
        message,
    };
    serde_json::to_vec(&payload)
        .unwrap_or_else(|error| unreachable!("texts and numbers can be written as JSON: {error}"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        // The example of the specification's reference libraries.
        let secret = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let webhook = Webhook::new(WebhookOptions::new(secret));
        let signature =
            webhook.sign(b"msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn destinations_of_one_host_and_port_are_a_group() {
        let webhook = Webhook::new(WebhookOptions::new(*b"secret"));
        for (to, group) in [
            ("https://example.com/a/b?c", "example.com"),
            ("http://example.com:8080?x=/", "example.com:8080"),
            ("http://[::1]:80/", "[::1]:80"),
        ] {
            assert_eq!(webhook.group(to), group);
        }
    }

    #[test]
    fn a_destination_is_a_public_url_of_moderate_length() {
        let message = Message::Text("x".into());
        let webhook = Webhook::new(WebhookOptions {
            allowed_hosts: vec!["10.0.0.1:9000".into()],
            ..WebhookOptions::new(*b"secret")
        });
        for (to, error) in [
            ("https://example.com/hook?x=1", None),
            ("http://10.0.0.1:9000/", None),
            ("http://10.0.0.1/", Some("10.0.0.1 is not a public address")),
            ("http://127.0.0.1/", Some("127.0.0.1 is not a public address")),
            ("http://[::1]/", Some("::1 is not a public address")),
            ("http://[::ffff:10.0.0.1]/", Some("is not a public address")),
            ("http://169.254.169.254/latest", Some("169.254.169.254 is not a public address")),
            ("ftp://example.com/", Some("must begin with http:// or https://")),
            ("http://me:pass@example.com/", Some("must not hold a user or a password")),
            ("http://example.com/#x", Some("must not hold a fragment")),
            ("nonsense", Some("must begin with")),
            (&format!("http://example.com/{}", "x".repeat(2_048)), Some("at most 2048 bytes")),
        ] {
            match (webhook.check(to, &message), error) {
                (Ok(()), None) => {}
                (Err(said), Some(error)) if said.contains(error) => {}
                (said, _) => panic!("{to}: {said:?}"),
            }
        }
    }
}
