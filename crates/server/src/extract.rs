//! What REST handlers take from a request, with our own words where it is not what it should be.

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;
use switchboard_access::Caller;

use crate::limits::{is_nested_deeper, read_body};
use crate::problem::Problem;
use crate::serve::Door;

/// Who calls, as the guard found.
pub(crate) struct Calling(pub(crate) Caller);

impl FromRequestParts<Door> for Calling {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _door: &Door) -> Result<Self, Problem> {
        parts.extensions.get::<Caller>().cloned().map(Self).ok_or_else(|| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "nobody checked who calls")
        })
    }
}

/// The parameters after the `?`.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Door> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _door: &Door) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri).map(|axum::extract::Query(query)| Self(query)).map_err(
            |rejection| {
                Problem::bad_request("bad_query", rejection.body_text())
                    .hint("/api/openapi.json describes the parameters")
            },
        )
    }
}

/// The variable part of the path.
pub(crate) struct Path(pub(crate) String);

impl FromRequestParts<Door> for Path {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Problem> {
        axum::extract::Path::from_request_parts(parts, door)
            .await
            .map(|axum::extract::Path(name)| Self(name))
            .map_err(|rejection| Problem::bad_request("bad_path", rejection.body_text()))
    }
}

/// The body, as JSON. An empty body is an empty object.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Door> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, door: &Door) -> Result<Self, Problem> {
        let limits = &door.app.options.limits;
        let (head, body) = request.into_parts();
        let body = read_body(&head.headers, body, limits).await?;
        if is_nested_deeper(&body, limits.json_depth) {
            let message = format!(
                "the JSON is nested more deeply than {} levels (limits.json_depth)",
                limits.json_depth
            );
            return Err(Problem::bad_request("json_too_deep", message));
        }
        let body = if body.is_empty() { &b"{}"[..] } else { &body[..] };
        serde_json::from_slice(body).map(Self).map_err(|error| {
            Problem::bad_request("bad_json", format!("the body is not what it should be: {error}"))
                .hint("/api/openapi.json describes it")
        })
    }
}
