//! How everything but MCP says that something went wrong.

use std::borrow::Cow;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use switchboard_access::Denied;

/// An answer that says what is wrong and what would be right: `{"error":{"code","message","hint"}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
}

/// The body of every answer with a status of 400 or more.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProblemBody {
    error: ProblemText,
}

/// What is wrong.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
struct ProblemText {
    /// A stable name for this kind of problem.
    code: Cow<'static, str>,
    /// What is wrong.
    message: String,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// What clients read.
    pub(crate) fn body(&self) -> ProblemBody {
        ProblemBody {
            error: ProblemText {
                code: self.code.into(),
                message: self.message.clone().into_owned(),
                hint: self.hint.clone().map(Cow::into_owned),
            },
        }
    }

    /// Something has as many as it may have, for now.
    pub(crate) fn busy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).hint("try again in a second")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        Self::new(StatusCode::FORBIDDEN, "denied", denied.to_string())
            .hint("use a key whose grant includes it; `switchboard key list` shows what each key may use")
    }
}

impl From<crate::limits::BodyError> for Problem {
    fn from(error: crate::limits::BodyError) -> Self {
        use crate::limits::BodyError;
        let (status, code) = match error {
            BodyError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            BodyError::TooSlow { .. } => (StatusCode::REQUEST_TIMEOUT, "body_too_slow"),
            BodyError::Broken => (StatusCode::BAD_REQUEST, "body_incomplete"),
        };
        Self::new(status, code, error.to_string())
    }
}
