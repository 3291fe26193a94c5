//! The tools, and those answers that need nothing of the client.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListToolsResult,
    ProgressNotificationParam,
};
use serde_json::{Value, json};

use super::{Context, PNG, WAV, complete};

pub(super) fn list() -> Result<ListToolsResult, ErrorData> {
    let nothing = || json!({"type": "object", "properties": {}});
    let one_text =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_progress",
        "test_tool_with_logging",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_reconnection",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_logging_tool",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
    ];
    let mut schemas: Vec<(&str, Value)> = plain.into_iter().map(|name| (name, nothing())).collect();
    schemas.extend([
        ("json_schema_2020_12_tool", json_schema_2020_12()),
        ("test_sampling", one_text("prompt")),
        ("test_elicitation", one_text("message")),
        (
            "test_custom_header",
            json!({
                "type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
                "required": ["region"],
            }),
        ),
    ]);
    let tool = |(name, schema): (&str, Value)| json!({"name": name, "description": format!("The fixture {name} of the conformance suite."), "inputSchema": schema});
    complete(json!({"tools": schemas.into_iter().map(tool).collect::<Vec<_>>()}))
}

fn json_schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(super) async fn call(
    call: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = match &*call.name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => json!([{"type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        }}]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": r#"{"test":"data","value":123}"#,
            }},
        ]),
        "test_error_handling" => {
            let content = json!([text("This tool intentionally returns an error for testing")]);
            return complete::<CallToolResult>(json!({"content": content, "isError": true})).map(Into::into);
        }
        "test_tool_with_progress" => {
            report_progress(context).await;
            json!([text("Done.")])
        }
        "json_schema_2020_12_tool" | "test_custom_header" => {
            let arguments = Value::Object(call.arguments.clone().unwrap_or_default());
            json!([text(&arguments.to_string())])
        }
        known if list()?.tools.iter().any(|tool| tool.name == known) => {
            let content = json!([text("This fixture belongs to another protocol version.")]);
            return complete::<CallToolResult>(json!({"content": content, "isError": true})).map(Into::into);
        }
        unknown => return Err(ErrorData::invalid_params(format!("Unknown tool: {unknown}"), None)),
    };
    answer(content)
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn answer(content: Value) -> Result<CallToolResponse, ErrorData> {
    complete::<CallToolResult>(json!({"content": content})).map(Into::into)
}

async fn report_progress(context: &Context) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for done in [0.0, 50.0, 100.0] {
        let report = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        let _ = context.peer.notify_progress(report).await;
        pause().await;
    }
}

/// So long that what was sent before has left.
pub(super) async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
