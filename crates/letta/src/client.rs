//! The client and what it is made with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use switchboard_outbound::{InvalidUrl, Outbound, parse_url};

/// What a [`Letta`] is made with.
#[derive(Clone)]
pub struct Options {
    /// Where Letta is: `http` or `https`, with or without a path and a slash at the end. Default: `http://localhost:8283`.
    pub base_url: String,
    /// The token. Surrounding white space does not count; empty is none.
    pub api_key: Option<String>,
    /// The token if there is no API key. Empty is none.
    pub server_password: Option<String>,
    /// The project that requests are made for. Empty is none.
    pub project: Option<String>,
    /// How long things take.
    pub timing: Timing,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            base_url: "http://localhost:8283".into(),
            api_key: None,
            server_password: None,
            project: None,
            timing: Timing::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The base URL may hold a password, by mistake.
        f.debug_struct("Options").field("project", &self.project).finish_non_exhaustive()
    }
}

/// How long a [`Letta`] waits. The defaults are the contract; others are for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Pauses before the second and the third attempt of a delivery. Default: 1 s, 2 s.
    pub pauses: [Duration; 2],
    /// For the reply to a prompt, redirects included: an agent may think long. Default: 300 s.
    pub reply: Duration,
    /// For all other calls. Default: 10 s.
    pub call: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            pauses: [Duration::from_secs(1), Duration::from_secs(2)],
            reply: Duration::from_mins(5),
            call: Duration::from_secs(10),
        }
    }
}

/// What is wrong with [`Options`]. No text repeats a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOptions {
    /// The base URL.
    #[error("LETTA_BASE_URL is not usable: {0}")]
    BaseUrl(InvalidUrl),
    /// The base URL has a query.
    #[error("LETTA_BASE_URL is not usable: it must not hold a query (?)")]
    Query,
    /// The token.
    #[error("LETTA_API_KEY or LETTA_SERVER_PASSWORD holds a character that a header field cannot")]
    Token,
    /// The project.
    #[error("LETTA_PROJECT holds a character that a header field cannot")]
    Project,
}

/// A Letta server. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Letta {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) base_url: String,
    pub(crate) base: Uri,
    pub(crate) token: Option<String>,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) project: Option<HeaderValue>,
    pub(crate) timing: Timing,
    pub(crate) out: Outbound,
}

impl Letta {
    /// The server that `options` say. Connects to nothing yet.
    pub fn new(options: Options) -> Result<Self, InvalidOptions> {
        let base_url = options.base_url.trim().trim_end_matches('/').to_owned();
        let base = parse_url(&base_url).map_err(InvalidOptions::BaseUrl)?;
        if base.query().is_some() {
            return Err(InvalidOptions::Query);
        }
        let token = given(options.api_key).or_else(|| given(options.server_password));
        let authorization = token.as_ref().map(|token| header(&format!("Bearer {token}"))).transpose();
        let project = given(options.project).map(|project| header(&project)).transpose();
        let shared = Shared {
            base_url,
            base,
            token,
            authorization: authorization.map_err(|()| InvalidOptions::Token)?,
            project: project.map_err(|()| InvalidOptions::Project)?,
            timing: options.timing,
            out: Outbound::new(switchboard_outbound::Options::default()),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Where it is, without a slash at the end.
    pub fn base_url(&self) -> &str {
        &self.shared.base_url
    }

    /// Whether there is a token. Without one requests go out without it, which an unsecured server accepts.
    pub fn has_secret(&self) -> bool {
        self.shared.token.is_some()
    }
}

impl fmt::Debug for Letta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letta").field("base_url", &self.shared.base_url).finish_non_exhaustive()
    }
}

fn given(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn header(text: &str) -> Result<HeaderValue, ()> {
    let mut value = HeaderValue::from_str(text).map_err(|_| ())?;
    value.set_sensitive(true);
    Ok(value)
}
