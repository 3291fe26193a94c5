//! `announce_file_change`, `release_file_lock`, `get_recent_changes` (contract §3.4).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    Acquire, Acquired, ChangeType, Coordination, FilePath, Name, RecentChanges, ReleaseLock, Released, Scope,
    Text,
};
use switchboard_exchange::SignedDuration;

use super::answer::{Failure, seconds};
use super::tool::{Call, Spec, in_project, tool};
use crate::input::{BadArguments, NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            Spec {
                name: "announce_file_change",
                title: "Announce file change",
                description: "Lock a file before you modify it.",
                annotations: Annotations::WRITES,
                aliases: &[("change_type", "operation")],
                may_be_absent: &[],
            },
            announce,
        ),
        tool(
            coordination,
            Spec {
                name: "release_file_lock",
                title: "Release file lock",
                description: "Release a file that you locked, right after the change.",
                annotations: Annotations::WRITES,
                aliases: &[],
                may_be_absent: &[],
            },
            release,
        ),
        tool(
            coordination,
            Spec {
                name: "get_recent_changes",
                title: "Get recent changes",
                description: "Recent file changes of all agents, newest first.",
                annotations: Annotations::READS,
                aliases: &[],
                may_be_absent: &[],
            },
            recent,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Announce {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
    /// Path to file
    file_path: NameParam,
    /// Type (create, modify, delete, refactor)
    change_type: String,
    /// Description of changes
    #[serde(default = "nothing")]
    #[schemars(default = "String::new")]
    description: TextParam,
}

fn nothing() -> TextParam {
    TextParam(Text::default())
}

/// In this catalogue a path is always one file, whatever characters it has.
fn one_file(path: &Name) -> Result<Scope, BadArguments> {
    FilePath::parse(path.as_str()).map(Scope::literal).map_err(|why| BadArguments::invalid("file_path", why))
}

fn change_type(word: &str) -> Result<ChangeType, BadArguments> {
    match word {
        "create" => Ok(ChangeType::Create),
        "modify" => Ok(ChangeType::Modify),
        "delete" => Ok(ChangeType::Delete),
        "refactor" => Ok(ChangeType::Refactor),
        _ => Err(BadArguments::invalid("change_type", "must be create, modify, delete or refactor")),
    }
}

async fn announce(call: Call, input: Announce) -> Result<Value, Failure> {
    let path = input.file_path.0;
    let wish = Acquire {
        session: input.session_name.0,
        scope: one_file(&path)?,
        path: path.clone(),
        change_type: change_type(&input.change_type)?,
        description: input.description.0,
        ttl: None,
        wait: false,
    };
    match call.send(wish).await? {
        Acquired::Granted(_) | Acquired::Waiting(_) => Ok(json!({
            "status": "locked",
            "file_path": path,
            "message": "File locked successfully. Remember to release when done.",
        })),
    }
}

#[derive(Deserialize, JsonSchema)]
struct ReleaseFile {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
    /// Path to file
    file_path: NameParam,
}

async fn release(call: Call, input: ReleaseFile) -> Result<Value, Failure> {
    let path = input.file_path.0;
    let command = ReleaseLock { session: input.session_name.0, scope: one_file(&path)?, token: None };
    Ok(match call.send(command).await? {
        Released::Released => json!({"status": "released", "file_path": path}),
        Released::NotLocked => json!({"status": "not_locked", "message": "File was not locked"}),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Recent {
    /// Project identifier
    project_id: NameParam,
    /// Maximum changes to return
    #[serde(default = "twenty")]
    limit: i64,
    #[serde(default)]
    #[schemars(skip)]
    minutes: Option<Value>,
}

const fn twenty() -> i64 {
    20
}

async fn recent(call: Call, input: Recent) -> Result<Value, Failure> {
    let limit = usize::try_from(input.limit).ok().filter(|limit| *limit >= 1);
    let limit = limit.ok_or_else(|| BadArguments::invalid("limit", "must be at least 1"))?;
    let within = input.minutes.as_ref().map(minutes).transpose()?;
    let changes = call.send(RecentChanges { limit: limit.min(RecentChanges::KEPT), within }).await?;
    let shown = changes.into_iter().map(|change| {
        json!({
            "session": change.session,
            "file_path": change.path,
            "change_type": change.change_type,
            "description": change.description,
            "timestamp": seconds(change.at),
        })
    });
    Ok(shown.collect())
}

fn minutes(value: &Value) -> Result<SignedDuration, BadArguments> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_i64(),
    };
    number
        .filter(|minutes: &i64| *minutes >= 1)
        .and_then(|minutes| minutes.checked_mul(60))
        .map(SignedDuration::from_secs)
        .ok_or_else(|| BadArguments::invalid("minutes", "must be an integer of at least 1"))
}

in_project!(Announce, ReleaseFile, Recent);
