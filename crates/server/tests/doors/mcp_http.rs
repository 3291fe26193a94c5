//! MCP over Streamable HTTP: what each kind of client gets.

use crate::support::{Server, call, events, initialize, json_of, soon};
use reqwest::Method;
use serde_json::{Value, json};

fn stateless(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn send_stateless(
    server: &Server,
    path: &str,
    method: &str,
    name: Option<&str>,
    params: Value,
) -> (u16, Value) {
    let mut request = server
        .mcp(path, &stateless(1, method, params))
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    json_of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_bare_client_is_answered_as_json_without_a_session() {
    let server = Server::start().await;
    for path in ["/mcp", "/mcp/", "/mcp/play", "/mcp/play/"] {
        let response = server.post(path, &initialize("2025-03-26")).send().await.unwrap();
        assert!(response.headers().get("mcp-session-id").is_none());
        let (status, answer) = json_of(response).await;
        assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!("2025-03-26")), "{path}");
        let (status, answer) =
            json_of(server.post(path, &call(7, "echo", json!({"a": [1]}))).send().await.unwrap()).await;
        assert_eq!(status, 200);
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": 7, "result": {
                "content": [{"type": "text", "text": r#"{"a":[1]}"#}],
                "structuredContent": {"a": [1]},
                "isError": false,
            }})
        );
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_stateless_client_discovers_lists_and_calls() {
    let server = Server::start().await;
    let (status, answer) = send_stateless(&server, "/mcp", "server/discover", None, json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "switchboard");
    let (_, answer) = send_stateless(&server, "/mcp/play", "tools/list", None, json!({})).await;
    let names: Vec<_> =
        answer["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["count", "echo", "fail", "panic", "wait", "whoami"]);
    let (status, answer) =
        send_stateless(&server, "/mcp", "tools/call", Some("fail"), json!({"name": "fail"})).await;
    assert_eq!((status, &answer["result"]["isError"]), (200, &json!(true)), "{answer}");
    // What the headers say and what the body says must be the same.
    let (status, answer) =
        send_stateless(&server, "/mcp", "tools/call", Some("echo"), json!({"name": "fail"})).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)), "{answer}");
    server.stopped().await;
}

#[tokio::test]
async fn a_client_of_an_earlier_protocol_keeps_a_session() {
    let server = Server::start().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let response = server.mcp("/mcp", &initialize(version)).send().await.unwrap();
        let session = response.headers()["mcp-session-id"].clone();
        let text = response.text().await.unwrap();
        // Only clients that resume streams are sent an event without data to resume from.
        assert_eq!(text.contains("retry:"), version == "2025-11-25", "{text}");
        let answer = events(&text).remove(0);
        assert_eq!(answer["result"]["protocolVersion"], version);
        let within = |body: &Value| server.mcp("/mcp", body).header("mcp-session-id", session.clone());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(within(&initialized).send().await.unwrap().status(), 202);
        let response = within(&call(1, "echo", json!({}))).send().await.unwrap();
        let answer = events(&response.text().await.unwrap()).remove(0);
        assert_eq!(answer["result"]["structuredContent"], json!({}));
        // Also a client that cannot read streams may have a session.
        let response =
            server.post("/mcp", &call(1, "echo", json!({}))).header("mcp-session-id", session.clone());
        let (status, answer) = json_of(response.send().await.unwrap()).await;
        assert_eq!((status, &answer["result"]["structuredContent"]), (200, &json!({})), "{answer}");
        let end = server.request(Method::DELETE, "/mcp").header("mcp-session-id", session.clone());
        assert!(end.send().await.unwrap().status().is_success());
        let (status, answer) = json_of(within(&call(2, "echo", json!({}))).send().await.unwrap()).await;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32600)), "{answer}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_call_without_a_session_is_answered_although_the_client_could_keep_one() {
    let server = Server::start().await;
    let (status, answer) =
        json_of(server.mcp("/mcp", &call(1, "echo", json!({}))).send().await.unwrap()).await;
    assert_eq!((status, &answer["id"]), (200, &json!(1)), "{answer}");
    server.stopped().await;
}

