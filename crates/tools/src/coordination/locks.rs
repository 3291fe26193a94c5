//! `lock_acquire`, `lock_wait`, `lock_leave`, `lock_renew`, `lock_release`, `lock_check`, `lock_list`, `change_list`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    Acquire, Acquired, ChangeType, CheckWrite, ClaimTicket, Coordination, FilePath, LeaveLine, ListLocks,
    Name, RecentChanges, ReleaseLock, Released, RenewLock, Scope, Ttl,
};
use switchboard_exchange::SignedDuration;

use super::answer::Failure;
use super::tool::{Call, in_project, tool};
use crate::input::{BadArguments, NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            "lock_acquire",
            "Acquire lock",
            "Lock a file, a folder (src/api/) or a glob (src/**/*.rs) before you edit. If it is taken, wait_seconds waits \
             in line, first come first served.",
            Annotations::WRITES,
            acquire,
        ),
        tool(
            coordination,
            "lock_wait",
            "Wait for lock",
            "Go on waiting with a ticket, or take the lock that was granted to it.",
            Annotations::WRITES,
            wait,
        ),
        tool(
            coordination,
            "lock_leave",
            "Leave line",
            "Give up your place in the line for a lock.",
            Annotations::WRITES,
            leave,
        ),
        tool(coordination, "lock_renew", "Renew lock", "Keep a lock for longer.", Annotations::SETS, renew),
        tool(
            coordination,
            "lock_release",
            "Release lock",
            "Release a lock as soon as you are done.",
            Annotations::WRITES,
            release,
        ),
        tool(
            coordination,
            "lock_check",
            "Check lock",
            "May a session write a path now?",
            Annotations::READS,
            check,
        ),
        tool(
            coordination,
            "lock_list",
            "List locks",
            "Who holds which locks, and who waits.",
            Annotations::READS,
            list,
        ),
        tool(
            coordination,
            "change_list",
            "List changes",
            "What was locked for change lately, newest first.",
            Annotations::READS,
            changes,
        ),
    ]
}

/// A path as a lock's scope. Wildcards are `*`, `?`, `**` and `{a,b}`, unless the path is to be taken literally.
fn scope(path: &Name, literal: bool) -> Result<Scope, BadArguments> {
    let scope = if literal {
        FilePath::parse(path.as_str()).map(Scope::literal)
    } else {
        Scope::parse(path.as_str())
    };
    scope.map_err(|why| BadArguments::invalid("path", why))
}

fn ttl(seconds: Option<i64>) -> Result<Option<Ttl>, BadArguments> {
    seconds.map(Ttl::from_seconds).transpose().map_err(|why| BadArguments::invalid("ttl_seconds", why))
}

