//! `POST /api/coordination/check`: the question that hooks ask before an edit or a commit.

use axum::Json as Answer;
use axum::extract::State;
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchboard_coordination::{CheckWrite, FilePath, Name, WriteReason};

use super::openapi::{Api, Operation};
use super::projects::name_of;
use super::refusal::problem;
use super::views::LockView;
use crate::extract::{Calling, Json};
use crate::problem::Problem;
use crate::serve::Door;

pub(super) fn add_to(api: Api) -> Api {
    api.route(
        Method::POST,
        "/api/coordination/check",
        check,
        Operation::of("May a session write a path now? Made for hooks before an edit or a commit")
            .takes::<Check>()
            .answers::<Checked>(200),
    )
}

/// May `session` write `path` now?
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// The project's id.
    project: String,
    /// Who wants to write; none for somebody who holds no lock.
    session: Option<String>,
    /// The file, relative to the project's root.
    path: String,
    /// The fencing token under which the session believes to hold the file.
    token: Option<u64>,
    /// Whether a file that nobody holds may not be written either. Default: false.
    #[serde(default)]
    must_hold: bool,
}

/// Whether it may.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// Whether it may.
    allowed: bool,
    /// `yours`, `free`, `locked_by_other` or `stale_token`.
    reason: &'static str,
    /// The lock that decides; none if there is none.
    lock: Option<LockView>,
}

async fn check(
    State(door): State<Door>,
    Calling(caller): Calling,
    Json(check): Json<Check>,
) -> Result<Answer<Checked>, Problem> {
    caller.may_use_project(&check.project)?;
    let bad_path = |why| Problem::bad_request("bad_path", format!("'{}': {why}", check.path));
    let bad_session = |why| Problem::bad_request("bad_session", format!("a session {why}"));
    let question = CheckWrite {
        session: check.session.as_deref().map(Name::new).transpose().map_err(bad_session)?,
        path: FilePath::parse(&check.path).map_err(bad_path)?,
        token: check.token,
        must_hold: check.must_hold,
    };
    let may = door.app.coordination.send(&name_of(&check.project)?, question, None).await.map_err(problem)?;
    Ok(Answer(Checked {
        allowed: may.allowed,
        reason: match may.reason {
            WriteReason::Yours => "yours",
            WriteReason::Free => "free",
            WriteReason::LockedByOther => "locked_by_other",
            WriteReason::StaleToken => "stale_token",
        },
        lock: may.lock.map(LockView::from),
    }))
}
