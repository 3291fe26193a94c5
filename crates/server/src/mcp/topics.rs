//! Published events as resources: `bus://topic/{pattern}`, to be read and to be told of.
//!
//! A client with a session subscribes with `resources/subscribe` and is told until it unsubscribes or its session ends; one of
//! protocol 2026-07-28 opens `subscriptions/listen` and is told until it closes it. Either is told *that* events came, and
//! reads them. What comes while it is being told, and a moment after, is told together: a client that is slow waits for
//! nobody but itself.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use futures::{FutureExt as _, StreamExt as _};
use prometheus_client::metrics::gauge::Gauge;
use rmcp::model::{
    ErrorCode, ErrorData, ReadResourceResponse, ReadResourceResult, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, SubscriptionFilter,
};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use serde_json::json;
use switchboard_bus::{Bus, BusError, Filter, Page, Pattern, Position};
use switchboard_tools::json_of_page;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::metrics::OneMore;

/// What the URI of a resource begins with; a pattern follows, percent-encoded.
const PREFIX: &str = "bus://topic/";

/// How many events a resource shows.
const SHOWN: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// How many resources one client may be subscribed to.
const SUBSCRIPTIONS: usize = 64;

/// How long after it was told of events a client is told of further ones.
const PACE: Duration = Duration::from_millis(100);

/// How long after a fault of the journal a subscription goes on.
const FAULT_PAUSE: Duration = Duration::from_secs(1);

/// The bus, as clients of MCP see it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    bus: Bus,
    /// One permit for each subscription, and for each client of `/api/events`.
    watchers: Arc<Semaphore>,
    limit: usize,
    gauge: Gauge,
}

/// A place among those who follow something, for as long as it lives.
#[derive(Debug)]
struct Place {
    _permit: OwnedSemaphorePermit,
    _counted: OneMore,
}

impl Topics {
    pub(crate) fn new(bus: Bus, watchers: Arc<Semaphore>, limit: usize, gauge: &Gauge) -> Self {
        Self { bus, watchers, limit, gauge: gauge.clone() }
    }

    pub(super) fn template() -> ResourceTemplate {
        ResourceTemplate::new(format!("{PREFIX}{{pattern}}"), "topic")
            .with_title("Published events")
            .with_description(
                "The latest events of a topic, such as build.done. Of its segments between dots * stands for any one, # at \
                 the end for any number.",
            )
            .with_mime_type("application/json")
    }

    /// The latest events that match.
    pub(super) async fn read(&self, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
        let filter = filter_of(uri)?;
        let page = self.bus.latest(&filter, SHOWN).await.map_err(|error| failed(&error))?;
        let contents =
            ResourceContents::text(json_of_page(&page).to_string(), uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn place(&self) -> Result<Place, ErrorData> {
        let permit = self.watchers.clone().try_acquire_owned().map_err(|_| {
            refused(format!(
                "{} clients follow streams or resources, the most this server takes (limits.watchers)",
                self.limit
            ))
        })?;
        Ok(Place { _permit: permit, _counted: OneMore::of(&self.gauge) })
    }
}

fn filter_of(uri: &str) -> Result<Filter, ErrorData> {
    let wrong = |why: String| {
        let message = format!("there is no resource '{uri}': {why}");
        ErrorData::invalid_params(message, Some(json!({"uri": uri})))
    };
    let encoded =
        uri.strip_prefix(PREFIX).ok_or_else(|| wrong(format!("write {PREFIX}build.done, or a pattern")))?;
    let pattern = percent_decoded(encoded).ok_or_else(|| wrong("it is not UTF-8, percent-encoded".into()))?;
    Ok(Pattern::new(pattern).map_err(|error| wrong(error.to_string()))?.into())
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let digits = after.get(..2).filter(|_| *first == b'%');
        let decoded = digits.and_then(|digits| {
            let digits =
                digits.iter().map(|digit| char::from(*digit).to_digit(16)).collect::<Option<Vec<_>>>()?;
            u8::try_from(digits[0] * 16 + digits[1]).ok()
        });
        // A sign that encodes nothing stands for itself.
        bytes.push(decoded.unwrap_or(*first));
        if decoded.is_some() {
            rest = &after[2..];
        }
    }
    String::from_utf8(bytes).ok()
}

/// What one client is subscribed to. Ends with it.
#[derive(Debug)]
pub(super) struct Subscriptions {
    by_uri: Mutex<HashMap<String, DropGuard>>,
    /// Where the bus was when a listener was accepted, which is before the library tells the client so.
    accepted: Mutex<VecDeque<(SubscriptionFilter, Option<Position>)>>,
    /// Whether there will be a way to tell the client of anything once its request is answered.
    lasting: bool,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self { by_uri: Mutex::default(), accepted: Mutex::default(), lasting: true }
    }
}

impl Subscriptions {
    /// Of a client that is there for one request.
    pub(super) fn of_one_request() -> Self {
        Self { lasting: false, ..Self::default() }
    }