fn token(given: Option<i64>) -> Result<Option<u64>, BadArguments> {
    given
        .map(u64::try_from)
        .transpose()
        .map_err(|_| BadArguments::invalid("token", "must be the number that lock_acquire gave"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChangeInput {
    Create,
    Modify,
    Delete,
    Refactor,
}

#[derive(Deserialize, JsonSchema)]
struct AcquireInput {
    project: NameParam,
    session: NameParam,
    path: NameParam,
    /// Take * ? { } in path literally
    #[serde(default)]
    literal: bool,
    /// Default: modify
    #[serde(default)]
    change: Option<ChangeInput>,
    /// What you are about to do
    #[serde(default)]
    description: Option<TextParam>,
    /// Lapses after so long unless renewed; default: never
    #[serde(default)]
    ttl_seconds: Option<i64>,
    /// 0-45
    #[serde(default)]
    wait_seconds: i64,
}

async fn acquire(call: Call, input: AcquireInput) -> Result<Value, Failure> {
    let path = input.path.0;
    let patience = call.patience(input.wait_seconds, format!("in line for {path}"))?;
    let wish = Acquire {
        session: input.session.0,
        scope: scope(&path, input.literal)?,
        path,
        change_type: match input.change {
            Some(ChangeInput::Create) => ChangeType::Create,
            Some(ChangeInput::Modify) | None => ChangeType::Modify,
            Some(ChangeInput::Delete) => ChangeType::Delete,
            Some(ChangeInput::Refactor) => ChangeType::Refactor,
        },
        description: input.description.map(|text| text.0).unwrap_or_default(),
        ttl: ttl(input.ttl_seconds)?,
        wait: false,
    };
    let id = call.context.command_id.clone();
    Ok(shown(&call.coordination.acquire(&call.project, wish, patience.as_ref(), id).await?))
}

fn shown(acquired: &Acquired) -> Value {
    match acquired {
        Acquired::Granted(grant) => json!({
            "status": "granted",
            "path": grant.path,
            "token": grant.token,
            "expires_at": grant.expires_at,
        }),
        Acquired::Waiting(ticket) => json!({
            "status": "waiting",
            "path": ticket.path,
            "ticket": ticket.id.to_string(),
            "place": ticket.place,
            "held_by": ticket.held_by,
            "next": "call lock_wait with this ticket; your place is kept",
        }),
    }
}

#[derive(Deserialize, JsonSchema)]
struct WaitInput {
    project: NameParam,
    session: NameParam,
    ticket: NameParam,
    /// 0-45
    #[serde(default = "thirty")]
    wait_seconds: i64,
}

const fn thirty() -> i64 {
    30
}

async fn wait(call: Call, input: WaitInput) -> Result<Value, Failure> {
    let (session, ticket) = (input.session.0, input.ticket.0);
    let patience = call.patience(input.wait_seconds, "in line for a lock".to_owned())?;
    let acquired = match patience {
        Some(patience) => {
            call.coordination.wait_for_lock(&call.project, &session, ticket.as_str(), &patience).await?
        }
        None => call.send(ClaimTicket { session, ticket: ticket.as_str().to_owned() }).await?,
    };
    Ok(shown(&acquired))
}

#[derive(Deserialize, JsonSchema)]
struct LeaveInput {
    project: NameParam,
    session: NameParam,
    ticket: NameParam,
}

async fn leave(call: Call, input: LeaveInput) -> Result<Value, Failure> {
    let ticket = input.ticket.0.as_str().to_owned();
    call.send(LeaveLine { session: input.session.0, ticket: ticket.clone() }).await?;
    Ok(json!({"status": "left", "ticket": ticket}))
}

#[derive(Deserialize, JsonSchema)]
struct RenewInput {
    project: NameParam,
    session: NameParam,
    path: NameParam,
    #[serde(default)]
    literal: bool,
    /// The grant's token, to be sure it is still yours
    #[serde(default)]
    token: Option<i64>,
    /// From now; default: never lapses
    #[serde(default)]
    ttl_seconds: Option<i64>,
}

async fn renew(call: Call, input: RenewInput) -> Result<Value, Failure> {
    let command = RenewLock {
        session: input.session.0,
        scope: scope(&input.path.0, input.literal)?,
        token: token(input.token)?,
        ttl: ttl(input.ttl_seconds)?,
    };
    Ok(shown(&Acquired::Granted(call.send(command).await?)))
}

#[derive(Deserialize, JsonSchema)]
struct ReleaseInput {
    project: NameParam,
    session: NameParam,
    path: NameParam,
    #[serde(default)]
    literal: bool,
    /// The grant's token, to be sure it is still yours
    #[serde(default)]
    token: Option<i64>,
}

async fn release(call: Call, input: ReleaseInput) -> Result<Value, Failure> {
    let scope = scope(&input.path.0, input.literal)?;
    let path = scope.as_str().to_owned();
    let command = ReleaseLock { session: input.session.0, scope, token: token(input.token)? };
    let status = match call.send(command).await? {
        Released::Released => "released",
        Released::NotLocked => "not_locked",
    };
    Ok(json!({"status": status, "path": path}))
}

#[derive(Deserialize, JsonSchema)]
struct CheckInput {
    project: NameParam,
    /// Who wants to write
    #[serde(default)]
    session: Option<NameParam>,
    /// One file
    path: NameParam,
    /// The token you believe to hold it by
    #[serde(default)]
    token: Option<i64>,
    /// Whether a file that nobody holds may not be written either
    #[serde(default)]
    must_hold: bool,
}

async fn check(call: Call, input: CheckInput) -> Result<Value, Failure> {
    let path = FilePath::parse(input.path.0.as_str()).map_err(|why| BadArguments::invalid("path", why))?;
    let command = CheckWrite {
        session: input.session.map(|session| session.0),
        path,
        token: token(input.token)?,
        must_hold: input.must_hold,
    };
    let may = call.send(command).await?;
    Ok(json!({"allowed": may.allowed, "reason": may.reason, "lock": may.lock}))
}

#[derive(Deserialize, JsonSchema)]
struct ListInput {
    project: NameParam,
    /// Only those that share files with this path
    #[serde(default)]
    within: Option<NameParam>,
}

async fn list(call: Call, input: ListInput) -> Result<Value, Failure> {
    let within = input.within.map(|path| Scope::parse(path.0.as_str())).transpose();
    let within = within.map_err(|why| BadArguments::invalid("within", why))?;
    let locks = call.send(ListLocks { within }).await?;
    Ok(json!({"held": locks.held, "waiting": locks.waiting}))
}

#[derive(Deserialize, JsonSchema)]
struct ChangesInput {
    project: NameParam,
    /// 1-100
    #[serde(default = "twenty")]
    limit: i64,
    /// Only the last minutes
    #[serde(default)]
    minutes: Option<i64>,
}

const fn twenty() -> i64 {
    20
}

async fn changes(call: Call, input: ChangesInput) -> Result<Value, Failure> {
    let limit = usize::try_from(input.limit)
        .ok()
        .filter(|limit| (1..=RecentChanges::KEPT).contains(limit))
        .ok_or_else(|| {
        BadArguments::invalid("limit", format_args!("must be 1 to {}", RecentChanges::KEPT))
    })?;
    let within = match input.minutes {
        None => None,
        Some(minutes) if (1..=525_600).contains(&minutes) => Some(SignedDuration::from_mins(minutes)),
        Some(_) => return Err(BadArguments::invalid("minutes", "must be 1 to 525600 (a year)").into()),
    };
    let changes = call.send(RecentChanges { limit, within }).await?;
    Ok(json!({"changes": changes}))
}

in_project!(
    AcquireInput,
    WaitInput,
    LeaveInput,
    RenewInput,
    ReleaseInput,
    CheckInput,
    ListInput,
    ChangesInput
);
