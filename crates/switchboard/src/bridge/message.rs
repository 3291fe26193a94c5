//! What the bridge looks at in a message.

use std::fmt::Write as _;

use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The parts of a JSON-RPC message that decide how it travels.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// As it is written, so that `1` and `"1"` stay apart.
    pub(super) id: Option<String>,
    pub(super) method: Option<String>,
    params: Params,
}

#[derive(Debug, Default, Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    /// Its own shape is the server's to judge.
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    request_id: Option<Box<RawValue>>,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
struct Meta {
    /// Said in every message by clients of protocol 2026-07-28, which knows no sessions.
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<String>,
}

impl Envelope {
    /// Reads a line. A batch has neither id nor method of its own.
    pub(super) fn read(line: &str) -> Result<Self, serde_json::Error> {
        if line.trim_start().starts_with('[') {
            return serde_json::from_str::<&RawValue>(line).map(|_| Self::default());
        }
        let raw: RawEnvelope<'_> = serde_json::from_str(line)?;
        let params =
            raw.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        Ok(Self { id: raw.id.map(|id| id.get().to_owned()), method: raw.method, params })
    }

    pub(super) fn is_request(&self) -> bool {
        self.id.is_some() && self.method.is_some()
    }

    pub(super) fn is_call(&self) -> bool {
        self.method.as_deref() == Some("tools/call")
    }

    /// The protocol version, if the message says it itself.
    pub(super) fn protocol_version(&self) -> Option<&str> {
        self.params.meta.protocol_version.as_deref()
    }

    /// The id of the request that this withdraws.
    pub(super) fn cancelled_request(&self) -> Option<&str> {
        let cancels = self.method.as_deref() == Some("notifications/cancelled");
        self.params.request_id.as_deref().filter(|_| cancels).map(RawValue::get)
    }

    /// Whether `text` is the answer to this request.
    pub(super) fn is_answered_by(&self, text: &str) -> bool {
        Self::read(text).is_ok_and(|answer| answer.method.is_none() && answer.id == self.id)
    }

    /// What protocol 2026-07-28 wants to see outside the body, too.
    pub(super) fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let Some(version) = self.protocol_version() else { return Vec::new() };
        let method = self.method.as_deref().unwrap_or_default();
        let name = match method {
            "tools/call" | "prompts/get" => self.params.name.as_deref(),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => self.params.uri.as_deref(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.params.task_id.as_deref(),
            _ => None,
        };
        let all = [
            ("mcp-protocol-version", Some(version.to_owned())),
            ("mcp-method", Some(method.to_owned())),
            ("mcp-name", name.map(header_text)),
        ];
        all.into_iter()
            .filter_map(|(header, text)| {
                Some((HeaderName::from_static(header), HeaderValue::from_str(&text?).ok()?))
            })
            .collect()
    }
}

/// A text as a header can carry it: as it is, or as `=?base64?…?=`.
fn header_text(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    if plain && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { DIGITS[index as usize].into() } else { '=' });
        }
    }
    text
}

/// A message on one line, as standard output wants it.
pub(super) fn one_line(message: &str) -> String {
    if !message.contains(['\n', '\r']) {
        return message.to_owned();
    }
    match serde_json::from_str::<serde_json::Value>(message) {
        Ok(value) => value.to_string(),
        Err(_) => message.replace(['\n', '\r'], " "),
    }
}

/// An error as answer to the request with this id.
pub(super) fn error_line(id: &str, code: i32, message: &str) -> String {
    let mut line = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        line,
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}}}}}"#,
        serde_json::Value::from(message)
    );
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_as_they_are_written() {
        for (line, id, request) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Some("1"), true),
            (r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#, Some("\"1\""), true),
            (r#"{"jsonrpc":"2.0","method":"ping","params":7}"#, None, false),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some("1"), false),
            (r#" [{"id":1,"method":"ping"}]"#, None, false),
        ] {
            let message = Envelope::read(line).unwrap();
            assert_eq!((message.id.as_deref(), message.is_request()), (id, request), "{line}");
        }
        assert!(Envelope::read("{").is_err());
        assert!(Envelope::read("[1,").is_err());
    }

    #[test]
    fn only_the_answer_to_a_request_answers_it() {
        let request = Envelope::read(r#"{"id":7,"method":"tools/call"}"#).unwrap();
        assert!(request.is_answered_by(r#"{"id":7,"result":{}}"#));
        assert!(!request.is_answered_by(r#"{"id":7,"method":"sampling/createMessage"}"#));
        assert!(!request.is_answered_by(r#"{"method":"notifications/progress"}"#));
    }

    #[test]
    fn headers_say_what_the_newest_protocol_wants() {
        let line = r#"{"id":1,"method":"tools/call","params":{"name":"grüß","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let headers = Envelope::read(line).unwrap().headers();
        let text: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        let name = ("mcp-name", "=?base64?Z3LDvMOf?=");
        assert_eq!(text, [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), name]);
        assert!(
            Envelope::read(r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#)
                .unwrap()
                .headers()
                .is_empty()
        );
        for (bytes, text) in [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
