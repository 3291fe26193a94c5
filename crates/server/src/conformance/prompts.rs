//! The prompts.

use rmcp::model::{ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult};
use serde_json::{Value, json};

use super::rounds::{elicitation, input_required};
use super::tools::text;
use super::{PNG, complete};

pub(super) fn list() -> Result<ListPromptsResult, ErrorData> {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|name| json!({"name": name, "description": "A text.", "required": true}))
            .collect();
        json!({"name": name, "description": format!("The fixture {name} of the conformance suite."), "arguments": arguments})
    };
    complete(json!({"prompts": [
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]}))
}

pub(super) fn get(prompt: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let given = prompt.arguments.as_ref().and_then(|arguments| arguments.get(name));
        given.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default()
    };
    let content = match &*prompt.name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![text(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            json!({"type": "resource", "resource": {
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" if prompt.input_responses.is_none() => {
            let context = elicitation("What context should the prompt use?", "context", "string");
            return Ok(input_required(json!({"user_context": context}), None)?.into());
        }
        "test_input_required_result_prompt" => vec![text("This prompt has the context that you gave.")],
        unknown => return Err(ErrorData::invalid_params(format!("Unknown prompt: {unknown}"), None)),
    };
    let messages: Vec<Value> =
        content.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    complete::<GetPromptResult>(json!({"messages": messages})).map(Into::into)
}
