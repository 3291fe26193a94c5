//! MCP's deprecated HTTP+SSE transport.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::{Event, Events, Server, call, initialize, json_of, soon};

/// A client of the transport.
struct Client<'a> {
    server: &'a Server,
    events: Events,
    address: String,
}

impl<'a> Client<'a> {
    async fn connect(server: &'a Server, path: &str) -> Self {
        let mut events = Events::of(server.get(path).await);
        let Event { kind, data, .. } = events.next().await.unwrap();
        assert_eq!(kind, "endpoint");
        assert!(data.starts_with("/messages/?session_id="), "{data}");
        Self { server, events, address: data }
    }

    async fn message(&mut self) -> Value {
        let event = self.events.next().await.unwrap();
        assert_eq!(event.kind, "message");
        event.json()
    }

    async fn say(&self, message: &Value) -> Response {
        self.server.post(&self.address, message).send().await.unwrap()
    }

    async fn begin(&mut self) -> Value {
        assert_eq!(self.say(&initialize("2024-11-05")).await.status(), 202);
        let answer = self.message().await;
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer
    }
}

#[tokio::test]
async fn a_client_begins_lists_calls_and_follows() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, "/sse").await;
    assert_eq!(client.begin().await["result"]["serverInfo"]["name"], "switchboard");
    let mut followed = call(1, "count", json!({}));
    followed["params"]["_meta"] = json!({"progressToken": 9});
    client.say(&followed).await;
    for step in 1..=3 {
        assert_eq!(client.message().await["params"]["progress"].as_f64(), Some(f64::from(step)));
    }
    assert_eq!(client.message().await["result"]["content"][0]["text"], "counted");
    client.say(&json!([call(2, "echo", json!({})), call(3, "nope", json!({}))])).await;
    let answers = [client.message().await, client.message().await];
    assert!(answers.iter().any(|answer| answer["id"] == 2 && answer["result"]["isError"] == false));
    assert!(answers.iter().any(|answer| answer["id"] == 3 && answer["error"]["code"] == -32602));

    let mut alone = Client::connect(&server, "/sse/a2amcp").await;
    assert_eq!(alone.begin().await["result"]["serverInfo"]["version"], "1.0.0");
    assert_eq!(json_of(server.get("/sse/nope").await).await.0, 404);
    server.stopped().await;
}

#[tokio::test]
async fn who_calls_is_who_sent_the_message() {
    let server = Server::start().await;
    let grant = switchboard_access::Grant::default();
    let (_, key) = server.access.create("laptop", grant, None).await.unwrap();
    let mut client = Client::connect(&server, "/sse").await;
    client.begin().await;
    let request = server.post(&client.address, &call(1, "whoami", json!({}))).bearer_auth(key);
    request.header("idempotency-key", "once").send().await.unwrap();
    let answer = client.message().await;
    assert_eq!(answer["result"]["structuredContent"]["caller"], "laptop");
    assert_eq!(answer["result"]["structuredContent"]["command"], "once");
    server.stopped().await;
}

#[tokio::test]
async fn messages_without_a_session_or_a_meaning_are_refused() {
    let server = Server::start().await;
    let client = Client::connect(&server, "/sse").await;
    let post = async |path: &str, body: &str| {
        let request = server.request(Method::POST, path).body(body.to_owned());
        json_of(request.header("content-type", "application/json").send().await.unwrap()).await
    };
    assert_eq!(post("/messages/", "{}").await.0, 400);
    assert_eq!(post("/messages/?session_id=00", "{}").await.0, 404);
    for (body, code) in [("{", -32700), ("{}", -32600), ("[{}]", -32600)] {
        let (status, answer) = post(&client.address, body).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{body}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_calls_along() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, "/sse").await;
    client.begin().await;
    client.say(&call(1, "wait", json!({}))).await;
    soon(&server.signals.began).await;
    let address = client.address.clone();
    drop(client);
    soon(&server.signals.cancelled).await;
    let gone = server.post(&address, &call(2, "echo", json!({}))).send().await.unwrap();
    assert_eq!(gone.status(), 404);
    server.stopped().await;
}

#[tokio::test]
async fn stopping_answers_what_waits_and_ends_the_stream() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, "/sse").await;
    client.begin().await;
    client.say(&call(1, "wait", json!({}))).await;
    soon(&server.signals.began).await;
    server.stop.cancel();
    assert_eq!(client.message().await["result"]["content"][0]["text"], "a handle to wait on with");
    assert_eq!(client.events.next().await, None);
    drop(client);
    server.stopped().await;
}
