//! `/api/schedules` and `/api/occurrences`: wake-up calls, and what became of them.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchboard_schedule::{Cancelled, ScheduleId, Status};
use switchboard_tools::schedule::{
    ChangeWish, ImportWish, Imported, OccurrenceView, PreviewWish, ScheduleView, UpcomingView, Which, Wish,
};

use super::openapi::{Api, Operation};
use super::refusal::schedule_problem;
use super::tools::command_id;
use crate::extract::{Calling, Json, Path, Query};
use crate::problem::Problem;
use crate::serve::Door;

/// How many schedules or occurrences are listed if the client does not say.
const PAGE: usize = 100;

/// How many are listed at most.
const LARGEST_PAGE: usize = 1_000;

/// How many due times are shown of a schedule.
const SHOWN: usize = 3;

/// How many schedules are imported at once, at most.
const LARGEST_IMPORT: usize = 1_000;

/// How long a client may wait for what comes of a schedule that it runs.
const LONGEST_WAIT: Duration = Duration::from_secs(45);

pub(super) fn add_to(api: Api) -> Api {
    let of_one = |summary| Operation::of(summary).path("id", "Its number");
    let steer = |summary| of_one(summary).answers::<One>(200);
    api.route(
        Method::GET,
        "/api/schedules",
        list,
        Operation::of("Schedules, whoever made them, oldest first").query::<ListQuery>().answers::<List>(200),
    )
    .route(
        Method::POST,
        "/api/schedules",
        create,
        Operation::of("Have a target called later: once, by cron, or every so often")
            .takes::<Wish>()
            .answers::<Upcoming>(201),
    )
    .route(
        Method::POST,
        "/api/schedules/preview",
        preview,
        Operation::of("When a timing would be due").takes::<PreviewWish>().answers::<Preview>(200),
    )
    .route(
        Method::POST,
        "/api/schedules/import",
        import,
        Operation::of("Take over schedules that were kept elsewhere, or say what that would come to")
            .takes::<ImportBody>()
            .answers::<ImportAnswer>(200),
    )
    .route(
        Method::GET,
        "/api/schedules/{id}",
        get,
        of_one("A schedule, when it is due next, and what became of its latest due times")
            .query::<HistoryQuery>()
            .answers::<Whole>(200),
    )
    .route(
        Method::PATCH,
        "/api/schedules/{id}",
        update,
        of_one("Change a schedule; what is left out stays. Its target cannot be changed")
            .takes::<ChangeWish>()
            .answers::<Upcoming>(200),
    )
    .route(
        Method::DELETE,
        "/api/schedules/{id}",
        delete,
        of_one("End a schedule, and forget it with its history").answers::<Gone>(200),
    )
    .route(Method::POST, "/api/schedules/{id}/pause", pause, steer("Nothing is due until it is resumed"))
    .route(
        Method::POST,
        "/api/schedules/{id}/resume",
        resume,
        steer("Let a paused schedule go on; times that passed meanwhile are skipped"),
    )
    .route(
        Method::POST,
        "/api/schedules/{id}/cancel",
        cancel,
        of_one("End a schedule for good. It is kept for a while, to be looked at").answers::<Gone>(200),
    )
    .route(
        Method::POST,
        "/api/schedules/{id}/run",
        run,
        of_one("Call its target once, now, beside its timing").query::<RunQuery>().answers::<Ran>(200),
    )
    .route(
        Method::GET,
        "/api/occurrences",
        occurrences,
        Operation::of("What became of the latest due times of all schedules, newest first")
            .query::<Limit>()
            .answers::<Occurrences>(200),
    )
}

/// Which schedules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// `all`, or some of `active`, `paused`, `completed`, `cancelled` and `failed`, joined by commas. Default:
    /// `active,paused`.
    status: Option<String>,
    /// Only those that call this kind of target: `topic`, `inbox`, `letta`, `webhook` or `tool`.
    kind: Option<String>,
    /// Only those that call this destination.
    to: Option<String>,
    /// Only those made after this one: `next` of the page before.
    after: Option<u64>,
    /// How many at most: 1 to 1000. Default: 100.
    limit: Option<usize>,
}

/// How much of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Limit {
    /// How many at most: 1 to 1000. Default: 100.
    limit: Option<usize>,
}

fn checked(name: &str, number: Option<usize>, least: usize, default: usize) -> Result<usize, Problem> {
    let number = number.unwrap_or(default);
    if (least..=LARGEST_PAGE).contains(&number) {
        return Ok(number);
    }
    let message = format!("{name} is {number}, it must be {least} to {LARGEST_PAGE}");
    Err(Problem::bad_request("bad_query", message))
}

const STATUSES: [Status; 5] =
    [Status::Active, Status::Paused, Status::Completed, Status::Cancelled, Status::Failed];

