//! Calls of tools.

use std::sync::{Arc, Mutex};

use crate::support::{deliver, delivery, text};
use serde_json::{Map, Value, json};
use switchboard_access::Caller;
use switchboard_schedule::{Message, Outcome, Target as _};
use switchboard_targets::ToolTarget;
use switchboard_tools::{Annotations, Context, Definition, Handler, Output, Registry, Tool, Toolset};

type Calls = Arc<Mutex<Vec<(Map<String, Value>, Context)>>>;

/// A target that knows the tools `works` and `complains`, and the calls they got. The registry goes when it is dropped.
fn target() -> (ToolTarget, Arc<Registry>, Calls) {
    let calls = Calls::default();
    let noting = calls.clone();
    let note = move |arguments: Map<String, Value>, context: Context| {
        let said = format!("heard {}", Value::Object(arguments.clone()));
        noting.lock().unwrap().push((arguments, context));
        async { Ok(Output::text(said)) }
    };
    let complain = |_: Map<String, Value>, _: Context| async { Ok(Output::text("the disk is full").error()) };
    let toolset = Toolset {
        name: "test",
        summary: "",
        instructions: "",
        server_name: "test",
        server_version: "1",
        sessions: false,
    };
    let tools = [tool("works", Handler::new(note)), tool("complains", Handler::new(complain))];
    let registry = Arc::new(Registry::new([toolset], tools).unwrap());
    let target = ToolTarget::default();
    target.connect(&registry);
    (target, registry, calls)
}

fn tool(name: &'static str, handler: Handler) -> Tool {
    let definition = Definition {
        name,
        title: name,
        description: "",
        input_schema: Arc::default(),
        output_schema: None,
        annotations: Annotations::WRITES,
    };
    Tool { toolset: "test", definition, handler }
}

#[tokio::test]
async fn the_answer_of_a_tool_is_the_reply() {
    let (target, _registry, calls) = target();
    let message = Message::json(&json!({"a": 1}));
    let outcome = deliver(&target, delivery("tool", "works", message)).await;
    assert_eq!(outcome, Outcome::Delivered { reply: Some("heard {\"a\":1}".to_owned()) });
    let calls = calls.lock().unwrap();
    assert_eq!(Value::Object(calls[0].0.clone()), json!({"a": 1}));
}

#[tokio::test]
async fn a_call_carries_the_key_of_its_occurrence_and_the_rights_of_this_machine() {
    let (target, _registry, calls) = target();
    for _ in 0..2 {
        deliver(&target, delivery("tool", "works", text(""))).await;
    }
    for (arguments, context) in &*calls.lock().unwrap() {
        assert!(arguments.is_empty(), "no message is no arguments");
        let id = context.command_id.as_ref().map(ToString::to_string);
        assert_eq!(id.as_deref(), Some("schedule-93@2025-01-02T09:00:00Z"));
        assert_eq!(format!("{:?}", context.caller), format!("{:?}", Caller::local()));
    }
}

#[tokio::test]
async fn a_complaint_of_a_tool_is_tried_again() {
    let (target, _registry, _calls) = target();
    let outcome = deliver(&target, delivery("tool", "complains", text("{}"))).await;
    assert_eq!(outcome, Outcome::failed("the disk is full"));
}

#[tokio::test]
async fn what_no_repetition_can_mend_is_not_tried_again() {
    let (target, _registry, calls) = target();
    let unknown = deliver(&target, delivery("tool", "vanished", text("{}"))).await;
    assert_eq!(unknown, Outcome::refused("Unknown tool: vanished"));
    for message in ["[1]", "no JSON"] {
        let outcome = deliver(&target, delivery("tool", "works", text(message))).await;
        let why = "the message must be the JSON object of the tool's arguments";
        assert_eq!(outcome, Outcome::refused(why), "{message}");
    }
    assert!(calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_is_called_later_if_the_tools_are_not_there_yet() {
    let outcome = deliver(&ToolTarget::default(), delivery("tool", "works", text("{}"))).await;
    assert!(matches!(outcome, Outcome::Failed { permanent: false, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_destination_is_a_tool_that_is_there_and_a_message_its_arguments() {
    let (target, _registry, _calls) = target();
    assert_eq!(target.check("works", &text("{\"a\": 1}")), Ok(()));
    assert_eq!(target.check("works", &text(" ")), Ok(()));
    assert!(target.check("works", &text("wake up")).is_err());
    let why = target.check("vanished", &text("{}")).unwrap_err();
    assert_eq!(why, "there is no tool 'vanished': `switchboard tools` lists them");
}
