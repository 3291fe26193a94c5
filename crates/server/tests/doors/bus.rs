//! Published events, at the doors: followed by topic, and as resources that clients of both eras of MCP subscribe to.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use switchboard_access::Grant;
use switchboard_bus::{Data, NewEvent, Topic};
use switchboard_server::{Limits, Options};

use crate::support::{Event, Events, SOON, Server, events, initialize, json_of};

async fn publish(server: &Server, topic: &str, data: Value) {
    let event = NewEvent::new(Topic::new(topic).unwrap(), Data::of(&data).unwrap());
    server.bus.publish(vec![event]).await.unwrap();
}

async fn follow(server: &Server, query: &str, last_event_id: Option<&str>) -> Events {
    let mut request = server.request(Method::GET, &format!("/api/events?{query}"));
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    Events::of(request.send().await.unwrap())
}

fn shown(event: &Event) -> String {
    let data = event.json();
    format!("{} {} {} {}", event.kind, event.id, data["topic"].as_str().unwrap(), data["data"])
}

#[tokio::test]
async fn topics_are_followed_and_taken_up_again() {
    let server = Server::start().await;
    publish(&server, "build.web", json!({"ok": true})).await;
    publish(&server, "other", json!(null)).await;
    let mut all = follow(&server, "topic=build.*&after=0", None).await;
    let mut new = follow(&server, "topic=build.%23&topic=morning%2Fbriefing", None).await;
    assert_eq!(shown(&all.next().await.unwrap()), r#"published 1 build.web {"ok":true}"#);
    publish(&server, "morning/briefing", json!("hello")).await;
    publish(&server, "build.api", json!([1])).await;
    assert_eq!(shown(&new.next().await.unwrap()), r#"published 3 morning/briefing "hello""#);
    let last = new.next().await.unwrap();
    assert_eq!(shown(&last), "published 4 build.api [1]");
    assert!(last.json()["at"].is_string());
    assert_eq!(all.next().await.unwrap(), last);
    let mut resumed = follow(&server, "topic=build.*&after=0", Some("1")).await;
    assert_eq!(resumed.next().await.unwrap(), last);
    server.stop.cancel();
    assert_eq!(resumed.next().await, None, "stopping ends what streams");
    server.stopped().await;
}

#[tokio::test]
async fn a_search_that_finds_nothing_says_how_far_it_is() {
    let server = Server::start().await;
    let mut rare = follow(&server, "topic=rare&after=0", None).await;
    let common = NewEvent::new(Topic::new("common").unwrap(), Data::of(&1).unwrap());
    server.bus.publish(vec![common; 1_200]).await.unwrap();
    let event = rare.next().await.unwrap();
    assert_eq!((&*event.kind, &*event.id, &*event.data), ("", "1200", ""));
    server.stopped().await;
}

#[tokio::test]
async fn what_cannot_be_followed_by_topic_is_explained() {
    let server = Server::start().await;
    for (query, code, word) in [
        ("topic=", "bad_query", "empty"),
        ("topic=a.%23.b", "bad_query", "last segment"),
        ("topic=a&after=1,2", "bad_query", "one number"),
        ("topic=a&stream=project/shop", "bad_query", "not both"),
        ("topic=a&after=9", "position_unknown", "not given out yet"),
    ] {
        let (status, answer) = json_of(server.get(&format!("/api/events?{query}")).await).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{query}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(word), "{query}: {answer}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn topics_are_for_those_who_may_use_the_bus() {
    let server = Server::start().await;
    let set = |name: Option<&str>| name.map(|name| [name.to_owned()].into());
    for (projects, toolsets, expected) in [
        (None, None, 200),
        (None, Some("bus"), 200),
        (Some("shop"), Some("bus"), 200),
        (Some("shop"), None, 403),
        (None, Some("play"), 403),
    ] {
        let grant = Grant { projects: set(projects), toolsets: set(toolsets), admin: false };
        let name = format!("{}-{}", projects.unwrap_or("any"), toolsets.unwrap_or("any"));
        let (_, key) = server.access.create(&name, grant, None).await.unwrap();
        let with_key = |request: RequestBuilder| request.bearer_auth(&key);
        let followed = with_key(server.request(Method::GET, "/api/events?topic=a")).send().await.unwrap();
        assert_eq!(followed.status(), expected, "{name}");
        let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read",
            "params": {"uri": "bus://topic/a"}});
        let (_, answer) = json_of(with_key(server.post("/mcp", &read)).send().await.unwrap()).await;
        let code = if expected == 200 { Value::Null } else { json!(-32003) };
        assert_eq!(answer["error"]["code"], code, "{name}: {answer}");
    }
    server.stopped().await;
}

/// A client with a session, and the stream on which it is told of things.
struct Client<'s> {
    server: &'s Server,
    session: String,
    told: Events,
}

