//! `/api/keys`: who may come in. For administrators only.

use std::collections::BTreeSet;

use axum::Json as Answer;
use axum::extract::State;
use http::{Method, StatusCode};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchboard_access::{Grant, KeyInfo, Refused};
use switchboard_exchange::CommandError;

use super::openapi::{Api, Operation};
use crate::extract::{Calling, Json, Path};
use crate::problem::Problem;
use crate::serve::Door;

pub(super) fn add_to(api: Api) -> Api {
    api.route(
        Method::GET,
        "/api/keys",
        list,
        Operation::of("All keys, oldest first, also those that are no longer valid").answers::<Keys>(200),
    )
    .route(
        Method::POST,
        "/api/keys",
        create,
        Operation::of("Make a key. Its secret is in the answer and nowhere else")
            .takes::<NewKey>()
            .answers::<Created>(201),
    )
    .route(
        Method::DELETE,
        "/api/keys/{key}",
        revoke,
        Operation::of("End a key").path("key", "Its id or name").answers::<Revoked>(200),
    )
}

/// All keys.
#[derive(Debug, Serialize, JsonSchema)]
struct Keys {
    keys: Vec<KeyView>,
}

/// What may be known of a key.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Key")]
struct KeyView {
    /// Its public part.
    id: String,
    /// What its owner calls it.
    name: String,
    /// What its holder may use.
    grant: GrantView,
    /// When it was made.
    created_at: String,
    /// From when on it is refused; none for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Since when it is refused because its owner said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
}

/// What the holder of a key may use. Everything, unless it is bound.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Grant")]
#[serde(deny_unknown_fields, default)]
struct GrantView {
    /// The projects; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    projects: Option<BTreeSet<String>>,
    /// The toolsets; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    toolsets: Option<BTreeSet<String>>,
    /// Whether it may make, list and end keys.
    admin: bool,
}

impl From<KeyInfo> for KeyView {
    fn from(key: KeyInfo) -> Self {
        let Grant { projects, toolsets, admin } = (*key.grant).clone();
        Self {
            id: key.id.to_string(),
            name: key.name.to_string(),
            grant: GrantView { projects, toolsets, admin },
            created_at: key.created_at.to_string(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
        }
    }
}

async fn list(State(door): State<Door>, Calling(caller): Calling) -> Result<Answer<Keys>, Problem> {
    caller.may_administer()?;
    let keys = door.app.access.list().await.map_err(problem)?;
    Ok(Answer(Keys { keys: keys.into_iter().map(KeyView::from).collect() }))
}

/// A key to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// What you call it.
    name: String,
    /// What its holder may use. Default: everything but keys.
    #[serde(default)]
    grant: GrantView,
    /// From when on it is refused, such as `2027-01-31T00:00:00Z`. Default: never.
    #[schemars(with = "Option<String>")]
    expires_at: Option<Timestamp>,
}

/// A key that was made.
#[derive(Debug, Serialize, JsonSchema)]
struct Created {
    key: KeyView,
    /// What its holder sends: `Authorization: Bearer <this>`. Shown once.
    bearer: String,
}

async fn create(
    State(door): State<Door>,
    Calling(caller): Calling,
    Json(wish): Json<NewKey>,
) -> Result<(StatusCode, Answer<Created>), Problem> {
    caller.may_administer()?;
    let GrantView { projects, toolsets, admin } = wish.grant;
    for toolset in toolsets.iter().flatten() {
        if !door.app.registry.toolsets().any(|known| known.name == toolset) {
            return Err(unknown_toolset(&door, toolset));
        }
    }
    let grant = Grant { projects, toolsets, admin };
    let (key, bearer) = door.app.access.create(&wish.name, grant, wish.expires_at).await.map_err(problem)?;
    Ok((StatusCode::CREATED, Answer(Created { key: key.into(), bearer })))
}

/// A key that was ended.
#[derive(Debug, Serialize, JsonSchema)]
struct Revoked {
    key: KeyView,
}

async fn revoke(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(key): Path,
) -> Result<Answer<Revoked>, Problem> {
    caller.may_administer()?;
    let key = door.app.access.revoke(&key).await.map_err(problem)?;
    Ok(Answer(Revoked { key: key.into() }))
}

fn problem(error: CommandError<Refused>) -> Problem {
    let message = error.to_string();
    match error {
        CommandError::Rejected(refused) => refused_problem(&refused, message),
        CommandError::Busy { .. } => Problem::busy(message),
        CommandError::TooLarge(_) => Problem::bad_request("too_large", message),
        CommandError::IdReused { .. } => Problem::new(StatusCode::CONFLICT, "command_id_reused", message),
        CommandError::Stopping
        | CommandError::Unknown(_)
        | CommandError::Unavailable(_)
        | CommandError::Unreadable(_)
        | CommandError::Damaged { .. } => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", message)
        }
    }
}

fn refused_problem(refused: &Refused, message: String) -> Problem {
    match refused {
        Refused::Unknown { .. } => Problem::not_found(message).hint("GET /api/keys lists the keys"),
        Refused::NameTaken { .. } | Refused::IdTaken { .. } | Refused::TooMany => {
            Problem::new(StatusCode::CONFLICT, "refused", message)
        }
        Refused::BadName { .. }
        | Refused::ReservedName { .. }
        | Refused::EmptyGrant { .. }
        | Refused::LargeGrant { .. }
        | Refused::BadGrantName { .. }
        | Refused::ExpiresInThePast { .. } => Problem::bad_request("refused", message),
    }
}

fn unknown_toolset(door: &Door, name: &str) -> Problem {
    let known: Vec<_> = door.app.registry.toolsets().map(|toolset| toolset.name).collect();
    Problem::bad_request("unknown_toolset", format!("there is no toolset '{name}'"))
        .hint(format!("there are: {}", known.join(", ")))
}
