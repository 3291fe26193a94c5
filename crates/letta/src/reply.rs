//! What the agent said, found in Letta's answer.

use serde::Deserialize;
use serde_json::Value;

/// The longest reply, in bytes.
const MAX_REPLY: usize = 1_024;

/// The text of the assistant's messages in `body`, one to a line, at most 1,024 bytes. None if there is none, or if the
/// body is not Letta's: a JSON object with `messages`, or server-sent events with a message each.
pub(crate) fn assistant_text(body: &[u8]) -> Option<String> {
    let body = std::str::from_utf8(body).ok()?;
    let texts: Vec<String> = match serde_json::from_str::<Answer>(body) {
        Ok(answer) => answer.messages.iter().filter_map(text_of).collect(),
        Err(_) => events(body).filter_map(|message| text_of(&message)).collect(),
    };
    let text = texts.join("\n");
    let text = text.trim();
    let cut = &text[..text.floor_char_boundary(MAX_REPLY)];
    (!cut.is_empty()).then(|| cut.to_owned())
}

#[derive(Deserialize)]
struct Answer {
    messages: Vec<Value>,
}

fn events(body: &str) -> impl Iterator<Item = Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.filter_map(|data| serde_json::from_str(data.trim()).ok())
}

/// A content is a text or a list of parts, of which some are texts.
fn text_of(message: &Value) -> Option<String> {
    if message.get("message_type")?.as_str()? != "assistant_message" {
        return None;
    }
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_what_the_assistant_said_and_nothing_else() {
        for (body, reply) in [
            (r#"{"messages":[{"message_type":"assistant_message","content":"Hi"}]}"#, Some("Hi")),
            (
                r#"{"messages":[{"message_type":"reasoning_message","reasoning":"hm"},
                    {"message_type":"assistant_message","content":[{"type":"text","text":"a"},{"type":"image"}]},
                    {"message_type":"assistant_message","content":"b"}],"usage":{}}"#,
                Some("a\nb"),
            ),
            (
                "data: {\"message_type\":\"assistant_message\",\"content\":\"s\"}\n\ndata: [DONE]\n\n",
                Some("s"),
            ),
            (r#"{"messages":[{"message_type":"assistant_message","content":""}]}"#, None),
            (r#"{"messages":[{"message_type":"assistant_message","content":5},{},7]}"#, None),
            (r#"{"messages":"none"}"#, None),
            ("OK", None),
            ("", None),
        ] {
            assert_eq!(assistant_text(body.as_bytes()).as_deref(), reply, "{body}");
        }
        assert_eq!(assistant_text(b"\xff"), None);
    }

    #[test]
    fn a_long_reply_ends_with_a_whole_character() {
        let body = serde_json::json!({
            "messages": [{"message_type": "assistant_message", "content": "x".to_owned() + &"ü".repeat(600)}]
        });
        assert_eq!(assistant_text(body.to_string().as_bytes()).map(|text| text.len()), Some(1_023));
    }
}
