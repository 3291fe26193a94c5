//! Who may come in: the same answer on every route of every listener, also where there is no route.

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_access::Grant;
use switchboard_server::Options;

use crate::support::{OWNER, Server, json_of};

/// One path per door, and one behind which there is nothing.
const PATHS: [&str; 9] = [
    "/mcp",
    "/mcp/play",
    "/mcp/nope",
    "/sse",
    "/messages/?session_id=x",
    "/health",
    "/metrics",
    "/api/tools",
    "/nowhere",
];

async fn answer(server: &Server, address: &str, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    // Posting to a route that only reads, or the other way round, must not get past the guard either.
    let method =
        if path.starts_with("/mcp") || path.starts_with("/messages") { Method::POST } else { Method::GET };
    let mut request = server.client.request(method, format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    json_of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn other_names_and_other_pages_stay_outside_everywhere() {
    let options = Options {
        allowed_hosts: vec!["box.example".to_owned()],
        allowed_origins: vec!["https://app.example".to_owned()],
        ..Options::default()
    };
    let server = Server::with(options).await;
    for address in [server.address, server.a2amcp] {
        for path in PATHS {
            for (headers, code) in [
                (&[("host", "evil.example")][..], "host_not_allowed"),
                (&[("host", "127.0.0.1.evil.example:80")], "host_not_allowed"),
                (&[("host", "localhost@evil.example")], "bad_host"),
                (&[("host", "")], "bad_host"),
                (&[("origin", "https://evil.example")], "origin_not_allowed"),
                (&[("origin", "null")], "origin_not_allowed"),
                (&[("host", "box.example"), ("origin", "http://app.example")], "origin_not_allowed"),
            ] {
                let (status, answer) = answer(&server, &address.to_string(), path, headers).await;
                assert_eq!(answer["error"]["code"], code, "{path} {headers:?} {answer}");
                assert_eq!(status, if code == "bad_host" { 400 } else { 403 });
            }
        }
    }
    for headers in [
        &[][..],
        &[("host", "localhost:1")],
        &[("host", "[::1]")],
        &[("host", "box.example:99")],
        &[("origin", "http://localhost:3000")],
        &[("origin", "https://app.example")],
        &[("origin", "http://box.example")],
    ] {
        let (status, answer) = answer(&server, &server.address.to_string(), "/api/tools", headers).await;
        assert_eq!(status, 200, "{headers:?} {answer}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn on_this_machine_a_key_is_optional_but_must_be_good() {
    let server = Server::start().await;
    let (_, key) = server.access.create("laptop", Grant::default(), None).await.unwrap();
    let bearer = format!("Bearer {key}");
    let owner = format!("bearer {OWNER}");
    for (authorization, who) in [(None, "local"), (Some(&bearer), "laptop"), (Some(&owner), "owner")] {
        let mut request = server.post("/api/tools/whoami", &json!({}));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let (_, answer) = json_of(request.send().await.unwrap()).await;
        assert_eq!(answer["structured"]["caller"], who);
    }
    for path in PATHS {
        for bad in ["Bearer sb_00000000_00", "Bearer", "Bearer ", "Basic dTpw", "nonsense"] {
            let headers = [("authorization", bad)];
            let (status, answer) = answer(&server, &server.address.to_string(), path, &headers).await;
            assert_eq!(status, 401, "{path} {bad:?} {answer}");
        }
    }
    server.stopped().await;
}

#[tokio::test]
async fn where_a_key_is_required_nothing_is_served_without_one() {
    let server = Server::listening(Options::default(), switchboard_server::Listener::requiring_key).await;
    for path in PATHS {
        let (status, answer) = answer(&server, &server.address.to_string(), path, &[]).await;
        assert_eq!((status, &answer["error"]["code"]), (401, &json!("key_required")), "{path}");
    }
    let response = server.get("/health").await;
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    let (_, key) = server.access.create("laptop", Grant::default(), None).await.unwrap();
    let response = server.request(Method::GET, "/health").bearer_auth(&key).send().await.unwrap();
    assert_eq!(response.status(), 200);
    server.access.revoke("laptop").await.unwrap();
    let response = server.request(Method::GET, "/health").bearer_auth(&key).send().await.unwrap();
    assert_eq!(response.status(), 401);
    server.stopped().await;
}

#[tokio::test]
async fn a_key_for_a_toolset_lists_and_calls_no_other() {
    let server = Server::start().await;
    let grant = Grant { toolsets: Some(["a2amcp".to_owned()].into()), ..Grant::default() };
    let (_, key) = server.access.create("bound", grant, None).await.unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let (_, answer) = json_of(server.post("/mcp", &list).bearer_auth(&key).send().await.unwrap()).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["name"]), (1, &json!("list_active_agents")));
    let call = crate::support::call(1, "echo", json!({}));
    let (_, answer) = json_of(server.post("/mcp", &call).bearer_auth(&key).send().await.unwrap()).await;
    assert_eq!(answer["error"]["code"], -32003);
    assert_eq!(answer["error"]["message"], "key 'bound' is not valid for toolset 'play'");
    server.stopped().await;
}
