//! What clients are told about the tools: names, schemas, hints, and how much context that costs an agent.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchboard_access::{Caller, Grant};
use switchboard_bus::{Bus, Retention};
use switchboard_coordination::{Coordination, Project, ServiceOptions, Settings};
use switchboard_exchange::{Exchange, Options, SystemClock};
use switchboard_journal::MemoryJournal;
use switchboard_tools::{
    CallError, Context, Output, PromptYoSelf, PromptYoSelfOptions, Registry, Services, View, catalogue,
    estimated_tokens,
};

fn registry() -> Arc<Registry> {
    let journal = Arc::new(MemoryJournal::new());
    let bus = Bus::new(journal.clone(), Arc::new(SystemClock), Retention::default());
    let schedules = switchboard_schedule::Schedules::new(
        Exchange::new(
            journal.clone(),
            Arc::new(SystemClock),
            switchboard_schedule::Settings::default(),
            Options::default(),
        ),
        switchboard_schedule::Targets::default(),
        switchboard_schedule::NodeId("n".into()),
    );
    let letta = switchboard_letta::Letta::new(switchboard_letta::Options::default()).unwrap();
    let exchange =
        Exchange::<Project>::new(journal, Arc::new(SystemClock), Settings::default(), Options::default());
    let coordination = Coordination::new(exchange, ServiceOptions { status_dir: None });
    let promptyoself = PromptYoSelf::new(schedules.clone(), letta.clone(), PromptYoSelfOptions::default());
    let services = Services {
        coordination: &coordination,
        bus: &bus,
        schedules: &schedules,
        zone: &switchboard_schedule::Zone::UTC,
        letta: &letta,
        promptyoself: &promptyoself,
    };
    catalogue(services, []).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn call(registry: &Registry, tool: &str, arguments: Value) -> Output {
    registry.call(&View::ALL, tool, object(arguments), Context::new(Caller::local())).await.unwrap()
}

#[test]
fn the_a2amcp_catalogue_has_the_19_tools_of_its_document() {
    let registry = registry();
    let names: Vec<_> =
        registry.tools(&registry.view("a2amcp").unwrap()).map(|tool| tool.definition.name).collect();
    assert_eq!(
        names,
        [
            "add_todo",
            "announce_file_change",
            "broadcast_message",
            "check_messages",
            "get_all_todos",
            "get_my_todos",
            "get_recent_changes",
            "heartbeat",
            "list_active_agents",
            "list_interfaces",
            "mark_task_completed",
            "query_agent",
            "query_interface",
            "register_agent",
            "register_interface",
            "release_file_lock",
            "respond_to_query",
            "unregister_agent",
            "update_todo",
        ]
    );
}

#[test]
fn the_a2amcp_schemas_require_what_the_document_gives_no_default_for() {
    let registry = registry();
    let required = |tool: &str| {
        let tool = registry.tool(&View::ALL, tool).unwrap();
        assert_eq!(tool.definition.input_schema["additionalProperties"], true);
        tool.definition.input_schema["required"].clone()
    };
    assert_eq!(required("query_agent"), json!(["project_id", "from_session", "to_session", "query"]));
    assert_eq!(
        required("respond_to_query"),
        json!(["project_id", "from_session", "to_session", "message_id", "response"])
    );
    assert_eq!(required("add_todo"), json!(["project_id", "session_name", "todo_item"]));
    assert_eq!(
        required("announce_file_change"),
        json!(["project_id", "session_name", "file_path", "change_type"])
    );
    assert_eq!(required("get_recent_changes"), json!(["project_id"]));
    assert_eq!(
        required("register_interface"),
        json!(["project_id", "session_name", "interface_name", "definition"])
    );
}

#[test]
fn the_a2amcp_schemas_say_types_and_defaults_and_no_aliases() {
    let registry = registry();
    let properties = |tool: &str| {
        let tool = registry.tool(&View::ALL, tool).unwrap();
        tool.definition.input_schema["properties"].clone()
    };
    let query = properties("query_agent");
    assert_eq!(query["timeout"]["type"], "integer");
    assert_eq!(query["timeout"]["default"], 30);
    assert_eq!(query["wait_for_response"]["default"], true);
    assert_eq!(query["query_type"]["type"], "string");
    let todo = properties("add_todo");
    assert_eq!((&todo["priority"]["type"], &todo["priority"]["default"]), (&json!("integer"), &json!(1)));
    assert!(todo.get("task").is_none());
    assert!(properties("get_recent_changes").get("minutes").is_none());
}

#[test]
fn every_definition_is_valid_and_names_no_format_that_validators_do_not_know() {
    let registry = registry();
    for tool in registry.tools(&View::ALL) {
        let definition = &tool.definition;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        assert!(definition.name.bytes().all(plain) && definition.name.len() <= 64, "{}", definition.name);
        assert_eq!(definition.input_schema["type"], "object", "{}", definition.name);
        let json = serde_json::to_string(&*definition.input_schema).unwrap();
        for word in ["\"format\"", "$ref", "$defs", "$schema", "null"] {
            assert!(!json.contains(word), "{} says {word}: {json}", definition.name);
        }
    }
}

#[test]
fn a_toolset_costs_an_agent_no_more_context_than_it_must() {
    let registry = registry();
    let cost =
        |view: &str| -> usize { registry.tools(&registry.view(view).unwrap()).map(estimated_tokens).sum() };
    // Raised on purpose only: every connected agent pays this.
    assert!(cost("a2amcp") <= 3_200, "{}", cost("a2amcp"));
    assert!(cost("coordination") <= 3_600, "{}", cost("coordination"));
    assert!(cost("bus") <= 400, "{}", cost("bus"));
    assert!(cost("schedule") <= 1_900, "{}", cost("schedule"));
    assert!(cost("promptyoself") <= 2_000, "{}", cost("promptyoself"));
    assert!(cost("agtos") <= 700, "{}", cost("agtos"));
    assert!(cost("discovery") <= 300, "{}", cost("discovery"));
}

#[tokio::test]
async fn a_tool_can_be_found_by_what_it_does_and_called_by_name() {
    let registry = registry();
    let found =
        call(&registry, "search_tools", json!({"query": "wait in line for a file lock", "limit": 3})).await;
    let found = found.structured.unwrap();
    let names: Vec<_> = found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("lock_acquire")), "{names:?}");

    let arguments = json!({"project": "p", "session": "ada"});
    let joined =
        call(&registry, "call_tool", json!({"name": "agent_register", "arguments": arguments})).await;
    assert!(!joined.is_error, "{}", joined.text);
    let unknown = call(&registry, "call_tool", json!({"name": "call_tool", "arguments": {}})).await;
    assert!(unknown.is_error && unknown.text.contains("search_tools"), "{}", unknown.text);
}