#[tokio::test]
async fn without_a_session_there_is_nothing_to_follow_or_to_end() {
    let server = Server::start().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let request = server.request(method.clone(), "/mcp").header("accept", "text/event-stream");
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["allow"], "POST", "{method}");
        assert_eq!(json_of(response).await.0, 405, "{method}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_toolset_served_alone_has_its_own_name() {
    let server = Server::start().await;
    for (path, name, version) in [
        ("/mcp", "switchboard", env!("CARGO_PKG_VERSION")),
        ("/mcp/all", "switchboard", env!("CARGO_PKG_VERSION")),
        ("/mcp/a2amcp+play", "switchboard", env!("CARGO_PKG_VERSION")),
        ("/mcp/a2amcp", "splitmind-coordination", "1.0.0"),
    ] {
        let (_, answer) = json_of(server.post(path, &initialize("2025-11-25")).send().await.unwrap()).await;
        assert_eq!(answer["result"]["serverInfo"]["name"], name, "{path}");
        assert_eq!(answer["result"]["serverInfo"]["version"], version, "{path}");
    }
    let (status, answer) =
        json_of(server.post("/mcp/nope", &initialize("2025-11-25")).send().await.unwrap()).await;
    assert_eq!(status, 404);
    assert_eq!(answer["error"]["message"], "there is no toolset 'nope'; there are: all, a2amcp, bus, play");
    server.stopped().await;
}

#[tokio::test]
async fn what_cannot_be_called_is_a_json_rpc_error() {
    let server = Server::start().await;
    let error = async |path: &str, body: Value| {
        let (status, answer) = json_of(server.post(path, &body).send().await.unwrap()).await;
        (
            status,
            answer["error"]["code"].as_i64().unwrap(),
            answer["error"]["message"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(
        error("/mcp", call(1, "nope", json!({}))).await,
        (200, -32602, "Unknown tool: nope".to_owned())
    );
    // Known, but not shown here.
    assert_eq!(
        error("/mcp/a2amcp", call(1, "echo", json!({}))).await,
        (200, -32602, "Unknown tool: echo".to_owned())
    );
    assert_eq!(error("/mcp", json!({"jsonrpc": "2.0", "id": 1, "method": "nope"})).await.1, -32601);
    assert_eq!(error("/mcp", call(1, "panic", json!({}))).await.1, -32603);
    let (status, code, message) = error("/mcp", json!({"id": 1, "method": "tools/list"})).await;
    assert_eq!((status, code), (400, -32600), "{message}");
    server.stopped().await;
}

#[tokio::test]
async fn what_is_not_json_is_a_parse_error() {
    let server = Server::start().await;
    for body in ["", "{", "nonsense", "[{]", "\u{0}", r#"{"jsonrpc":"2.0","id":1,"#] {
        let request =
            server.request(Method::POST, "/mcp").header("content-type", "application/json").body(body);
        let (status, answer) = json_of(request.send().await.unwrap()).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32700)), "{body:?} {answer}");
    }
    let request = server.request(Method::POST, "/mcp").header("content-type", "text/plain").body("{}");
    let (status, answer) = json_of(request.send().await.unwrap()).await;
    assert_eq!(status, 415);
    assert!(answer["error"]["message"].as_str().unwrap().contains("Content-Type: application/json"));
    server.stopped().await;
}

#[tokio::test]
async fn a_batch_is_answered_in_order_without_its_notifications() {
    let server = Server::start().await;
    let batch = json!([
        call(1, "echo", json!({"n": 1})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, "nope", json!({})),
        {"id": 3},
        call(4, "whoami", json!({})),
    ]);
    let request = server.post("/mcp", &batch).header("idempotency-key", "key");
    let (status, answers) = json_of(request.send().await.unwrap()).await;
    assert_eq!(status, 200);
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!(answers[0]["result"]["structuredContent"], json!({"n": 1}));
    assert_eq!(answers[1]["error"]["code"], -32602);
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(3), &json!(-32600)));
    assert_eq!(answers[3]["result"]["structuredContent"]["command"], "key#4");

    let silent = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(server.post("/mcp", &silent).send().await.unwrap().status(), 202);
    for (batch, version) in [(json!([]), None), (json!([call(1, "echo", json!({}))]), Some("2025-06-18"))] {
        let mut request = server.post("/mcp", &batch);
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        let (status, answer) = json_of(request.send().await.unwrap()).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)), "{answer}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_batch_within_a_session_is_answered_as_json() {
    let server = Server::start().await;
    let response = server.mcp("/mcp", &initialize("2025-03-26")).send().await.unwrap();
    let session = response.headers()["mcp-session-id"].clone();
    let batch =
        json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}, call(1, "count", json!({}))]);
    let response = server.mcp("/mcp", &batch).header("mcp-session-id", session).send().await.unwrap();
    let (status, answers) = json_of(response).await;
    assert_eq!((status, &answers[0]["id"]), (200, &json!(1)), "{answers}");
    server.stopped().await;
}

