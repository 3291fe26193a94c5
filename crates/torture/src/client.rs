//! A client: one connection, one call at a time, no HTTP library between it and the moment the server dies.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Outcome, Torment};

/// The longest a call may take. The longest wait that a call asks for is much shorter.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) value: Value,
    /// The code of a refusal; none for a success.
    pub(crate) refused: Option<String>,
}

/// How a call carries the id under which it may be repeated. Both ways mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdBy {
    Header,
    Meta,
}

/// A keep-alive connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    calls: u64,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Outcome<Self> {
        let connect = || {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        Ok(Self { stream: connect().map_err(Torment::Lost)?, received: Vec::new(), calls: 0 })
    }

    /// Calls an MCP tool as the newest protocol does it: one request, no session.
    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        id: Option<(&str, IdBy)>,
    ) -> Outcome<Answer> {
        self.calls += 1;
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "torture", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut header = String::new();
        match id {
            Some((id, IdBy::Header)) => header = format!("idempotency-key: {id}\r\n"),
            Some((id, IdBy::Meta)) => meta["switchboard/commandId"] = id.into(),
            None => {}
        }
        let body = json!({
            "jsonrpc": "2.0", "id": self.calls, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": meta},
        })
        .to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n{header}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (head, body) = self.exchange(&request).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Torment::broken(format!("'{tool}' was not answered within {PATIENCE:?}: {arguments}"))
            }
            _ => Torment::Lost(error),
        })?;
        understand(self.calls, &head, &body).ok_or_else(|| {
            let body = String::from_utf8_lossy(&body);
            Torment::broken(format!("'{tool}' with {arguments} was answered with {head}\n{body}"))
        })
    }

    /// Sends a request and reads its whole answer.
    fn exchange(&mut self, request: &str) -> io::Result<(String, Vec<u8>)> {
        self.stream.write_all(request.as_bytes())?;
        self.received.clear();
        let head = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more()?;
        };
        let text = String::from_utf8_lossy(&self.received[..head]).into_owned();
        let length = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse::<usize>().ok())
            .ok_or_else(|| io::Error::other(format!("an answer without a length: {text}")))?;
        while self.received.len() < head + length {
            self.read_more()?;
        }
        Ok((text, self.received[head..head + length].to_vec()))
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(())
            }
        }
    }
}

/// The tool's own answer, if the server gave one.
fn understand(id: u64, head: &str, body: &[u8]) -> Option<Answer> {
    let message: Value = serde_json::from_slice(body).ok().filter(|_| head.starts_with("HTTP/1.1 200"))?;
    if message["id"] != id {
        return None;
    }
    let text = message["result"]["content"][0]["text"].as_str()?;
    let value: Value = serde_json::from_str(text).ok()?;
    // `coordination` names a code; A2AMCP says what became of the call in `status`, also where that is no error.
    let code = value["error"]["code"].as_str().or_else(|| value["details"]["code"].as_str());
    let conflict = (value["status"] == "conflict").then_some("conflict");
    let refused = code.or(conflict).map(str::to_owned);
    let is_error = message["result"]["isError"] == true;
    (!is_error || refused.is_some()).then_some(Answer { value, refused })
}
