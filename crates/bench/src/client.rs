//! A client that costs as little as possible: one connection, one request at a time, no HTTP library.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A keep-alive connection.
pub(crate) struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    calls: u64,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts connections");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        Self { stream, request: Vec::new(), answer: Vec::new(), calls: 0 }
    }

    /// Calls an MCP tool as the newest protocol does it: one request, no session. `arguments` is JSON.
    /// Gives the body of the answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> &[u8] {
        self.calls += 1;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
            self.calls
        );
        let headers = format!(
            "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
        );
        self.post("/mcp", &headers, &body).await
    }

    /// Posts JSON. Gives the body of the answer, which must be of status 200.
    pub(crate) async fn post(&mut self, path: &str, headers: &str, body: &str) -> &[u8] {
        self.request.clear();
        self.request.extend_from_slice(
            format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        );
        self.stream.write_all(&self.request).await.expect("the server reads");
        self.read().await
    }

    async fn read(&mut self) -> &[u8] {
        self.answer.clear();
        let (head, length) = loop {
            let count = self.stream.read_buf(&mut self.answer).await.expect("the server answers");
            assert!(count > 0, "the server closed the connection");
            if let Some(head) = find(&self.answer, b"\r\n\r\n") {
                break (head + 4, self.content_length(head));
            }
        };
        while self.answer.len() < head + length {
            let count = self.stream.read_buf(&mut self.answer).await.expect("the server answers");
            assert!(count > 0, "the server closed the connection in the middle of an answer");
        }
        &self.answer[head..head + length]
    }

    fn content_length(&self, head: usize) -> usize {
        let head = std::str::from_utf8(&self.answer[..head]).expect("headers are text");
        assert!(head.starts_with("HTTP/1.1 200"), "not answered: {}", String::from_utf8_lossy(&self.answer));
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        length.and_then(|(_, value)| value.trim().parse().ok()).expect("an answer says how long it is")
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Panics unless the body of an answer is a tool's success.
pub(crate) fn expect_success(body: &[u8]) {
    let is_error = find(body, br#""isError":true"#).is_some() || find(body, br#""error":{"#).is_some();
    assert!(!is_error, "a call failed: {}", String::from_utf8_lossy(body));
}
