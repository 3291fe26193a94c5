//! `/api/projects` and what is in them.

use std::num::NonZeroUsize;

use axum::Json as Answer;
use axum::extract::State;
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchboard_access::Caller;
use switchboard_coordination::{
    AllTodos, Coordination, ListAgents, ListInterfaces, ListLocks, ListMessages, Name, Project, RecentChanges,
};
use switchboard_exchange::{CommandError, Decide};
use switchboard_journal::{Seq, StreamId};

use super::openapi::{Api, Operation};
use super::refusal::problem;
use super::views::{
    AgentTodos, AgentView, Agents, ChangeView, Changes, InterfaceView, Interfaces, LockView, Locks,
    MessageView, Messages, Todos,
};
use crate::extract::{Calling, Path, Query};
use crate::problem::Problem;
use crate::serve::Door;

/// How many projects one page lists if the client does not say.
const PAGE: usize = 100;

/// How many projects one page lists at most.
const LARGEST_PAGE: usize = 1_000;

pub(super) fn add_to(api: Api) -> Api {
    let about = |summary| Operation::of(summary).path("project", "The project's id");
    api.route(
        Method::GET,
        "/api/projects",
        list,
        Operation::of("The projects that the caller may use, by name")
            .query::<Page>()
            .answers::<ProjectList>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}",
        show,
        about("What there is in a project, in numbers").answers::<ProjectView>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}/agents",
        agents,
        about("Who is registered, in the order of registration").answers::<Agents>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}/todos",
        todos,
        about("What every agent has to do").answers::<Todos>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}/locks",
        locks,
        about("Who holds which files, and who waits").answers::<Locks>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}/messages",
        messages,
        about("What became of the latest messages, newest first, without their texts")
            .query::<Limit>()
            .answers::<Messages>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}/interfaces",
        interfaces,
        about("The shared definitions").answers::<Interfaces>(200),
    )
    .route(
        Method::GET,
        "/api/projects/{project}/changes",
        changes,
        about("What was locked for change lately, newest first").query::<Limit>().answers::<Changes>(200),
    )
}

/// Which page of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Page {
    /// Only projects whose names come after this one: `next` of the page before.
    after: Option<String>,
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

fn checked_limit(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(PAGE);
    if (1..=LARGEST_PAGE).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::bad_request("bad_query", format!("limit is {limit}, it must be 1 to {LARGEST_PAGE}")))
}

/// One page of the projects.
#[derive(Debug, Serialize, JsonSchema)]
struct ProjectList {
    projects: Vec<ListedProject>,
    /// Give this as `after` for the next page; none on the last.
    next: Option<String>,
}

/// A project, in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedProject {
    /// Its id.
    id: String,
    /// The number of the last entry of its stream.
    entries: u64,
}

async fn list(
    State(door): State<Door>,
    Calling(caller): Calling,
    Query(page): Query<Page>,
) -> Result<Answer<ProjectList>, Problem> {
    let limit = checked_limit(page.limit)?;
    let mut projects = Vec::new();
    let mut after = page.after.map(|name| stream_of(&name)).transpose()?;
    let step = NonZeroUsize::new(LARGEST_PAGE).unwrap_or(NonZeroUsize::MIN);
    loop {
        let heads =
            door.app.coordination.exchange().streams(Coordination::STREAMS, after.as_ref(), step).await;
        let heads = heads.map_err(|error| problem(CommandError::Unreadable(error)))?;
        let is_last = heads.len() < step.get();
        for head in heads {
            if projects.len() == limit {
                let next = projects.last().map(|project: &ListedProject| project.id.clone());
                return Ok(Answer(ProjectList { projects, next }));
            }
            after = Some(head.stream.clone());
            let id = head.stream.as_str().strip_prefix(Coordination::STREAMS).unwrap_or_default();
            if caller.may_use_project(id).is_ok() {
                projects.push(ListedProject { id: id.to_owned(), entries: head.head.get() });
            }
        }
        if is_last {
            return Ok(Answer(ProjectList { projects, next: None }));
        }
    }
}

fn stream_of(project: &str) -> Result<StreamId, Problem> {
    Ok(Coordination::stream(&name_of(project)?))
}

pub(super) fn name_of(project: &str) -> Result<Name, Problem> {
    Name::new(project).map_err(|why| Problem::bad_request("bad_project", format!("a project's id {why}")))
}

