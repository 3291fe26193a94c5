//! What a server may do during a call: ask the client, log, break off its stream (protocols with sessions); insist on a
//! capability, tell listeners that something changed (protocols without).

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CustomRequest, ErrorData, LoggingLevel,
    LoggingMessageNotificationParam, ServerRequest,
};
use serde_json::{Value, json};

use super::tools::{answer, pause, text};
use super::{Changed, Context, Fixtures, from_json};

impl Fixtures {
    /// The answer of a tool that exists for protocols with sessions only.
    pub(super) async fn call_in_session(
        &self,
        call: &CallToolRequestParams,
        context: &Context,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let argument = |name: &str| {
            call.arguments.as_ref().and_then(|arguments| arguments.get(name)?.as_str()).unwrap_or_default()
        };
        let said = match &*call.name {
            "test_tool_with_logging" => {
                log(context, &["Tool execution started", "Tool processing data", "Tool execution completed"])
                    .await;
                "Logged.".to_owned()
            }
            "test_sampling" => {
                let answer =
                    ask(context, "sampling/createMessage", sampling(argument("prompt"), 100)).await?;
                format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default())
            }
            "test_elicitation" => {
                let schema = json!({
                    "type": "object",
                    "properties": {
                        "username": {"type": "string", "description": "User's response"},
                        "email": {"type": "string", "description": "User's email address"},
                    },
                    "required": ["username", "email"],
                });
                let answer = elicit(context, argument("message"), schema).await?;
                format!("User response: {answer}")
            }
            "test_elicitation_sep1034_defaults" => {
                format!("Elicitation completed: {}", elicit(context, "Fill this in", defaults()).await?)
            }
            "test_elicitation_sep1330_enums" => {
                format!("Elicitation completed: {}", elicit(context, "Choose", enums()).await?)
            }
            "test_reconnection" => {
                self.break_off(context).await;
                "The stream was broken off and taken up again.".to_owned()
            }
            _ => return Ok(None),
        };
        answer(json!([text(&said)])).map(Some)
    }

    /// The answer of a tool that exists for protocols without sessions only.
    pub(super) fn call_stateless(
        &self,
        call: &CallToolRequestParams,
        context: &Context,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let said = match &*call.name {
            "test_missing_capability" => {
                let declared = context.client_capabilities().unwrap_or_default();
                if declared.sampling.is_none() {
                    let required: ClientCapabilities = from_json(json!({"sampling": {}}))?;
                    return Err(ErrorData::missing_required_client_capability(required));
                }
                "The client can sample."
            }
            "test_streaming_elicitation" => {
                let requests =
                    json!({"user_name": super::rounds::elicitation("What is your name?", "name", "string")});
                return super::rounds::ask_for(requests, None).map(Some);
            }
            "test_logging_tool" => "Nothing is logged to a client that did not ask for it.",
            "test_trigger_tool_change" => self.tell(Changed::Tools),
            "test_trigger_prompt_change" => self.tell(Changed::Prompts),
            _ => return Ok(None),
        };
        answer(json!([text(said)])).map(Some)
    }

    fn tell(&self, changed: Changed) -> &'static str {
        // Nobody may be listening.
        let _ = self.changes.send(changed);
        "Whoever listens was told."
    }

    /// Ends the stream of this call; its client takes it up again with its last event's id.
    async fn break_off(&self, context: &Context) {
        let parts = context.extensions.get::<http::request::Parts>();
        let id = parts.and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok());
        let Some(id) = id else { return };
        // The library numbers a session's streams and does not say which is whose: this call's is the only one open.
        {
            let sessions = self.sessions.sessions.read().await;
            let Some(session) = sessions.get(id) else { return };
            for stream in 0..100 {
                if session.close_sse_stream(stream, Some(Duration::from_millis(300))).await.is_ok() {
                    break;
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Asks the client, in the words of the protocol, and gives its answer in the same.
async fn ask(context: &Context, method: &str, params: Value) -> Result<Value, ErrorData> {
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let answer = context.peer.send_request(request).await.map_err(|error| {
        ErrorData::internal_error(format!("the client did not answer {method}: {error}"), None)
    })?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn elicit(context: &Context, message: &str, schema: Value) -> Result<String, ErrorData> {
    let params = json!({"message": message, "requestedSchema": schema});
    let answer = ask(context, "elicitation/create", params).await?;
    Ok(format!("action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"]))
}

pub(super) fn sampling(prompt: &str, max_tokens: u32) -> Value {
    json!({"messages": [{"role": "user", "content": text(prompt)}], "maxTokens": max_tokens})
}

async fn log(context: &Context, messages: &[&str]) {
    for message in messages {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, Value::from(*message));
        let _ = context.peer.notify_logging_message(message).await;
        pause().await;
    }
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }})
}

fn enums() -> Value {
    let titled = |kind: &str| {
        json!([
            {"const": "value1", "title": format!("First {kind}")},
            {"const": "value2", "title": format!("Second {kind}")},
            {"const": "value3", "title": format!("Third {kind}")},
        ])
    };
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }})
}
