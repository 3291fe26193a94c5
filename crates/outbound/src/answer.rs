//! What a server said.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use crate::Fault;

/// What a server said, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// The beginning of the body, as much of it as the request's limits keep.
    pub body: Bytes,
    /// Whether the body was read to its end; if not, why.
    pub end: Result<(), Fault>,
}

impl Answer {
    /// The longest wait that a server can ask for: one day. A longer one is taken as this.
    pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

    /// How long the server asks to wait from `now` before it is tried again: its `Retry-After`, as seconds or as a date.
    /// None if it does not ask, or not in a way that is understood; zero if the date has passed.
    pub fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        let value = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            value.parse().map_or(Self::MAX_RETRY_AFTER, Duration::from_secs)
        } else {
            httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default()
        };
        Some(wait.min(Self::MAX_RETRY_AFTER))
    }

    /// The body, if the server calls it a text or JSON, cut after `max` bytes at the end of a character. None if it is
    /// something else, or empty but for white space. What is not UTF-8 is replaced.
    pub fn text(&self, max: usize) -> Option<String> {
        let kind = self.headers.get(CONTENT_TYPE)?.to_str().ok()?.to_ascii_lowercase();
        if !kind.starts_with("text/") && !kind.contains("json") {
            return None;
        }
        let text = String::from_utf8_lossy(&self.body);
        let text = text.trim();
        let cut = &text[..text.floor_char_boundary(max)];
        // A body that was kept in part may end within a character, which then reads as this one.
        let cut = cut.trim_end_matches('\u{fffd}');
        (!cut.is_empty()).then(|| cut.to_owned())
    }

    /// The status in words: `404 Not Found`, or the number alone if it has no name.
    pub fn status_line(&self) -> String {
        match self.status.canonical_reason() {
            Some(reason) => format!("{} {reason}", self.status.as_u16()),
            None => self.status.as_u16().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: http::HeaderName, value: &str, body: &'static [u8]) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        Answer { status: StatusCode::OK, headers, body: Bytes::from_static(body), end: Ok(()) }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_at_most_a_day() {
        let now = httpdate::parse_http_date("Thu, 02 Jan 2025 09:00:00 GMT").unwrap();
        for (value, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Thu, 02 Jan 2025 09:01:00 GMT", Some(60)),
            ("Thu, 02 Jan 2025 08:00:00 GMT", Some(0)),
            ("99999999999999999999999", Some(86_400)),
            ("Sun, 02 Jan 2095 08:00:00 GMT", Some(86_400)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            let wait = answer(RETRY_AFTER, value, b"").retry_after(now);
            assert_eq!(wait.map(|wait| wait.as_secs()), seconds, "{value}");
        }
    }

    #[test]
    fn a_text_ends_with_a_whole_character() {
        let text = |kind, body, max| answer(CONTENT_TYPE, kind, body).text(max);
        assert_eq!(text("text/plain; charset=utf-8", "grün".as_bytes(), 3).as_deref(), Some("gr"));
        assert_eq!(text("text/plain", b"gr\xc3", 1_024).as_deref(), Some("gr"));
        assert_eq!(text("application/problem+json", b" {} ", 1_024).as_deref(), Some("{}"));
        assert_eq!(text("image/png", b"abc", 1_024), None);
        assert_eq!(text("text/plain", b"  ", 1_024), None);
    }
}