impl<'s> Client<'s> {
    async fn connect(server: &'s Server, version: &str) -> Self {
        let response = server.mcp("/mcp", &initialize(version)).send().await.unwrap();
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let answer = events(&response.text().await.unwrap()).remove(0);
        assert_eq!(answer["result"]["capabilities"]["resources"], json!({"subscribe": true}));
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let stream = server
            .request(Method::GET, "/mcp")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &session);
        let told = Events::of(stream.send().await.unwrap());
        let client = Self { server, session, told };
        assert_eq!(client.post(&initialized).send().await.unwrap().status(), 202);
        client
    }

    fn post(&self, body: &Value) -> RequestBuilder {
        self.server.mcp("/mcp", body).header("mcp-session-id", &self.session)
    }

    async fn ask(&self, method: &str, uri: &str) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": {"uri": uri}});
        let answer = self.post(&body).send().await.unwrap().text().await.unwrap();
        events(&answer).remove(0)
    }

    async fn subscribe(&self, uri: &str) {
        assert_eq!(self.ask("resources/subscribe", uri).await["result"], json!({}), "{uri}");
    }

    /// The URI of the next update.
    async fn update(&mut self) -> String {
        updated(&mut self.told).await["uri"].as_str().unwrap().to_owned()
    }
}

/// The parameters of the next update.
async fn updated(told: &mut Events) -> Value {
    loop {
        let event = told.next().await.expect("the stream goes on");
        if event.data.contains("notifications/resources/updated") {
            return event.json()["params"].clone();
        }
    }
}

#[tokio::test]
async fn a_client_with_a_session_is_told_of_what_it_subscribed_to() {
    let server = Server::start().await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::connect(&server, version).await;
        client.subscribe("bus://topic/build.%23").await;
        client.subscribe("bus://topic/build.%23").await;
        client.subscribe("bus://topic/chat").await;
        publish(&server, "other", json!(1)).await;
        publish(&server, "build.web.done", json!(2)).await;
        assert_eq!(client.update().await, "bus://topic/build.%23");
        let read = client.ask("resources/read", "bus://topic/build.%23").await;
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["mimeType"], "application/json");
        let text: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
        assert_eq!(text["events"].as_array().unwrap().last().unwrap()["data"], 2);

        assert_eq!(client.ask("resources/unsubscribe", "bus://topic/build.%23").await["result"], json!({}));
        publish(&server, "build.web.done", json!(3)).await;
        publish(&server, "chat", json!(4)).await;
        assert_eq!(client.update().await, "bus://topic/chat");
        let end = server.request(Method::DELETE, "/mcp").header("mcp-session-id", &client.session);
        assert!(end.send().await.unwrap().status().is_success());
        nobody_follows(&server).await;
    }
    server.stopped().await;
}

/// Waits until no subscription is left.
async fn nobody_follows(server: &Server) {
    let ended = async {
        loop {
            let metrics = server.get("/metrics").await.text().await.unwrap();
            if metrics.lines().any(|line| line.ends_with("watchers 0")) {
                break;
            }
        }
    };
    tokio::time::timeout(SOON, ended).await.expect("subscriptions end with their client");
}

#[tokio::test]
async fn subscriptions_are_bounded_and_need_a_session() {
    let limits = Limits { watchers: 66, ..Limits::default() };
    let server = Server::with(Options { limits, ..Options::default() }).await;
    let client = Client::connect(&server, "2025-11-25").await;
    for number in 0..64 {
        client.subscribe(&format!("bus://topic/{number}")).await;
    }
    let refused = client.ask("resources/subscribe", "bus://topic/64").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("at most 64"), "{refused}");
    client.ask("resources/unsubscribe", "bus://topic/1").await;
    client.subscribe("bus://topic/64").await;

    let other = Client::connect(&server, "2025-11-25").await;
    let mut refused = Value::Null;
    for number in 0..3 {
        refused = other.ask("resources/subscribe", &format!("bus://topic/{number}")).await;
    }
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("limits.watchers"), "{refused}");
    for uri in ["bus://topic/", "bus://other/a", "file:///a"] {
        assert_eq!(other.ask("resources/subscribe", uri).await["error"]["code"], -32602, "{uri}");
    }

    let alone = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
        "params": {"uri": "bus://topic/a"}});
    let (_, answer) = json_of(server.post("/mcp", &alone).send().await.unwrap()).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("session"), "{answer}");
    server.stopped().await;
}

