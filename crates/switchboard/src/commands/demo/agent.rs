//! An MCP client, as small as it can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ::http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use ::http::{Method, Response};
use futures::StreamExt as _;
use hyper::body::{Bytes, Incoming};
use serde_json::{Value, json};

use crate::Failure;
use crate::http::{Http, refusal};

const PATH: &str = "/mcp/coordination";
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// An agent of the play, connected over MCP.
#[derive(Debug)]
pub(super) struct Agent {
    http: Http,
    project: String,
    name: &'static str,
    session: Vec<(HeaderName, HeaderValue)>,
    next_id: AtomicU64,
}

impl Agent {
    /// Connects as every MCP client does.
    pub(super) async fn connect(
        http: &Http,
        project: &str,
        name: &'static str,
    ) -> Result<Arc<Self>, Failure> {
        let mut agent = Self {
            http: http.clone(),
            project: project.to_owned(),
            name,
            session: Vec::new(),
            next_id: AtomicU64::new(1),
        };
        let version = "2025-11-25";
        let hello = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": format!("demo-{name}"), "version": env!("CARGO_PKG_VERSION")},
        });
        let (_, session) = agent.request("initialize", hello).await?;
        agent.session = session.map(|id| (SESSION_ID, id)).into_iter().collect();
        agent.session.push((PROTOCOL_VERSION, HeaderValue::from_static("2025-11-25")));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        agent.post(&ready).await?;
        Ok(Arc::new(agent))
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The arguments with the project and the session, which every tool wants.
    pub(super) fn complete(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["project"] = self.project.clone().into();
        // What belongs to all has no session.
        if !matches!(tool, "interface_get") {
            arguments["session"] = self.name.into();
        }
        arguments
    }

    /// Calls a tool: its answer, and whether that is an error.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<(Value, bool), Failure> {
        let (result, _) = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let is_error = result["isError"] == true;
        let text = || result["content"][0]["text"].as_str().unwrap_or_default();
        let answer = match &result["structuredContent"] {
            Value::Null => serde_json::from_str(text()).unwrap_or_else(|_| text().into()),
            structured => structured.clone(),
        };
        Ok((answer, is_error))
    }

    /// Ends the connection.
    pub(super) async fn leave(&self) {
        // The server finds out by itself, after a while.
        let _ = self.http.send(Method::DELETE, PATH, &self.session, Bytes::new()).await;
    }

    async fn request(&self, method: &str, params: Value) -> Result<(Value, Option<HeaderValue>), Failure> {
        let id = self.next_id.fetch_add(1, Relaxed);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = self.post(&request).await?;
        let session = response.headers().get(SESSION_ID).cloned();
        let answer = self.answer(response, id).await?;
        match answer.get("error") {
            Some(error) => Err(Failure::failed(format!("{method} failed: {}", error["message"]))),
            None => Ok((answer["result"].clone(), session)),
        }
    }

    async fn post(&self, message: &Value) -> Result<Response<Incoming>, Failure> {
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        ];
        headers.extend(self.session.iter().cloned());
        let response = self.http.send(Method::POST, PATH, &headers, message.to_string().into()).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.http.read(response).await?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Err(refusal(status, &body))
    }

    /// The answer to request `id`: alone, or among the events of a stream.
    async fn answer(&self, response: Response<Incoming>, id: u64) -> Result<Value, Failure> {
        let json = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap_or_default();
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !content_type.is_some_and(|value| value.starts_with("text/event-stream")) {
            return Ok(json(&self.http.read(response).await?));
        }
        let mut events = std::pin::pin!(self.http.events(response));
        while let Some(event) = events.next().await {
            let message = json(event?.data.as_bytes());
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
        Err(Failure::failed("the server's answer ended early"))
    }
}