fn statuses(text: Option<&str>) -> Result<Vec<Status>, Problem> {
    let of = |word: &str| {
        let found = STATUSES.into_iter().find(|status| status.to_string() == word);
        found.ok_or_else(|| {
            let known = STATUSES.map(|status| status.to_string()).join(", ");
            Problem::bad_request("bad_query", format!("'{word}' is no status: there are {known}, and all"))
        })
    };
    match text {
        None => Ok(vec![Status::Active, Status::Paused]),
        Some("all") => Ok(Vec::new()),
        Some(words) => words.split(',').map(|word| of(word.trim())).collect(),
    }
}

/// The schedule that a path names.
fn id_of(text: &str) -> Result<ScheduleId, Problem> {
    text.parse().map_err(|_| {
        Problem::bad_request("bad_path", format!("'{text}' is no number of a schedule"))
            .hint("GET /api/schedules lists the schedules")
    })
}

/// One page of the schedules.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schedules")]
struct List {
    schedules: Vec<ScheduleView>,
    /// Give this as `after` for the next page; none on the last.
    next: Option<u64>,
}

async fn list(
    State(door): State<Door>,
    Calling(caller): Calling,
    Query(query): Query<ListQuery>,
) -> Result<Answer<List>, Problem> {
    let which = Which {
        status: statuses(query.status.as_deref())?,
        kind: query.kind,
        to: query.to,
        after: query.after,
        limit: checked("limit", query.limit, 1, PAGE)?,
    };
    let listed = door.app.scheduling.list(&caller, which).await.map_err(schedule_problem)?;
    Ok(Answer(List { schedules: listed.schedules, next: listed.next }))
}

/// A schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OneSchedule")]
struct One {
    schedule: ScheduleView,
}

/// A schedule, and when it is due next.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleAndUpcoming")]
struct Upcoming {
    schedule: ScheduleView,
    upcoming: Vec<UpcomingView>,
}

async fn create(
    State(door): State<Door>,
    Calling(caller): Calling,
    headers: HeaderMap,
    Json(wish): Json<Wish>,
) -> Result<(StatusCode, Answer<Upcoming>), Problem> {
    let created = door.app.scheduling.create(&caller, &wish, SHOWN, command_id(&headers)?).await;
    let (schedule, upcoming) = created.map_err(schedule_problem)?;
    Ok((StatusCode::CREATED, Answer(Upcoming { schedule, upcoming })))
}

async fn update(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    headers: HeaderMap,
    Json(wish): Json<ChangeWish>,
) -> Result<Answer<Upcoming>, Problem> {
    let id = id_of(&id)?;
    let scheduling = &door.app.scheduling;
    let schedule =
        scheduling.update(&caller, id, &wish, command_id(&headers)?).await.map_err(schedule_problem)?;
    let upcoming = scheduling.upcoming(&caller, id, SHOWN).await.map_err(schedule_problem)?;
    Ok(Answer(Upcoming { schedule, upcoming }))
}

/// When a timing would be due.
#[derive(Debug, Serialize, JsonSchema)]
struct Preview {
    /// The zone on whose clock local times were read.
    time_zone: String,
    upcoming: Vec<UpcomingView>,
}

async fn preview(
    State(door): State<Door>,
    Calling(caller): Calling,
    Json(wish): Json<PreviewWish>,
) -> Result<Answer<Preview>, Problem> {
    let (time_zone, upcoming) = door.app.scheduling.preview(&caller, &wish).map_err(schedule_problem)?;
    Ok(Answer(Preview { time_zone, upcoming }))
}

/// How much is shown of what became of due times.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HistoryQuery {
    /// How many past occurrences: 0 to 1000. Default: 20.
    history: Option<usize>,
}

/// A schedule, and its occurrences.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WholeSchedule")]
struct Whole {
    schedule: ScheduleView,
    upcoming: Vec<UpcomingView>,
    /// What became of its due times, newest first.
    occurrences: Vec<OccurrenceView>,
}

async fn get(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    Query(query): Query<HistoryQuery>,
) -> Result<Answer<Whole>, Problem> {
    let (id, history) = (id_of(&id)?, checked("history", query.history, 0, 20)?);
    let scheduling = &door.app.scheduling;
    let (schedule, occurrences) = scheduling.get(&caller, id, history).await.map_err(schedule_problem)?;
    let upcoming = scheduling.upcoming(&caller, id, SHOWN).await.map_err(schedule_problem)?;
    Ok(Answer(Whole { schedule, upcoming, occurrences }))
}

async fn pause(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    headers: HeaderMap,
) -> Result<Answer<One>, Problem> {
    let paused = door.app.scheduling.pause(&caller, id_of(&id)?, command_id(&headers)?).await;
    Ok(Answer(One { schedule: paused.map_err(schedule_problem)? }))
}

async fn resume(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    headers: HeaderMap,
) -> Result<Answer<One>, Problem> {
    let resumed = door.app.scheduling.resume(&caller, id_of(&id)?, command_id(&headers)?).await;
    Ok(Answer(One { schedule: resumed.map_err(schedule_problem)? }))
}