#[tokio::test]
async fn a_call_is_named_by_metadata_or_by_a_header() {
    let server = Server::start().await;
    let mut named = call(1, "whoami", json!({}));
    let command = async |body: &Value, header: Option<&str>| {
        let mut request = server.post("/mcp", body);
        if let Some(header) = header {
            request = request.header("idempotency-key", header);
        }
        json_of(request.send().await.unwrap()).await.1
    };
    let answer = command(&named, Some("from the header")).await;
    assert_eq!(answer["result"]["structuredContent"]["command"], "from the header");
    named["params"]["_meta"] = json!({"switchboard/commandId": "from the metadata"});
    let answer = command(&named, Some("from the header")).await;
    assert_eq!(answer["result"]["structuredContent"]["command"], "from the metadata");
    for bad in [json!(7), json!(""), json!("x".repeat(129))] {
        named["params"]["_meta"] = json!({"switchboard/commandId": bad});
        assert_eq!(command(&named, None).await["error"]["code"], -32602);
    }
    server.stopped().await;
}

#[tokio::test]
async fn progress_reaches_whoever_can_read_it() {
    let server = Server::start().await;
    let mut followed = call(1, "count", json!({}));
    followed["params"]["_meta"] = json!({"progressToken": "t"});
    let response = server.mcp("/mcp", &followed).send().await.unwrap();
    let messages = events(&response.text().await.unwrap());
    let progress: Vec<_> =
        messages.iter().filter_map(|message| message["params"]["progress"].as_f64()).collect();
    assert_eq!(progress, [1.0, 2.0, 3.0], "{messages:?}");
    assert_eq!(messages[0]["params"]["progressToken"], "t");
    assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "counted");

    let (status, answer) = json_of(server.post("/mcp", &followed).send().await.unwrap()).await;
    assert_eq!((status, &answer["result"]["content"][0]["text"]), (200, &json!("counted")));
    server.stopped().await;
}

#[tokio::test]
async fn a_client_that_closes_its_connection_withdraws_its_call() {
    let server = Server::start().await;
    for request in
        [server.post("/mcp", &call(1, "wait", json!({}))), server.mcp("/mcp", &call(1, "wait", json!({})))]
    {
        let waiting = tokio::spawn(request.send());
        soon(&server.signals.began).await;
        waiting.abort();
        soon(&server.signals.cancelled).await;
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_client_with_a_session_withdraws_its_call_by_a_notification() {
    let server = Server::start().await;
    let response = server.mcp("/mcp", &initialize("2025-11-25")).send().await.unwrap();
    let session = response.headers()["mcp-session-id"].clone();
    let within = |body: &Value| server.mcp("/mcp", body).header("mcp-session-id", session.clone());
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    within(&initialized).send().await.unwrap();
    let _waiting = tokio::spawn(within(&call(5, "wait", json!({}))).send());
    soon(&server.signals.began).await;
    let withdraw = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    assert_eq!(within(&withdraw).send().await.unwrap().status(), 202);
    soon(&server.signals.cancelled).await;
    server.stopped().await;
}

#[tokio::test]
async fn stopping_answers_the_calls_that_wait() {
    let server = Server::start().await;
    let waiting = tokio::spawn(server.post("/mcp", &call(1, "wait", json!({}))).send());
    soon(&server.signals.began).await;
    server.stopped().await;
    let (status, answer) = json_of(waiting.await.unwrap().unwrap()).await;
    assert_eq!((status, &answer["result"]["content"][0]["text"]), (200, &json!("a handle to wait on with")));
}
