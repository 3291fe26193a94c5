//! `GET /api/events`: what happens in one stream or several, as server-sent events that can be resumed.
//!
//! Every event's id is its position: the number of the entry, or, where several streams are followed, the numbers
//! reached in each, joined by commas in the order in which the streams were asked for. A client that comes back with
//! `Last-Event-ID` goes on there.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, BoxStream, SelectAll, StreamExt as _};
use http::{HeaderMap, Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_access::{Caller, Denied};
use switchboard_coordination::Coordination;
use switchboard_journal::{Entry, ReadError, Seq, StreamId, Tail};

use super::openapi::{Api, Operation};
use super::refusal::problem;
use crate::app::Core;
use crate::extract::Calling;
use crate::metrics::OneMore;
use crate::problem::Problem;
use crate::serve::Door;

/// How many streams one client follows at most with one request.
const STREAMS: usize = 16;

/// How often a client that hears nothing hears that it is still connected.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) fn add_to(api: Api) -> Api {
    api.route(
        Method::GET,
        "/api/events",
        events,
        Operation::of("Follow streams: every entry from a position on, and those to come").query::<Wish>().streams::<EntryView>(
            "Events `entry`, whose id is the position to resume from (send it as `Last-Event-ID`); `trimmed` where entries \
             are gone, which names the oldest that is left and goes on there; `unavailable` before the stream ends because \
             the journal cannot be read. Comments show that the connection lives.",
        ),
    )
}

/// What to follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(
    dead_code,
    reason = "describes the parameters, which may be repeated and are therefore read by hand"
)]
struct Wish {
    /// A stream, such as `project/shop`. May be repeated, up to 16 times.
    stream: String,
    /// Begin after this entry: 0 for the oldest. One number for each stream, joined by commas, or one for all. Default:
    /// only what is new.
    after: Option<String>,
}

/// One entry of a stream.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
struct EntryView {
    /// The stream.
    stream: StreamName,
    /// The entry's number in its stream.
    seq: u64,
    /// When it was decided. Absent if it was redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// What happened, each with a `type`.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    events: Vec<Box<RawValue>>,
    /// Whether its contents were removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

/// The name of a stream, shared by all its events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "String")]
struct StreamName(StreamId);

/// The part of an entry's text that clients are shown.
#[derive(Deserialize)]
struct Shown {
    at: Option<String>,
    #[serde(default)]
    events: Vec<Box<RawValue>>,
}

impl EntryView {
    fn of(stream: &StreamId, entry: &Entry) -> Self {
        let shown =
            serde_json::from_str(entry.payload.as_str()).unwrap_or(Shown { at: None, events: Vec::new() });
        Self {
            stream: StreamName(stream.clone()),
            seq: entry.seq.get(),
            at: shown.at,
            events: shown.events,
            redacted: entry.payload.is_redacted(),
        }
    }
}

async fn events(
    State(door): State<Door>,
    Calling(caller): Calling,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = parse(query.as_deref().unwrap_or_default(), &headers)?;
    for stream in &wish.streams {
        may_follow(&caller, stream)?;
    }
    let core = door.app.clone();
    let limit = core.options.limits.watchers;
    let Ok(place) = core.watchers.clone().try_acquire_owned() else {
        return Err(Problem::busy(format!(
            "{limit} clients follow streams, the most this server takes (limits.watchers)"
        )));
    };
    let positions = begin(&core, &wish).await?;
    let counted = (place, OneMore::of(&core.metrics.gauges().watchers));
    let closed = core.close.clone().cancelled_owned();
    let follower = Follower::new(core, wish.streams, positions).await?;
    let following = stream::unfold(follower, |mut follower| async move {
        follower.next().await.map(|event| (event, follower))
    });
    let following = following.take_until(closed).map(move |event| {
        let _ = &counted;
        Ok::<_, Infallible>(event)
    });
    let alive = KeepAlive::new().interval(HEARTBEAT).text("still here");
    Ok(Sse::new(following).keep_alive(alive).into_response())
}

/// What a client asked to follow.
#[derive(Debug, PartialEq, Eq)]
struct Following {
    streams: Vec<StreamId>,
    /// One for each stream; none for the end.
    after: Option<Vec<Seq>>,
}

fn parse(query: &str, headers: &HeaderMap) -> Result<Following, Problem> {
    let bad = |message: String| {
        Problem::bad_request("bad_query", message)
            .hint("write /api/events?stream=project/shop&after=0; leave `after` out for what is new")
    };
    let (mut streams, mut after) = (Vec::new(), None);
    for (name, value) in form_of(query) {
        match &*name {
            "stream" => streams.push(StreamId::new(value).map_err(|error| bad(error.to_string()))?),
            "after" => after = Some(value),
            _ => return Err(bad(format!("there is no parameter '{name}'"))),
        }
    }
    if streams.is_empty() || streams.len() > STREAMS {
        return Err(bad(format!("name 1 to {STREAMS} streams, not {}", streams.len())));
    }
    // What the client saw last is later than where it once began.
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let after = resumed.filter(|id| !id.is_empty()).or(after);
    let after = after.map(|text| {
        positions(&text, streams.len()).ok_or_else(|| {
            bad(format!(
                "'{text}' is no position: give one number, or one for each of {} streams",
                streams.len()
            ))
        })
    });
    Ok(Following { after: after.transpose()?, streams })
}

fn form_of(query: &str) -> Vec<(String, String)> {
    let uri = format!("/?{query}").parse::<http::Uri>().unwrap_or_default();
    axum::extract::Query::try_from_uri(&uri).map(|axum::extract::Query(pairs)| pairs).unwrap_or_default()
}

fn positions(text: &str, streams: usize) -> Option<Vec<Seq>> {
    let numbers: Vec<Seq> =
        text.split(',').map(|number| number.trim().parse().map(Seq::new)).collect::<Result<_, _>>().ok()?;
    match numbers[..] {
        [one] => Some(vec![one; streams]),
        _ => (numbers.len() == streams).then_some(numbers),
    }
}

/// A project's stream is for whoever may use the project, keys are for administrators, the rest for unbound callers.
fn may_follow(caller: &Caller, stream: &StreamId) -> Result<(), Denied> {
    if let Some(project) = stream.as_str().strip_prefix(Coordination::STREAMS) {
        return caller.may_use_project(project);
    }
    let unbound = caller.grant.projects.is_none() && caller.grant.toolsets.is_none();
    if unbound && stream.as_str() != switchboard_access::STREAM { Ok(()) } else { caller.may_administer() }
}

async fn begin(core: &Core, wish: &Following) -> Result<Vec<Seq>, Problem> {
    if let Some(after) = &wish.after {
        return Ok(after.clone());
    }
    let heads = wish.streams.iter().map(|stream| core.journal.head(stream));
    futures::future::try_join_all(heads).await.map_err(|error| unreadable(&error))
}

/// Follows several streams as one, and knows how far it is in each.
struct Follower {
    core: Arc<Core>,
    streams: Vec<StreamId>,
    positions: Vec<Seq>,
    tails: SelectAll<BoxStream<'static, (usize, Result<Entry, ReadError>)>>,
    ended: bool,
}

impl Follower {
    async fn new(core: Arc<Core>, streams: Vec<StreamId>, positions: Vec<Seq>) -> Result<Self, Problem> {
        let mut tails = Vec::new();
        for (stream, after) in streams.iter().zip(&positions) {
            tails.push(tail(&core, stream, *after).await?);
        }
        let mut follower = Self { core, streams, positions, tails: SelectAll::new(), ended: false };
        for (index, tail) in tails.into_iter().enumerate() {
            follower.add(index, tail);
        }
        Ok(follower)
    }