#[tokio::test]
async fn a_key_bound_to_a_project_and_a_toolset_goes_no_further() {
    let registry = registry();
    let grant = Grant {
        projects: Some(["mine".to_owned()].into()),
        toolsets: Some(["coordination".to_owned(), "discovery".to_owned()].into()),
        admin: false,
    };
    let caller = Caller { name: "bound".into(), grant: Arc::new(grant) };
    let call = |tool: &'static str, arguments: Value| {
        let (registry, caller) = (registry.clone(), caller.clone());
        async move { registry.call(&View::ALL, tool, object(arguments), Context::new(caller)).await }
    };
    assert!(call("agent_list", json!({"project": "mine"})).await.is_ok());
    assert!(matches!(call("agent_list", json!({"project": "other"})).await, Err(CallError::Denied(_))));
    assert!(matches!(
        call("list_active_agents", json!({"project_id": "mine"})).await,
        Err(CallError::Denied(_))
    ));
    let around = json!({"name": "agent_list", "arguments": {"project": "other"}});
    assert!(matches!(call("call_tool", around).await, Err(CallError::Denied(_))));
    let found = call("search_tools", json!({"query": "list active agents", "limit": 50})).await.unwrap();
    assert!(!found.text.contains("list_active_agents"), "{}", found.text);
}

#[tokio::test]
async fn bad_arguments_are_answered_in_the_shape_of_the_toolset() {
    let registry = registry();
    let theirs = call(&registry, "add_todo", json!({"project_id": "p", "session_name": "a"})).await;
    let said: Value = serde_json::from_str(&theirs.text).unwrap();
    assert!(theirs.is_error && theirs.structured.is_none());
    assert_eq!(said["error"], "Missing required parameter: todo_item");
    assert_eq!(said["details"], json!({"code": "invalid_params", "parameter": "todo_item"}));

    let ours = call(&registry, "todo_add", json!({"project": "p", "session": "a", "text": 5})).await;
    let said = ours.structured.unwrap();
    assert!(ours.is_error);
    assert_eq!(said["error"]["code"], "invalid_arguments");
    assert_eq!(said["error"]["message"], "Invalid value for text: must be a string");
}

