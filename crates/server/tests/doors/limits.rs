//! Every bound is reached with an answer that names it.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use switchboard_server::{Limits, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{SOON, Server, call, initialize, json_of, soon};

async fn limited(set: impl FnOnce(&mut Limits)) -> Server {
    let mut options = Options::default();
    set(&mut options.limits);
    Server::with(options).await
}

/// Sends bytes on a connection of their own and reads until the other side closes.
async fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may answer and close before everything is sent.
    let _ = stream.write_all(bytes).await;
    read_to_end(&mut stream).await
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await;
    let _ = read.expect("the server should have closed the connection");
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn bodies_are_bounded_with_and_without_a_length() {
    let server = limited(|limits| limits.body_bytes = 1_000).await;
    let fits = call(1, "echo", json!({"a": "x".repeat(500)}));
    let large = call(1, "echo", json!({"a": "x".repeat(2_000)}));
    let larger = json!({"a": "x".repeat(1 << 20)});
    assert_eq!(server.post("/mcp", &fits).send().await.unwrap().status(), 200);
    let (status, answer) = json_of(server.post("/mcp", &large).send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (413, &json!(-32600)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("limits.body_bytes"));
    let (status, answer) = json_of(server.post("/api/tools/echo", &larger).send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (413, &json!("body_too_large")));
    let chunked = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n7d0\r\n{}\r\n0\r\n\r\n",
        "x".repeat(2_000)
    );
    assert!(raw(&server, chunked.as_bytes()).await.starts_with("HTTP/1.1 413"));
    server.stopped().await;
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let server = limited(|limits| limits.body_timeout = Duration::from_millis(50)).await;
    let half = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let answer = raw(&server, half).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("limits.body_timeout"), "{answer}");
    server.stopped().await;
}

#[tokio::test]
async fn json_may_not_be_nested_without_end() {
    let server = limited(|limits| limits.json_depth = 10).await;
    let nested = |depth: usize| {
        let mut value = json!(1);
        for _ in 0..depth {
            value = json!([value]);
        }
        call(1, "echo", json!({"a": value}))
    };
    // The message, its params and the arguments are three levels.
    assert_eq!(server.post("/mcp", &nested(7)).send().await.unwrap().status(), 200);
    let (status, answer) = json_of(server.post("/mcp", &nested(8)).send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32700)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("limits.json_depth"));
    let deep = "[".repeat(1 << 20);
    let request = server.request(Method::POST, "/mcp").header("content-type", "application/json").body(deep);
    assert_eq!(request.send().await.unwrap().status(), 400);
    server.stopped().await;
}

#[tokio::test]
async fn headers_are_bounded_in_number_and_size() {
    let server = limited(|limits| (limits.headers, limits.header_bytes) = (20, 2_000)).await;
    let with = async |count: usize, length: usize| {
        let mut request = server.request(Method::GET, "/api/tools");
        for number in 0..count {
            request = request.header(format!("x-{number}"), "v".repeat(length));
        }
        json_of(request.send().await.unwrap()).await
    };
    assert_eq!(with(10, 1).await.0, 200);
    for (count, length, what) in [(30, 1, "limits.headers"), (1, 3_000, "limits.header_bytes")] {
        let (status, answer) = with(count, length).await;
        assert_eq!((status, &answer["error"]["code"]), (431, &json!("headers_too_large")));
        assert!(answer["error"]["message"].as_str().unwrap().contains(what), "{answer}");
    }
    // Far over the limit nothing is read to the end.
    let endless = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "v".repeat(1 << 20));
    assert!(raw(&server, endless.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let countless = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(500));
    assert!(raw(&server, countless.as_bytes()).await.starts_with("HTTP/1.1 431"));
    server.stopped().await;
}

#[tokio::test]
async fn headers_that_do_not_arrive_are_not_waited_for() {
    let server = limited(|limits| limits.header_timeout = Duration::from_millis(50)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: loc").await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "");
    server.stopped().await;
}

#[tokio::test]
async fn too_many_requests_connections_and_calls_are_told_to_come_back() {
    let server = limited(|limits| (limits.requests, limits.calls) = (2, 1)).await;
    let waiting = tokio::spawn(server.post("/mcp", &call(1, "wait", json!({}))).send());
    soon(&server.signals.began).await;
    let (status, answer) =
        json_of(server.post("/mcp", &call(2, "echo", json!({}))).send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32000)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("limits.calls"));
    let response = server.post("/api/tools/echo", &json!({})).send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(json_of(response).await.0, 503);
    server.signals.go.add_permits(1);
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    server.stopped().await;

    let server = limited(|limits| limits.requests = 1).await;
    let waiting = tokio::spawn(server.post("/mcp", &call(1, "wait", json!({}))).send());
    soon(&server.signals.began).await;
    let response = server.get("/health").await;
    assert_eq!(response.headers()["retry-after"], "1");
    let (status, answer) = json_of(response).await;
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("busy")));
    assert!(answer["error"]["message"].as_str().unwrap().contains("limits.requests"));
    server.signals.go.add_permits(1);
    waiting.await.unwrap().unwrap();
    server.stopped().await;

    let server = limited(|limits| limits.connections = 1).await;
    assert_eq!(server.get("/health").await.status(), 200, "and its connection stays open");
    let mut second = TcpStream::connect(server.address).await.unwrap();
    let answer = read_to_end(&mut second).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("limits.connections"), "{answer}");
    server.stopped().await;
}

#[tokio::test]
async fn sessions_and_streams_are_bounded() {
    let server = limited(|limits| {
        (limits.sessions, limits.sse_sessions, limits.watchers) = (1, 1, 1);
    })
    .await;
    let begin = || server.mcp("/mcp", &initialize("2025-11-25")).send();
    let first = begin().await.unwrap();
    let session = first.headers()["mcp-session-id"].clone();
    first.bytes().await.unwrap();
    let (status, answer) = json_of(begin().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (503, &json!(-32000)), "{answer}");
    assert_eq!(server.post("/mcp", &call(1, "echo", json!({}))).send().await.unwrap().status(), 200);
    let end = server.request(Method::DELETE, "/mcp").header("mcp-session-id", session);
    end.send().await.unwrap();
    assert_eq!(begin().await.unwrap().status(), 200);

    for path in ["/sse", "/api/events?stream=notes"] {
        let first = server.get(path).await;
        assert_eq!(first.status(), 200);
        let (status, answer) = json_of(server.get(path).await).await;
        assert_eq!((status, &answer["error"]["code"]), (503, &json!("busy")), "{path}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn batches_are_bounded() {
    let server = limited(|limits| limits.batch = 2).await;
    let batch = json!([call(1, "echo", json!({})), call(2, "echo", json!({})), call(3, "echo", json!({}))]);
    let (status, answer) = json_of(server.post("/mcp", &batch).send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("limits.batch"));
    server.stopped().await;
}
