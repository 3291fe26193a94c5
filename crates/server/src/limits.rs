//! The bounds of the doors, and reading a request body within them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

/// The bounds of the doors. Each is reached with an error that names it.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest request body, in bytes. Default: 8 MiB.
    pub body_bytes: usize,
    /// How deeply JSON may be nested. Default: 64.
    pub json_depth: usize,
    /// How many calls one JSON-RPC batch may hold. Default: 100.
    pub batch: usize,
    /// How many header lines a request may have. Default: 64.
    pub headers: usize,
    /// How long all header lines of a request may be together, in bytes. Default: 32 KiB.
    pub header_bytes: usize,
    /// How long a connection may take to send the headers of its next request, so also how long it may be idle.
    /// Default: 75 s.
    pub header_timeout: Duration,
    /// How long a request may take to send its body. Default: 60 s.
    pub body_timeout: Duration,
    /// How many connections one listener holds open. Default: 16,384.
    pub connections: usize,
    /// How many requests one listener answers at a time; streams count until they begin. Default: 4,096.
    pub requests: usize,
    /// How many tool calls run or wait at a time, over all doors. Default: 4,096.
    pub calls: usize,
    /// How many MCP sessions are open at a time. Default: 4,096.
    pub sessions: usize,
    /// How long an MCP session lives without a request. Default: 1 hour.
    pub session_idle: Duration,
    /// How many clients of MCP's deprecated SSE transport are connected at a time. Default: 1,024.
    pub sse_sessions: usize,
    /// How many clients follow `/api/events`, and how many resources MCP clients subscribe to, at a time. Default: 1,024.
    pub watchers: usize,
    /// How long stopping may take. Default: 10 s.
    pub stop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            json_depth: 64,
            batch: 100,
            headers: 64,
            header_bytes: 32 << 10,
            header_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_mins(1),
            connections: 16_384,
            requests: 4_096,
            calls: 4_096,
            sessions: 4_096,
            session_idle: Duration::from_hours(1),
            sse_sessions: 1_024,
            watchers: 1_024,
            stop_timeout: Duration::from_secs(10),
        }
    }
}

/// Why a request body was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the request body is larger than {limit} bytes, the most this server takes (limits.body_bytes)")]
    TooLarge { limit: usize },
    #[error("the request body did not arrive within {} s (limits.body_timeout)", .limit.as_secs())]
    TooSlow { limit: Duration },
    #[error("the request body ended early")]
    Broken,
}

/// Reads a request body within `limits`.
pub(crate) async fn read_body(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, BodyError> {
    let limit = limits.body_bytes;
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        discard(body, limit).await;
        return Err(BodyError::TooLarge { limit });
    }
    let mut limited = Limited::new(body, limit);
    let read = tokio::time::timeout(limits.body_timeout, (&mut limited).collect()).await;
    match read {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge { limit }),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::TooSlow { limit: limits.body_timeout }),
    }
}

/// Takes some of what a client goes on sending: one that cannot finish writing does not read the answer either.
async fn discard(body: Body, limit: usize) {
    let patience = Duration::from_secs(2);
    let rest = Limited::new(body, limit.saturating_mul(4));
    let _ = tokio::time::timeout(patience, async {
        let mut rest = std::pin::pin!(rest);
        while let Some(Ok(_)) = rest.frame().await {}
    })
    .await;
}

/// Whether `json` is nested more deeply than `limit`, whatever else is wrong with it.
pub(crate) fn is_nested_deeper(json: &[u8], limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_nested_deeper;

    #[test]
    fn nesting_counts_brackets_outside_strings_only() {
        for (json, depth) in [
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[1,{"b":2}]}"#, 3),
            (r#"{"a":"[[[[\"[[["}"#, 1),
            (r#"{"a\\":[1]}"#, 2),
            ("[[],[],[]]", 2),
        ] {
            assert!(!is_nested_deeper(json.as_bytes(), depth), "{json} is not deeper than {depth}");
            assert!(depth == 0 || is_nested_deeper(json.as_bytes(), depth - 1), "{json} is {depth} deep");
        }
    }
}