#[tokio::test]
async fn what_is_published_is_read_from_a_position_on_or_waited_for() {
    let registry = registry();
    let publish = |topic: &'static str, data: Value| {
        let registry = registry.clone();
        async move { call(&registry, "bus.publish", json!({"topic": topic, "data": data})).await.structured }
    };
    assert_eq!(publish("build.done", json!({"ok": true})).await.unwrap(), json!({"position": 1}));
    publish("other", json!(null)).await;
    let read = call(&registry, "bus.read", json!({"topic": "build.*", "after": 0})).await.structured.unwrap();
    assert_eq!(
        (&read["next"], &read["more"], read["events"].as_array().unwrap().len()),
        (&json!(2), &json!(false), 1)
    );
    let event = &read["events"][0];
    assert_eq!((&event["position"], &event["topic"]), (&json!(1), &json!("build.done")));
    assert_eq!((&event["data"], &event["source"]), (&json!({"ok": true}), &json!("local")));

    let wait = json!({"topic": "build.#", "after": 2, "wait_seconds": 45});
    let waiting = call(&registry, "bus.read", wait);
    let (read, _) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        publish("build.begun", json!(7)).await
    });
    assert_eq!(read.structured.unwrap()["events"][0]["data"], 7);

    let only_new = call(&registry, "bus.read", json!({"topic": "#"})).await.structured.unwrap();
    assert_eq!((&only_new["events"], &only_new["next"]), (&json!([]), &json!(3)));
}

#[tokio::test]
async fn a_key_published_twice_keeps_its_position() {
    let registry = registry();
    let event = json!({"topic": "a", "key": "ada-1"});
    let first = call(&registry, "bus.publish", event.clone()).await.structured;
    assert_eq!(call(&registry, "bus.publish", event).await.structured, first);
}

#[tokio::test]
async fn what_the_bus_refuses_says_what_would_be_right() {
    let registry = registry();
    for (tool, arguments, code, parameter) in [
        ("bus.publish", json!({"topic": "a.*"}), "invalid_arguments", json!("topic")),
        ("bus.publish", json!({"topic": ""}), "invalid_arguments", json!("topic")),
        (
            "bus.publish",
            json!({"topic": "a", "data": "x".repeat(256 << 10)}),
            "invalid_arguments",
            json!("data"),
        ),
        ("bus.read", json!({"topic": "a.#.b"}), "invalid_arguments", json!("topic")),
        ("bus.read", json!({"topic": "a", "limit": 1_001}), "invalid_arguments", json!("limit")),
        ("bus.read", json!({"topic": "a", "wait_seconds": 46}), "invalid_arguments", json!("wait_seconds")),
        ("bus.read", json!({"topic": "a", "after": -1}), "invalid_arguments", json!("after")),
        ("bus.read", json!({"topic": "a", "after": 9}), "position_unknown", Value::Null),
    ] {
        let refused = call(&registry, tool, arguments.clone()).await;
        let said = refused.structured.unwrap();
        assert!(refused.is_error, "{arguments}");
        assert_eq!(
            (&said["error"]["code"], &said["error"]["parameter"]),
            (&json!(code), &parameter),
            "{arguments}"
        );
    }
}

#[tokio::test]
async fn a_key_bound_to_projects_may_use_the_bus_only_if_it_says_so() {
    let registry = registry();
    let publish = |projects: Option<&str>, toolsets: Option<&str>| {
        let set = |name: Option<&str>| name.map(|name| [name.to_owned()].into());
        let grant = Grant { projects: set(projects), toolsets: set(toolsets), admin: false };
        let caller = Caller { name: "bound".into(), grant: Arc::new(grant) };
        let registry = registry.clone();
        async move {
            let arguments = object(json!({"topic": "a"}));
            registry.call(&View::ALL, "bus.publish", arguments, Context::new(caller)).await.is_ok()
        }
    };
    assert!(publish(None, None).await);
    assert!(publish(None, Some("bus")).await);
    assert!(publish(Some("mine"), Some("bus")).await);
    assert!(!publish(Some("mine"), None).await);
    assert!(!publish(None, Some("coordination")).await);
}