    fn add(&mut self, index: usize, tail: Tail) {
        self.tails.push(tail.map(move |entry| (index, entry)).boxed());
    }

    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let (index, entry) = self.tails.next().await?;
        let event = match entry {
            Ok(entry) => {
                self.positions[index] = entry.seq;
                data(Event::default().event("entry"), &EntryView::of(&self.streams[index], &entry))
            }
            Err(ReadError::Trimmed { trimmed, .. }) => {
                self.positions[index] = trimmed;
                let event = data(Event::default().event("trimmed"), &self.gap(index));
                // What is left is still worth following.
                let rest = self.core.journal.tail(&self.streams[index], trimmed);
                self.add(index, rest);
                event
            }
            Err(error @ ReadError::Unavailable(_)) => {
                self.ended = true;
                return Some(data(Event::default().event("unavailable"), &unreadable(&error).body()));
            }
        };
        let positions: Vec<_> = self.positions.iter().map(Seq::to_string).collect();
        Some(event.id(positions.join(",")))
    }

    fn gap(&self, index: usize) -> Value {
        let (stream, oldest) = (&self.streams[index], self.positions[index].next());
        json!({"error": {
            "code": "trimmed",
            "message": format!("entries of '{stream}' before {oldest} are gone; this stream goes on with entry {oldest}"),
            "hint": "read the present state under /api/projects to fill the gap",
        }, "stream": stream, "oldest": oldest})
    }
}

async fn tail(core: &Core, stream: &StreamId, after: Seq) -> Result<Tail, Problem> {
    if stream.as_str().starts_with(Coordination::STREAMS) {
        // Through its exchange, so that what is due in the project happens while it is followed.
        return core.coordination.exchange().watch(stream, after).await.map_err(problem);
    }
    Ok(core.journal.tail(stream, after))
}

fn data(event: Event, data: &impl Serialize) -> Event {
    // JSON text has no line breaks, and these values always have a JSON text.
    event.data(serde_json::to_string(data).unwrap_or_default())
}

fn unreadable(error: &ReadError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", error.to_string())
        .hint("`switchboard doctor` looks for the cause")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, last_event_id: Option<&str>, expected: Result<(&[&str], Option<&[u64]>), ()>) {
        let mut headers = HeaderMap::new();
        if let Some(id) = last_event_id {
            headers.insert("last-event-id", id.parse().unwrap());
        }
        let seen = parse(query, &headers).map_err(|_| ());
        let expected = expected.map(|(streams, after)| Following {
            streams: streams.iter().map(|stream| StreamId::new(*stream).unwrap()).collect(),
            after: after.map(|after| after.iter().copied().map(Seq::new).collect()),
        });
        assert_eq!(seen, expected, "{query}");
    }

    #[test]
    fn positions_are_one_for_all_or_one_for_each() {
        check("stream=project/a", None, Ok((&["project/a"], None)));
        check("stream=project%2Fa%20b&after=7", None, Ok((&["project/a b"], Some(&[7]))));
        check("stream=a&stream=b&after=0", None, Ok((&["a", "b"], Some(&[0, 0]))));
        check("stream=a&stream=b&after=3,4", None, Ok((&["a", "b"], Some(&[3, 4]))));
        check("stream=a&after=1", Some("9"), Ok((&["a"], Some(&[9]))));
        check("stream=a&after=1", Some(""), Ok((&["a"], Some(&[1]))));
        for bad in ["", "after=1", "stream=", "stream=a&after=x", "stream=a&after=1,2", "stream=a&since=1"] {
            check(bad, None, Err(()));
        }
    }
}