/// A schedule that is over.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndedSchedule")]
struct Gone {
    id: u64,
    /// `cancelled` or `deleted`.
    status: &'static str,
    /// It was cancelled before.
    #[serde(skip_serializing_if = "Option::is_none")]
    was_cancelled_before: Option<bool>,
}

async fn cancel(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    headers: HeaderMap,
) -> Result<Answer<Gone>, Problem> {
    let id = id_of(&id)?;
    let cancelled = door.app.scheduling.cancel(&caller, id, command_id(&headers)?).await;
    let before = cancelled.map_err(schedule_problem)? == Cancelled::Before;
    Ok(Answer(Gone { id: id.get(), status: "cancelled", was_cancelled_before: Some(before) }))
}

async fn delete(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    headers: HeaderMap,
) -> Result<Answer<Gone>, Problem> {
    let id = id_of(&id)?;
    door.app.scheduling.delete(&caller, id, command_id(&headers)?).await.map_err(schedule_problem)?;
    Ok(Answer(Gone { id: id.get(), status: "deleted", was_cancelled_before: None }))
}

/// Whether to wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunQuery {
    /// How many seconds to wait for what comes of it: 0 to 45. Default: 0.
    wait_seconds: Option<u64>,
}

/// A schedule that was run by hand.
#[derive(Debug, Serialize, JsonSchema)]
struct Ran {
    id: u64,
    /// What tells this occurrence from others.
    due: String,
    /// Whether `occurrence` says what came of it; else it is under way.
    over: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrence: Option<OccurrenceView>,
}

async fn run(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(id): Path,
    Query(query): Query<RunQuery>,
    headers: HeaderMap,
) -> Result<Answer<Ran>, Problem> {
    let id = id_of(&id)?;
    let wait = Duration::from_secs(query.wait_seconds.unwrap_or(0));
    if wait > LONGEST_WAIT {
        let message = format!("wait_seconds must be 0 to {}", LONGEST_WAIT.as_secs());
        return Err(Problem::bad_request("bad_query", message)
            .hint("GET /api/schedules/{id} shows later what came of it"));
    }
    let scheduling = &door.app.scheduling;
    let occurrence =
        scheduling.run_now(&caller, id, command_id(&headers)?).await.map_err(schedule_problem)?;
    let settled = tokio::select! {
        settled = tokio::time::timeout(wait, scheduling.settled(occurrence)) => settled.ok(),
        () = door.app.stop.cancelled() => None,
    };
    let settled = settled.transpose().map_err(schedule_problem)?.flatten();
    let due = Timestamp::from_millisecond(occurrence.due_ms).unwrap_or_default().to_string();
    Ok(Answer(Ran { id: id.get(), due, over: settled.is_some(), occurrence: settled }))
}

/// What became of due times.
#[derive(Debug, Serialize, JsonSchema)]
struct Occurrences {
    occurrences: Vec<OccurrenceView>,
}

async fn occurrences(
    State(door): State<Door>,
    Calling(caller): Calling,
    Query(limit): Query<Limit>,
) -> Result<Answer<Occurrences>, Problem> {
    let limit = checked("limit", limit.limit, 1, PAGE)?;
    let occurrences = door.app.scheduling.occurrences(&caller, limit).await.map_err(schedule_problem)?;
    Ok(Answer(Occurrences { occurrences }))
}

/// Schedules to be taken over.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImportBody {
    /// At most 1000.
    schedules: Vec<ImportWish>,
    /// Really take them over. Default: only say what that would come to.
    #[serde(default)]
    apply: bool,
}

/// What was made of each, in their order.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ImportedSchedules")]
struct ImportAnswer {
    schedules: Vec<ImportedView>,
}

/// What was made of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ImportedSchedule")]
struct ImportedView {
    /// `imported`, `new` (it would be imported), `imported_before` or `refused`.
    outcome: &'static str,
    /// Its number here.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// Why it cannot be kept here.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl From<Imported> for ImportedView {
    fn from(imported: Imported) -> Self {
        match imported {
            Imported::Made(Some(id)) => Self { outcome: "imported", id: Some(id), why: None },
            Imported::Made(None) => Self { outcome: "new", id: None, why: None },
            Imported::Before(id) => Self { outcome: "imported_before", id: Some(id), why: None },
            Imported::Refused(why) => Self { outcome: "refused", id: None, why: Some(why) },
        }
    }
}

async fn import(
    State(door): State<Door>,
    Calling(caller): Calling,
    Json(body): Json<ImportBody>,
) -> Result<Answer<ImportAnswer>, Problem> {
    if body.schedules.len() > LARGEST_IMPORT {
        let message =
            format!("{} schedules are too many at once: send at most {LARGEST_IMPORT}", body.schedules.len());
        return Err(Problem::bad_request("too_many", message));
    }
    let imported = door.app.scheduling.import(&caller, &body.schedules, body.apply).await;
    let schedules = imported.map_err(schedule_problem)?.into_iter().map(ImportedView::from).collect();
    Ok(Answer(ImportAnswer { schedules }))
}
