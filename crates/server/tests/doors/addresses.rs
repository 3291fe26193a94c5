//! What else is served: health, metrics, the address of A2AMCP, and nothing.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, call, initialize, json_of};

#[tokio::test]
async fn health_tells_whether_the_journal_works() {
    let server = Server::start().await;
    for path in ["/health", "/api/health"] {
        let (status, health) = json_of(server.get(path).await).await;
        assert_eq!((status, &health["status"]), (200, &json!("ok")), "{path}");
        assert_eq!(health["journal"], json!({"reads": true, "writes": true}));
    }
    server.journal.fill();
    let (status, health) = json_of(server.get("/health").await).await;
    assert_eq!((status, &health["status"]), (503, &json!("degraded")));
    assert!(health["journal"]["error"].as_str().unwrap().contains("the disk is full"), "{health}");
    let compat = format!("http://{}/health", server.a2amcp);
    let (status, health) = json_of(server.client.get(&compat).send().await.unwrap()).await;
    assert_eq!((status, &health["status"]), (503, &json!("unhealthy")));
    server.stopped().await;
}

#[tokio::test]
async fn metrics_count_requests_and_calls() {
    let server = Server::start().await;
    for tool in ["echo", "fail", "nope"] {
        server.post("/mcp", &call(1, tool, json!({}))).send().await.unwrap();
    }
    server.get("/nowhere").await;
    let session = server.mcp("/mcp", &initialize("2025-11-25")).send().await.unwrap();
    let response = server.get("/metrics").await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = response.text().await.unwrap();
    for line in [
        r#"http_requests_total{route="/mcp",status="200"} 4"#,
        r#"http_requests_total{route="(other)",status="404"} 1"#,
        r#"tool_calls_total{tool="echo",outcome="ok"} 1"#,
        r#"tool_calls_total{tool="fail",outcome="error"} 1"#,
        r#"tool_calls_total{tool="(unknown)",outcome="unknown"} 1"#,
        r#"tool_call_seconds_count{tool="echo"} 1"#,
        "mcp_sessions 1",
        "project_commands_total 0",
        "projects_live 0",
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line} is missing in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    drop(session);
    server.stopped().await;
}

#[tokio::test]
async fn the_address_of_a2amcp_serves_that_system_and_nothing_else() {
    let server = Server::start().await;
    let url = |path: &str| format!("http://{}{path}", server.a2amcp);
    let post = async |path: &str, body: &Value| {
        json_of(server.client.post(url(path)).json(body).send().await.unwrap()).await
    };
    let health = server.client.get(url("/health")).send().await.unwrap();
    let expected = json!({"status": "healthy", "service": "splitmind-mcp-server", "redis": "connected"});
    assert_eq!(json_of(health).await, (200, expected));
    for path in ["/", "/mcp", "/mcp/"] {
        let (_, answer) = post(path, &initialize("2025-06-18")).await;
        assert_eq!(answer["result"]["serverInfo"]["version"], "1.0.0", "{path}");
        let (status, answer) = post(path, &call(1, "list_active_agents", json!({}))).await;
        assert_eq!((status, &answer["result"]["isError"]), (200, &json!(false)), "{path}");
        assert!(answer["result"].get("structuredContent").is_none());
        assert_eq!(post(path, &call(1, "echo", json!({}))).await.1["error"]["message"], "Unknown tool: echo");
    }
    for path in ["/", "/metrics", "/api/health", "/nowhere"] {
        assert_eq!(server.client.get(url(path)).send().await.unwrap().status(), 404, "{path}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn where_there_is_nothing_that_is_said() {
    let server = Server::start().await;
    let (status, answer) = json_of(server.get("/nowhere").await).await;
    assert_eq!((status, &answer["error"]["message"]), (404, &json!("there is nothing at /nowhere")));
    let (status, answer) = json_of(server.request(Method::PUT, "/health").send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (405, &json!("method_not_allowed")));
    let (status, _) = json_of(server.request(Method::POST, "/").send().await.unwrap()).await;
    assert_eq!(status, 404);
    server.stopped().await;
}
