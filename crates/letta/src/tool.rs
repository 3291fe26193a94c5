//! A tool for all agents.

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::call::{Call, whole};
use crate::{CallError, Letta};

/// A tool that Letta took.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tool {
    /// Its id.
    pub id: String,
    /// The name that Letta derived from the source code.
    pub name: Option<String>,
}

impl Letta {
    /// Uploads the source code of a tool. A tool of the same name is replaced.
    ///
    /// Whether Letta wants a token for it is for the caller to know: see [`Letta::has_secret`].
    pub async fn upload(&self, source_code: &str, description: Option<&str>) -> Result<Tool, CallError> {
        if source_code.trim().is_empty() {
            return Err(CallError::NoSource);
        }
        let mut body = json!({"source_code": source_code});
        if let Some(description) = description {
            body["description"] = description.into();
        }
        let call = Call {
            method: Method::PUT,
            path: "/v1/tools/".into(),
            body: Bytes::from(body.to_string()),
            idempotency_key: None,
            limits: whole(self.shared.timing.call),
        };
        let answer = self.call(&call).await.map_err(CallError::Fault)?;
        let body = self.success(answer)?.body;
        serde_json::from_slice(&body).map_err(|_| CallError::NotUnderstood { expected: "a tool with its id" })
    }
}
