//! Why there is no answer.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use crate::dial::DialError;

/// Why there is no answer. No text holds more of the request than its host and port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The host is at an address that may not be called. Nothing was sent.
    #[error("{host} is at {address}, which is not a public address")]
    Forbidden {
        /// Host and port.
        host: String,
        /// The first address that it has.
        address: IpAddr,
    },
    /// There was no connection. Nothing was sent.
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        /// Host and port.
        host: String,
        /// In a few words.
        cause: String,
    },
    /// The connection broke before the answer was complete.
    #[error("{host} broke the connection off: {cause}")]
    Broken {
        /// Host and port.
        host: String,
        /// In a few words.
        cause: String,
        /// See [`Fault::sent`].
        sent: bool,
    },
    /// There was no complete answer in time.
    #[error("no answer from {host} within {}", in_words(*after))]
    TimedOut {
        /// Host and port.
        host: String,
        /// The time there was.
        after: Duration,
        /// See [`Fault::sent`].
        sent: bool,
    },
    /// The answer is longer than what is read of it.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// In bytes.
        limit: usize,
    },
}

impl Fault {
    /// Whether the whole request left: a connection stood, TLS included, and the last byte of the body was handed to it.
    /// The other side may then have acted on the request. False for a request without a body that was not answered.
    ///
    /// The last byte may still lie in this machine's buffers: that the other side has it only an answer proves.
    pub const fn sent(&self) -> bool {
        match self {
            Self::Forbidden { .. } | Self::Connect { .. } => false,
            Self::Broken { sent, .. } | Self::TimedOut { sent, .. } => *sent,
            Self::TooLong { .. } => true,
        }
    }

    pub(crate) fn of_request(host: String, error: &hyper_util::client::legacy::Error, sent: bool) -> Self {
        match find::<DialError>(error) {
            Some(DialError::Forbidden(address)) => Self::Forbidden { host, address: *address },
            Some(DialError::TimedOut(after)) => {
                Self::Connect { host, cause: format!("not connected within {}", in_words(*after)) }
            }
            Some(DialError::Lookup(error)) => {
                Self::Connect { host, cause: format!("lookup failed: {error}") }
            }
            Some(DialError::NoAddress) => Self::Connect { host, cause: "lookup found no address".into() },
            Some(DialError::Refused(error)) => Self::Connect { host, cause: io_cause(error) },
            None if error.is_connect() => Self::Connect { host, cause: root_cause(error) },
            None => Self::broken(host, error, sent),
        }
    }

    pub(crate) fn broken(host: String, error: &(dyn Error + 'static), sent: bool) -> Self {
        Self::Broken { host, cause: root_cause(error), sent }
    }
}

/// `300 s`, `50 ms`.
fn in_words(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    error.downcast_ref().or_else(|| find(error.source()?))
}

fn root_cause(error: &(dyn Error + 'static)) -> String {
    match error.source() {
        Some(source) => root_cause(source),
        None => error.downcast_ref().map_or_else(|| error.to_string(), io_cause),
    }
}

fn io_cause(error: &io::Error) -> String {
    // `connection refused` rather than `Connection refused (os error 111)`, where there is such a name.
    if error.raw_os_error().is_some() && !matches!(error.kind(), io::ErrorKind::Other) {
        let name = error.kind().to_string();
        if name != "uncategorized error" {
            return name;
        }
    }
    error.to_string()
}
