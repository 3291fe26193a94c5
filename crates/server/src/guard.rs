//! Who may come in: the check that stands before every route of every listener.
//!
//! `Host` and `Origin` are checked because a web page can make a browser send requests to this machine, also under a
//! name of its own that resolves to it (DNS rebinding). A bearer key tells who calls.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, StatusCode, Uri};
use jiff::Timestamp;
use switchboard_access::{Access, Caller, token_matches};

use crate::problem::Problem;

/// What a listener asks of a request before anything else looks at it.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    allowed: Arc<Allowed>,
    access: Access,
    owner_token: Option<Arc<str>>,
    requires_key: bool,
    local: Caller,
    owner: Caller,
}

/// The hosts and origins that are allowed beside this machine's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Allowed {
    pub(crate) fn new(hosts: &[String], origins: &[String]) -> Self {
        let lower = |texts: &[String]| {
            texts.iter().map(|text| text.trim().trim_end_matches('/').to_ascii_lowercase()).collect()
        };
        Self { hosts: lower(hosts), origins: lower(origins) }
    }

    fn host(&self, authority: &str, own: Option<IpAddr>) -> bool {
        let host = host_of(authority);
        is_this_machine(host)
            || own.is_some_and(|own| ip_of(host) == Some(own))
            || self
                .hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(authority))
    }

    fn origin(&self, origin: &str, own: Option<IpAddr>) -> bool {
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        // Pages of other schemes, such as browser extensions, have hosts that name no machine.
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(|authority| is_authority(authority) && self.host(authority, own))
    }
}

impl Guard {
    pub(crate) fn new(
        allowed: Arc<Allowed>,
        access: Access,
        owner_token: Option<Arc<str>>,
        requires_key: bool,
    ) -> Self {
        Self { allowed, access, owner_token, requires_key, local: Caller::local(), owner: Caller::owner() }
    }

    /// Who makes this request, if it may come in. `own` is the address it came to.
    pub(crate) fn admit(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        own: Option<IpAddr>,
    ) -> Result<Caller, Problem> {
        self.check_host(uri, headers, own)?;
        self.check_origin(headers, own)?;
        self.caller(headers)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap, own: Option<IpAddr>) -> Result<(), Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            // HTTP/2 has it in the request line.
            (None, _) => uri.authority().map(http::uri::Authority::as_str),
            (Some(_), Some(_)) => None,
        };
        let Some(host) = host.filter(|host| is_authority(host)) else {
            return Err(Problem::bad_request("bad_host", "the request has no Host header, or no valid one"));
        };
        if self.allowed.host(host, own) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "host_not_allowed",
            format!("the Host header names '{host}', which is not a name of this server"),
        )
        .hint("use localhost or 127.0.0.1, or add the name to the option `allowed_hosts`"))
    }

    fn check_origin(&self, headers: &HeaderMap, own: Option<IpAddr>) -> Result<(), Problem> {
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or("(not a text)");
            if !self.allowed.origin(origin, own) {
                return Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    "origin_not_allowed",
                    format!("web pages of '{origin}' may not use this server"),
                )
                .hint("add the origin to the option `allowed_origins`"));
            }
        }
        Ok(())
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        match (values.next(), values.next()) {
            (None, _) if self.requires_key => {
                Err(unauthorized("key_required", "this address is served only with a key")
                    .hint("send `Authorization: Bearer <key>`; `switchboard key create <name>` makes one"))
            }
            (None, _) => Ok(self.local.clone()),
            (Some(value), None) => {
                let bearer = value.to_str().ok().and_then(bearer_of).ok_or_else(|| {
                    unauthorized("bad_authorization", "the Authorization header is not `Bearer <key>`")
                })?;
                self.holder(bearer).ok_or_else(|| {
                    unauthorized("bad_key", "the key is unknown, revoked or expired")
                        .hint("`switchboard key create <name>` makes a new one")
                })
            }
            (Some(_), Some(_)) => {
                Err(unauthorized("bad_authorization", "the request has more than one Authorization header"))
            }
        }
    }

    fn holder(&self, bearer: &str) -> Option<Caller> {
        if self.owner_token.as_deref().is_some_and(|token| token_matches(token, bearer)) {
            return Some(self.owner.clone());
        }
        self.access.authenticate(bearer, Timestamp::now())
    }
}

fn unauthorized(code: &'static str, message: &'static str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, message)
}

fn bearer_of(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether `text` can stand in a Host header: a name or an address, perhaps with a port, nothing else.
fn is_authority(text: &str) -> bool {
    let host = host_of(text);
    let port = &text[host.len()..];
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        }
    };
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok()))
}

/// The authority without its port.
fn host_of(authority: &str) -> &str {
    let end = match authority.find(']') {
        Some(end) if authority.starts_with('[') => end + 1,
        _ => authority.find(':').unwrap_or(authority.len()),
    };
    &authority[..end]
}

fn ip_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_this_machine(host: &str) -> bool {
    matches!(host, "127.0.0.1" | "[::1]") || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(own: Option<&str>) -> impl Fn(&str) -> (bool, bool) {
        let list = Allowed::new(
            &["box.example".to_owned(), "proxy.example:8443".to_owned()],
            &["https://app.example/".to_owned(), "chrome-extension://abc".to_owned(), "null".to_owned()],
        );
        let own = own.map(|ip| ip.parse().unwrap());
        move |text| (is_authority(text) && list.host(text, own), list.origin(text, own))
    }

    #[test]
    fn this_machine_and_configured_hosts_are_allowed() {
        let check = allowed(Some("192.168.1.5"));
        for host in [
            "localhost",
            "LOCALHOST:4100",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:4100",
            "192.168.1.5:4100",
            "box.example",
            "Box.Example:99",
            "proxy.example:8443",
        ] {
            assert!(check(host).0, "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:localhost",
            "localhost@evil.example",
            "evil.example@localhost",
            "127.0.0.1.evil.example",
            "192.168.1.6",
            "proxy.example",
            "[::1",
            "::1",
            "[::1]evil.example",
            "box.example.evil",
        ] {
            assert!(!check(host).0, "{host}");
        }
    }

    #[test]
    fn origins_follow_the_hosts_or_are_listed() {
        let check = allowed(None);
        for origin in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:5",
            "http://box.example",
            "https://app.example",
            "chrome-extension://abc",
            "null",
        ] {
            assert!(check(origin).1, "{origin}");
        }
        for origin in [
            "https://evil.example",
            "http://app.example",
            "https://app.example:444",
            "chrome-extension://localhost",
            "localhost",
            "http://localhost@evil.example",
            "http://localhost.evil.example",
            "",
        ] {
            assert!(!check(origin).1, "{origin}");
        }
    }
}
