//! `GET /api/events`: what happens in one stream or several, or what is published by topic, as server-sent events that can
//! be resumed.
//!
//! Every event's id is its position: the number of the entry, or, where several streams are followed, the numbers
//! reached in each, joined by commas in the order in which the streams were asked for; of published events their number
//! on the bus. A client that comes back with `Last-Event-ID` goes on there.

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
use switchboard_bus::{Filter, Pattern, Position};
use switchboard_coordination::Coordination;
use switchboard_journal::{Entry, ReadError, Seq, StreamId, Tail};

use super::openapi::{Api, Operation};
use super::published::{self, PublishedView};
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
        Operation::of("Follow streams or topics: everything from a position on, and what is to come").query::<Wish>().streams::<Sent>(
            "Events `entry` of streams and `published` of topics, whose id is the position to resume from (send it as \
             `Last-Event-ID`); `trimmed` where some are gone, which names the oldest that is left and goes on there; \
             `unavailable` before the stream ends because the journal cannot be read. An event with an id and no data \
             says how far a search for a topic has come. Comments show that the connection lives.",
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
    stream: Option<String>,
    /// A topic of published events, such as `build.done`, instead of streams. Of its segments between dots `*` stands for
    /// any one, and `#` at the end for any number. May be repeated, up to 16 times.
    topic: Option<String>,
    /// Begin after this entry or published event: 0 for the oldest. One number for each stream, joined by commas, or one
    /// for all. Default: only what is new.
    after: Option<String>,
}

/// What the data of an event are.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what is sent")]
enum Sent {
    Entry(EntryView),
    Published(PublishedView),
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
    match &wish {
        Following::Streams { streams, .. } => {
            streams.iter().try_for_each(|stream| may_follow(&caller, stream))?;
        }
        Following::Topics { .. } => caller.may_use_shared(switchboard_tools::BUS)?,
    }
    let core = door.app.clone();
    let limit = core.options.limits.watchers;
    let Ok(place) = core.watchers.clone().try_acquire_owned() else {
        return Err(Problem::busy(format!(
            "{limit} clients follow streams, the most this server takes (limits.watchers)"
        )));
    };
    let counted = (place, OneMore::of(&core.metrics.gauges().watchers));
    let closed = core.close.clone().cancelled_owned();
    let following = match wish {
        Following::Streams { streams, after } => follow(core, streams, after).await?,
        Following::Topics { topics, after } => published::follow(&core.bus, topics, after).await?,
    };
    let following = following.take_until(closed).map(move |event| {
        let _ = &counted;
        Ok::<_, Infallible>(event)
    });
    let alive = KeepAlive::new().interval(HEARTBEAT).text("still here");
    Ok(Sse::new(following).keep_alive(alive).into_response())
}

/// What a client asked to follow.
#[derive(Debug, PartialEq, Eq)]
enum Following {
    Streams {
        streams: Vec<StreamId>,
        /// One for each stream; none for the end.
        after: Option<Vec<Seq>>,
    },
    Topics {
        topics: Filter,
        /// None for the end.
        after: Option<Position>,
    },
}

fn parse(query: &str, headers: &HeaderMap) -> Result<Following, Problem> {
    let bad = |message: String| {
        Problem::bad_request("bad_query", message)
            .hint("write /api/events?stream=project/shop&after=0, or topic=build.*; leave `after` out for what is new")
    };
    let (mut streams, mut topics, mut after) = (Vec::new(), Vec::new(), None);
    for (name, value) in form_of(query) {
        match &*name {
            "stream" => streams.push(StreamId::new(value).map_err(|error| bad(error.to_string()))?),
            "topic" => topics.push(Pattern::new(value).map_err(|error| bad(error.to_string()))?),
            "after" => after = Some(value),
            _ => return Err(bad(format!("there is no parameter '{name}'"))),
        }
    }
    // What the client saw last is later than where it once began.
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let after = resumed.filter(|id| !id.is_empty()).or(after);
    if !topics.is_empty() {
        if !streams.is_empty() {
            return Err(bad(
                "a request follows streams or topics, not both: their positions are different".to_owned()
            ));
        }
        let position = after.map(|text| {
            let number = text.trim().parse().map(Position::new);
            number.map_err(|_| bad(format!("'{text}' is no position of published events: give one number")))
        });
        let topics = Filter::any_of(topics).map_err(|error| bad(error.to_string()))?;
        return Ok(Following::Topics { topics, after: position.transpose()? });
    }
    if streams.is_empty() || streams.len() > STREAMS {
        return Err(bad(format!("name 1 to {STREAMS} streams or topics, not {}", streams.len())));
    }
    let after = after.map(|text| {
        positions(&text, streams.len()).ok_or_else(|| {
            bad(format!(
                "'{text}' is no position: give one number, or one for each of {} streams",
                streams.len()
            ))
        })
    });
    Ok(Following::Streams { after: after.transpose()?, streams })
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

async fn follow(
    core: Arc<Core>,
    streams: Vec<StreamId>,
    after: Option<Vec<Seq>>,
) -> Result<BoxStream<'static, Event>, Problem> {
    let positions = if let Some(after) = after {
        after
    } else {
        let heads = streams.iter().map(|stream| core.journal.head(stream));
        futures::future::try_join_all(heads).await.map_err(|error| unreadable(&error))?
    };
    let follower = Follower::new(core, streams, positions).await?;
    let following = stream::unfold(follower, |mut follower| async move {
        follower.next().await.map(|event| (event, follower))
    });
    Ok(following.boxed())
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

pub(super) fn data(event: Event, data: &impl Serialize) -> Event {
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
        let expected = expected.map(|(streams, after)| Following::Streams {
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
        check("stream=a&topic=b", None, Err(()));
        for bad in ["", "after=1", "stream=", "stream=a&after=x", "stream=a&after=1,2", "stream=a&since=1"] {
            check(bad, None, Err(()));
        }
    }

    #[test]
    fn topics_have_one_position() {
        let check = |query: &str, expected: Option<(&[&str], Option<u64>)>| {
            let expected = expected.map(|(topics, after)| {
                let topics: Vec<_> = topics.iter().map(|topic| Pattern::new(*topic).unwrap()).collect();
                let topics = Filter::any_of(topics).unwrap();
                Following::Topics { topics, after: after.map(Position::new) }
            });
            assert_eq!(parse(query, &HeaderMap::new()).ok(), expected, "{query}");
        };
        check("topic=a.*", Some((&["a.*"], None)));
        check("topic=a.%23&topic=morning%2Fbriefing&after=7", Some((&["a.#", "morning/briefing"], Some(7))));
        for bad in ["topic=", "topic=%23.a", "topic=a&after=1,2", "topic=a&after=x", "topic=a&stream=b"] {
            check(bad, None);
        }
        check(&"topic=a&".repeat(17), None);
    }
}