    /// Tells `peer` of what is published from now on. Subscribing again to the same changes nothing.
    pub(super) async fn begin(
        &self,
        topics: &Topics,
        uri: String,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let filter = filter_of(&uri)?;
        if !self.lasting {
            let message = "a subscription needs a session: initialize with `Accept: text/event-stream`, or use \
                           subscriptions/listen of protocol 2026-07-28";
            return Err(ErrorData::invalid_request(message, None));
        }
        let after = topics.bus.newest().await.map_err(|error| failed(&error))?;
        let mut by_uri = locked(&self.by_uri);
        if by_uri.contains_key(&uri) {
            return Ok(());
        }
        if by_uri.len() >= SUBSCRIPTIONS {
            return Err(refused(format!(
                "a client subscribes to at most {SUBSCRIPTIONS} resources: unsubscribe from some, or use a pattern"
            )));
        }
        let place = topics.place()?;
        let ended = CancellationToken::new();
        by_uri.insert(uri.clone(), ended.clone().drop_guard());
        let bus = topics.bus.clone();
        tokio::spawn(async move {
            let _place = place;
            let telling = tell(&bus, &filter, Some(after), || async {
                let update = ResourceUpdatedNotificationParam::new(uri.clone());
                peer.notify_resource_updated(update).await.is_ok()
            });
            ended.run_until_cancelled(telling).await;
        });
        Ok(())
    }

    /// Tells the client no more.
    pub(super) fn end(&self, uri: &str) {
        locked(&self.by_uri).remove(uri);
    }

    /// What of `requested` a listener will be told of: topics, and no more than a client may.
    pub(super) fn accept(&self, topics: &Topics, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = locked(&self.accepted);
        // A listener that was accepted and never came to listen is forgotten.
        accepted.truncate(SUBSCRIPTIONS - 1);
        accepted.push_front((requested.clone(), topics.bus.seen()));
        let wanted = requested.resource_subscriptions.iter().flatten();
        let uris: Vec<String> =
            wanted.filter(|uri| filter_of(uri).is_ok()).take(SUBSCRIPTIONS).cloned().collect();
        let mut filter = SubscriptionFilter::default();
        filter.resource_subscriptions = requested.resource_subscriptions.is_some().then_some(uris);
        filter
    }

    /// Tells a listener of what was published since it was accepted.
    pub(super) async fn listen(
        &self,
        topics: &Topics,
        subscription: &SubscriptionContext,
    ) -> Result<(), ErrorData> {
        let after = self.accepted_at(subscription.requested());
        let uris = subscription.accepted().resource_subscriptions.iter().flatten();
        let mut places = Vec::new();
        let mut telling = Vec::new();
        for uri in uris {
            places.push(topics.place()?);
            let filter = filter_of(uri)?;
            telling.push(async move {
                let sink = subscription.sink();
                tell(&topics.bus, &filter, after, || async {
                    sink.notify_resource_updated(uri).await.is_ok()
                })
                .await;
            });
        }
        tokio::select! {
            () = subscription.cancelled() => {}
            _ = join_all(telling), if !places.is_empty() => {}
        }
        Ok(())
    }

    fn accepted_at(&self, requested: &SubscriptionFilter) -> Option<Position> {
        let mut accepted = locked(&self.accepted);
        let index = accepted.iter().rposition(|(filter, _)| filter == requested)?;
        accepted.remove(index)?.1
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `notify` whenever something was published that matches, until it says that nobody listens, or the bus stops.
async fn tell<F: Future<Output = bool>>(
    bus: &Bus,
    filter: &Filter,
    mut after: Option<Position>,
    notify: impl Fn() -> F,
) {
    loop {
        match bus.tail(filter.clone(), after).await {
            Ok(mut tail) => {
                while let Some(Ok(page)) = tail.next().await {
                    let mut news = says_something(&page);
                    after = Some(page.next);
                    // Everything that is there already is told at once.
                    while let Some(Some(Ok(page))) = tail.next().now_or_never() {
                        news |= says_something(&page);
                        after = Some(page.next);
                    }
                    if news {
                        if !notify().await {
                            return;
                        }
                        tokio::time::sleep(PACE).await;
                    }
                }
            }
            Err(BusError::Stopping) => return,
            Err(error) => tracing::debug!(%error, "a subscription cannot go on yet"),
        }
        tokio::time::sleep(FAULT_PAUSE).await;
    }
}

fn says_something(page: &Page) -> bool {
    !page.events.is_empty() || page.missed.is_some()
}

fn refused(message: String) -> ErrorData {
    ErrorData::new(ErrorCode(-32000), message, None)
}

fn failed(error: &BusError) -> ErrorData {
    match error {
        BusError::Busy { .. } | BusError::Stopping => refused(error.to_string()),
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use switchboard_bus::Topic;

    use super::*;

    #[test]
    fn a_uri_names_a_pattern_percent_encoded_or_not() {
        for (uri, topic) in [
            ("bus://topic/build.done", "build.done"),
            ("bus://topic/build.*", "build.done"),
            ("bus://topic/build.%23", "build.web.done"),
            ("bus://topic/build.#", "build"),
            ("bus://topic/morning%2fbriefing%20f%C3%BCr", "morning/briefing für"),
            ("bus://topic/100%", "100%"),
            ("bus://topic/100%25", "100%"),
            ("bus://topic/%é", "%é"),
        ] {
            let filter = filter_of(uri).unwrap();
            assert!(filter.matches(&Topic::new(topic).unwrap()), "{uri}");
        }
        for uri in ["", "bus://topic/", "bus://other/a", "http://a", "bus://topic/%FF", "bus://topic/a.%23.b"]
        {
            assert!(filter_of(uri).is_err(), "{uri}");
        }
    }
}