fn stateless(
    server: &Server,
    path: &str,
    method: &str,
    name: Option<&str>,
    mut params: Value,
) -> RequestBuilder {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request =
        server.mcp(path, &body).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    match name {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

#[tokio::test]
async fn a_listener_is_told_of_what_was_published_since_it_was_acknowledged() {
    let server = Server::start().await;
    publish(&server, "build.old", json!(0)).await;
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions":
        ["bus://topic/build.*", "bus://topic/chat", "file:///no", "bus://topic/%23.no"]}});
    let request = stateless(&server, "/mcp", "subscriptions/listen", None, wanted);
    let mut told = Events::of(request.send().await.unwrap());
    let acknowledged = told.next().await.unwrap().json();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"resourceSubscriptions": ["bus://topic/build.*", "bus://topic/chat"]})
    );
    publish(&server, "build.web", json!(1)).await;
    let update = updated(&mut told).await;
    assert_eq!(update["uri"], "bus://topic/build.*");
    assert_eq!(update["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    publish(&server, "chat", json!(2)).await;
    assert_eq!(updated(&mut told).await["uri"], "bus://topic/chat");
    drop(told);
    nobody_follows(&server).await;
    server.stopped().await;
}

#[tokio::test]
async fn a_stateless_client_reads_the_latest_events() {
    let server = Server::start().await;
    for number in 0..150 {
        publish(&server, "count", json!(number)).await;
    }
    let templates = stateless(&server, "/mcp", "resources/templates/list", None, json!({}));
    let (_, answer) = json_of(templates.send().await.unwrap()).await;
    assert_eq!(answer["result"]["resourceTemplates"][0]["uriTemplate"], "bus://topic/{pattern}");
    let uri = "bus://topic/count";
    let read = stateless(&server, "/mcp", "resources/read", Some(uri), json!({"uri": uri}));
    let (status, answer) = json_of(read.send().await.unwrap()).await;
    assert_eq!(status, 200, "{answer}");
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
    let page: Value = serde_json::from_str(text).unwrap();
    let events = page["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[0]["data"], &page["next"]), (100, &json!(50), &json!(150)));
    assert_eq!(page["more"], true);
    server.stopped().await;
}

#[tokio::test]
async fn a_view_without_the_bus_offers_no_resources() {
    let server = Server::start().await;
    let (_, answer) =
        json_of(server.post("/mcp/a2amcp", &initialize("2025-06-18")).send().await.unwrap()).await;
    assert_eq!(answer["result"]["capabilities"]["resources"], Value::Null, "{answer}");
    let listen = json!({"notifications": {"resourceSubscriptions": ["bus://topic/a"]}});
    let listen =
        stateless(&server, "/mcp/a2amcp", "subscriptions/listen", None, listen).send().await.unwrap();
    assert_eq!(listen.status(), StatusCode::NOT_FOUND);
    let uri = "bus://topic/a";
    let read = stateless(&server, "/mcp/a2amcp", "resources/read", Some(uri), json!({"uri": uri}));
    let (_, answer) = json_of(read.send().await.unwrap()).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let templates = stateless(&server, "/mcp/a2amcp", "resources/templates/list", None, json!({}));
    let (_, answer) = json_of(templates.send().await.unwrap()).await;
    assert_eq!(answer["result"]["resourceTemplates"], json!([]), "{answer}");
    server.stopped().await;
}

#[tokio::test]
async fn a_burst_is_told_together_and_the_last_event_is_never_untold() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, "2025-11-25").await;
    client.subscribe("bus://topic/a").await;
    for number in 0..500 {
        publish(&server, "a", json!(number)).await;
    }
    // However many updates there are, after the last one everything can be read.
    loop {
        client.update().await;
        let read = client.ask("resources/read", "bus://topic/a").await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        let page: Value = serde_json::from_str(text).unwrap();
        if page["next"] == 500 {
            break;
        }
    }
    server.stopped().await;
}
