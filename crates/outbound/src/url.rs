//! URLs, as far as a caller needs them: checking one, encoding a segment, following a reference.

use std::fmt::Write;

use http::Uri;
use http::uri::Scheme;

/// What is wrong with a URL. No text repeats it, for it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// Neither of the two schemes.
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    /// No host, or a port that is none.
    #[error("the URL must name a host, and a port from 1 to 65535 if it names one")]
    Host,
    /// A user or a password.
    #[error("the URL must not hold a user or a password")]
    Credentials,
    /// A fragment, which would not be sent.
    #[error("the URL must not hold a fragment (#)")]
    Fragment,
    /// A character that a URL does not have.
    #[error("the URL holds a character that must be percent-encoded, or is not one")]
    Syntax,
}

/// Reads an absolute `http` or `https` URL without credentials and without a fragment.
pub fn parse_url(text: &str) -> Result<Uri, InvalidUrl> {
    if text.contains('#') {
        return Err(InvalidUrl::Fragment);
    }
    let rest = ["http://", "https://"]
        .iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        .map(|scheme| &text[scheme.len()..])
        .ok_or(InvalidUrl::Scheme)?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(InvalidUrl::Credentials);
    }
    let uri: Uri = text.parse().map_err(|_| InvalidUrl::Syntax)?;
    let host = uri.host().unwrap_or_default();
    // `host:` and `host:99999` leave no port in what was read.
    let bare = authority.len() == host.len();
    let port = uri.port_u16();
    if host.is_empty() || !(bare || port.is_some_and(|port| port > 0)) {
        return Err(InvalidUrl::Host);
    }
    Ok(uri)
}

/// Percent-encodes `text` as one segment of a path: letters, digits and `-._~` stay.
///
/// `.` and `..` have no encoding that every server takes for a name; do not send them.
pub fn encode_segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Where `reference`, the `Location` of an answer to a request to `base`, leads. None if it is not an `http` or `https`
/// URL, holds credentials, or cannot be read. A fragment is dropped.
pub fn join(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default().trim();
    let scheme = base.scheme().unwrap_or(&Scheme::HTTP);
    let authority = base.authority()?;
    let text = if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if reference.starts_with('/') {
        format!("{scheme}://{authority}{reference}")
    } else if reference.starts_with('?') {
        format!("{scheme}://{authority}{}{reference}", base.path())
    } else if reference.split(['/', '?']).next().is_some_and(|first| first.contains(':')) {
        reference.to_owned()
    } else if reference.is_empty() {
        return None;
    } else {
        let folder = &base.path()[..=base.path().rfind('/').unwrap_or(0)];
        format!("{scheme}://{authority}{folder}{reference}")
    };
    parse_url(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_http_with_a_host_and_no_secret() {
        for (text, outcome) in [
            ("http://example.com", Ok(())),
            ("HTTPS://example.com:8443/a?b=c", Ok(())),
            ("http://[2001:db8::1]:80/", Ok(())),
            ("ftp://example.com", Err(InvalidUrl::Scheme)),
            ("example.com", Err(InvalidUrl::Scheme)),
            ("http://user:secret@example.com/", Err(InvalidUrl::Credentials)),
            ("http://example.com/@home", Ok(())),
            ("http://example.com?mail=a@b", Ok(())),
            ("http://example.com/#top", Err(InvalidUrl::Fragment)),
            ("http://example.com:99999/", Err(InvalidUrl::Host)),
            ("http://example.com:0/", Err(InvalidUrl::Host)),
            ("http://:80/", Err(InvalidUrl::Host)),
            ("http:///path", Err(InvalidUrl::Host)),
            ("http://exa mple.com/", Err(InvalidUrl::Syntax)),
            ("http://example.com/a b", Err(InvalidUrl::Syntax)),
        ] {
            let read = parse_url(text).map(drop);
            // Which of the two errors it is where nothing stands in the place of the host is http's choice.
            let either = [outcome, outcome.map_err(|_| InvalidUrl::Syntax)];
            assert!(either.contains(&read), "{text}: {read:?}");
        }
    }

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(encode_segment("agent-1_2.3~"), "agent-1_2.3~");
        assert_eq!(encode_segment("a/b?c#d%e é"), "a%2Fb%3Fc%23d%25e%20%C3%A9");
    }

    #[test]
    fn a_reference_leads_where_a_browser_would_go() {
        let base: Uri = "http://a:1/v1/agents?limit=1".parse().unwrap();
        for (reference, to) in [
            ("/v1/agents/", Some("http://a:1/v1/agents/")),
            ("https://b/x", Some("https://b/x")),
            ("//b/x", Some("http://b/x")),
            ("tools/", Some("http://a:1/v1/tools/")),
            ("?limit=2", Some("http://a:1/v1/agents?limit=2")),
            ("/x#y", Some("http://a:1/x")),
            ("ftp://b/x", None),
            ("http://u:p@b/", None),
            ("", None),
        ] {
            assert_eq!(join(&base, reference).map(|uri| uri.to_string()).as_deref(), to, "{reference}");
        }
    }
}