/// A project that exists, and that the caller may use.
struct Known<'a> {
    door: &'a Door,
    name: Name,
    head: Seq,
}

impl<'a> Known<'a> {
    async fn new(door: &'a Door, caller: &Caller, project: &str) -> Result<Self, Problem> {
        caller.may_use_project(project)?;
        let name = name_of(project)?;
        let head = door.app.journal.head(&Coordination::stream(&name)).await;
        let head = head.map_err(|error| problem(CommandError::Unreadable(error)))?;
        // Only to look at a project must not call it into being.
        if head == Seq::START {
            return Err(Problem::not_found(format!("there is no project '{name}'"))
                .hint("a project begins with its first agent; /api/projects lists them"));
        }
        Ok(Self { door, name, head })
    }

    async fn ask<C>(&self, question: C) -> Result<<Project as Decide<C>>::Reply, Problem>
    where
        Project: Decide<C>,
        C: Send + 'static,
    {
        self.door.app.coordination.send(&self.name, question, None).await.map_err(problem)
    }
}

/// What there is in a project, in numbers.
#[derive(Debug, Serialize, JsonSchema)]
struct ProjectView {
    /// Its id.
    id: String,
    /// The number of the last entry of its stream, for `/api/events?stream=project/<id>&after=`.
    entries: u64,
    /// How many agents are registered.
    agents: usize,
    /// How many todos they have.
    todos: usize,
    /// How many locks are held.
    locks: usize,
    /// How many agents wait for one.
    waiting: usize,
    /// How many definitions are shared.
    interfaces: usize,
}

async fn show(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
) -> Result<Answer<ProjectView>, Problem> {
    let known = Known::new(&door, &caller, &project).await?;
    let todos = known.ask(AllTodos).await?;
    let locks = known.ask(ListLocks { within: None }).await?;
    let interfaces = known.ask(ListInterfaces).await?;
    Ok(Answer(ProjectView {
        id: project,
        entries: known.head.get(),
        agents: todos.len(),
        todos: todos.iter().map(|agent| agent.todos.len()).sum(),
        locks: locks.held.len(),
        waiting: locks.waiting.len(),
        interfaces: interfaces.len(),
    }))
}

async fn agents(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
) -> Result<Answer<Agents>, Problem> {
    let agents = Known::new(&door, &caller, &project).await?.ask(ListAgents).await?;
    Ok(Answer(Agents { agents: agents.into_iter().map(AgentView::from).collect() }))
}

async fn todos(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
) -> Result<Answer<Todos>, Problem> {
    let todos = Known::new(&door, &caller, &project).await?.ask(AllTodos).await?;
    Ok(Answer(Todos { agents: todos.into_iter().map(AgentTodos::from).collect() }))
}

async fn locks(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
) -> Result<Answer<Locks>, Problem> {
    let locks = Known::new(&door, &caller, &project).await?.ask(ListLocks { within: None }).await?;
    Ok(Answer(Locks {
        held: locks.held.into_iter().map(LockView::from).collect(),
        waiting: locks.waiting.into_iter().map(LockView::from).collect(),
    }))
}

async fn messages(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
    Query(query): Query<Limit>,
) -> Result<Answer<Messages>, Problem> {
    let limit = checked_limit(query.limit)?;
    let messages = Known::new(&door, &caller, &project).await?.ask(ListMessages { limit }).await?;
    Ok(Answer(Messages { messages: messages.into_iter().map(MessageView::from).collect() }))
}

async fn interfaces(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
) -> Result<Answer<Interfaces>, Problem> {
    let interfaces = Known::new(&door, &caller, &project).await?.ask(ListInterfaces).await?;
    Ok(Answer(Interfaces { interfaces: interfaces.into_iter().map(InterfaceView::from).collect() }))
}

async fn changes(
    State(door): State<Door>,
    Calling(caller): Calling,
    Path(project): Path,
    Query(query): Query<Limit>,
) -> Result<Answer<Changes>, Problem> {
    let limit = checked_limit(query.limit)?;
    let latest = RecentChanges { limit, within: None };
    let changes = Known::new(&door, &caller, &project).await?.ask(latest).await?;
    Ok(Answer(Changes { changes: changes.into_iter().map(ChangeView::from).collect() }))
}
