//! The resources.

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult,
};
use serde_json::json;

use super::{PNG, complete};

pub(super) fn list() -> Result<ListResourcesResult, ErrorData> {
    complete(json!({"resources": [
        {"uri": "test://static-text", "name": "Static text", "mimeType": "text/plain"},
        {"uri": "test://static-binary", "name": "Static image", "mimeType": "image/png"},
        {"uri": "test://watched-resource", "name": "Watched", "mimeType": "text/plain"},
    ]}))
}

pub(super) fn templates() -> Result<ListResourceTemplatesResult, ErrorData> {
    complete(json!({"resourceTemplates": [
        {"uriTemplate": "test://template/{id}/data", "name": "Template", "mimeType": "application/json"},
    ]}))
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => json!({
            "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource.",
        }),
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        ("test://watched-resource", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "Nothing happens here."})
        }
        (_, Some(id)) => {
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
        _ => {
            let message = format!("there is no resource {uri}");
            return Err(ErrorData::invalid_params(message, Some(json!({"uri": uri}))));
        }
    };
    complete::<ReadResourceResult>(json!({"contents": [content]})).map(Into::into)
}
