//! REST: what programs read, call and follow.

use std::num::NonZeroUsize;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_access::Grant;
use switchboard_coordination::{
    Acquire, AddTodo, ChangeType, Name, Priority, Register, RegisterInterface, Scope, Text,
};
use switchboard_journal::{Journal as _, Payload, Seq, Snapshot, StreamId};

use crate::support::{Events, OWNER, Server, json_of, soon};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn text(text: &str) -> Text {
    Text::new(text).unwrap()
}

/// Ada is here, has something to do, and holds a file.
async fn furnish(server: &Server, project: &str) {
    let (project, session) = (name(project), name("ada"));
    let register = Register {
        session: session.clone(),
        task_id: name("7"),
        branch: text("main"),
        description: text("to see"),
    };
    server.coordination.send(&project, register, None).await.unwrap();
    let todo = AddTodo { session: session.clone(), text: text("look"), priority: Priority::Low };
    server.coordination.send(&project, todo, None).await.unwrap();
    let lock = Acquire {
        session: session.clone(),
        scope: Scope::parse("src/main.rs").unwrap(),
        path: name("src/main.rs"),
        change_type: ChangeType::Modify,
        description: text("mend"),
        ttl: None,
        wait: false,
    };
    server.coordination.send(&project, lock, None).await.unwrap();
    let interface =
        RegisterInterface { session, name: name("User"), definition: text("{}"), file_path: None };
    server.coordination.send(&project, interface, None).await.unwrap();
}

async fn get(server: &Server, path: &str) -> (u16, Value) {
    json_of(server.get(path).await).await
}

async fn bearer(server: &Server, grant: Grant) -> String {
    let name = format!("key-{}", server.access.list().await.unwrap().len());
    server.access.create(&name, grant, None).await.unwrap().1
}

fn bound_to(project: &str) -> Grant {
    Grant { projects: Some([project.to_owned()].into()), ..Grant::default() }
}

#[tokio::test]
async fn every_route_is_described_and_every_described_route_exists() {
    let server = Server::start().await;
    let (status, document) = get(&server, "/api/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    let mut described = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{path}");
            described.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    described.sort();
    let expected = [
        "DELETE /api/keys/{key}",
        "DELETE /api/scheduler/tasks/{id}",
        "DELETE /api/schedules/{id}",
        "GET /api/events",
        "GET /api/health",
        "GET /api/keys",
        "GET /api/occurrences",
        "GET /api/openapi.json",
        "GET /api/projects",
        "GET /api/projects/{project}",
        "GET /api/projects/{project}/agents",
        "GET /api/projects/{project}/changes",
        "GET /api/projects/{project}/interfaces",
        "GET /api/projects/{project}/locks",
        "GET /api/projects/{project}/messages",
        "GET /api/projects/{project}/todos",
        "GET /api/scheduler/tasks",
        "GET /api/schedules",
        "GET /api/schedules/{id}",
        "GET /api/tools",
        "PATCH /api/schedules/{id}",
        "POST /api/coordination/check",
        "POST /api/keys",
        "POST /api/scheduler/tasks",
        "POST /api/schedules",
        "POST /api/schedules/import",
        "POST /api/schedules/preview",
        "POST /api/schedules/{id}/cancel",
        "POST /api/schedules/{id}/pause",
        "POST /api/schedules/{id}/resume",
        "POST /api/schedules/{id}/run",
        "POST /api/tools/{name}",
    ];
    assert_eq!(described, expected);
    for route in expected {
        let (method, path) = route.split_once(' ').unwrap();
        let method: Method = method.parse().unwrap();
        let path = path.replace(['{', '}'], "");
        let response = server.request(method, &path).send().await.unwrap();
        let (status, answer) = json_of(response).await;
        assert_ne!(status, 405, "{route}");
        assert_ne!(answer["error"]["message"], format!("there is nothing at {path}"), "{route}");
    }
    // Every schema that is referred to is there.
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
    }
    server.stopped().await;
}

#[tokio::test]
async fn what_is_in_a_project_can_be_read() {
    let server = Server::start().await;
    furnish(&server, "shop").await;
    let (_, shop) = get(&server, "/api/projects/shop").await;
    assert_eq!(
        shop,
        json!({"id": "shop", "entries": 4, "agents": 1, "todos": 1, "locks": 1, "waiting": 0, "interfaces": 1})
    );
    let (_, agents) = get(&server, "/api/projects/shop/agents").await;
    assert_eq!(agents["agents"][0]["session"], "ada");
    assert_eq!(agents["agents"][0]["status"], "active");
    let (_, todos) = get(&server, "/api/projects/shop/todos").await;
    assert_eq!(todos["agents"][0]["todos"][0]["priority"], "low");
    let (_, locks) = get(&server, "/api/projects/shop/locks").await;
    assert_eq!((&locks["held"][0]["path"], &locks["held"][0]["token"]), (&json!("src/main.rs"), &json!(1)));
    let (_, changes) = get(&server, "/api/projects/shop/changes?limit=1").await;
    assert_eq!(changes["changes"][0]["change_type"], "modify");
    let (_, interfaces) = get(&server, "/api/projects/shop/interfaces").await;
    assert_eq!(interfaces["interfaces"][0]["name"], "User");
    let (_, messages) = get(&server, "/api/projects/shop/messages").await;
    assert_eq!(messages, json!({"messages": []}));

    let (status, answer) = get(&server, "/api/projects/nowhere/agents").await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(server.coordination.exchange().live_streams(), 1, "looking does not call into being");
    let (status, answer) = get(&server, "/api/projects/shop/changes?limit=0").await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_query")));
    server.stopped().await;
}

#[tokio::test]
async fn projects_are_listed_in_pages_and_only_those_the_caller_may_use() {
    let server = Server::start().await;
    for project in ["a", "b/ü", "c"] {
        furnish(&server, project).await;
    }
    let (_, page) = get(&server, "/api/projects?limit=2").await;
    assert_eq!(page["projects"], json!([{"id": "a", "entries": 4}, {"id": "b/ü", "entries": 4}]));
    let (_, page) = get(&server, "/api/projects?limit=2&after=b%2F%C3%BC").await;
    assert_eq!(page, json!({"projects": [{"id": "c", "entries": 4}], "next": null}));
    let (_, page) = get(&server, "/api/projects?limit=3").await;
    assert_eq!((page["projects"].as_array().unwrap().len(), &page["next"]), (3, &Value::Null));
    let (status, _) = get(&server, "/api/projects/b%2F%C3%BC/agents").await;
    assert_eq!(status, 200);

    let key = bearer(&server, bound_to("c")).await;
    let with_key = async |path: &str| {
        json_of(server.request(Method::GET, path).bearer_auth(&key).send().await.unwrap()).await
    };
    assert_eq!(with_key("/api/projects").await.1["projects"], json!([{"id": "c", "entries": 4}]));
    assert_eq!(with_key("/api/projects/a").await.0, 403);
    assert_eq!(with_key("/api/projects/c").await.0, 200);
    server.stopped().await;
}

#[tokio::test]
async fn a_hook_learns_whether_a_file_may_be_written() {
    let server = Server::start().await;
    furnish(&server, "shop").await;
    let check = async |body: Value| {
        json_of(server.post("/api/coordination/check", &body).send().await.unwrap()).await
    };
    let (status, answer) = check(json!({"project": "shop", "session": "bob", "path": "src/main.rs"})).await;
    assert_eq!(
        (status, &answer["allowed"], &answer["reason"]),
        (200, &json!(false), &json!("locked_by_other"))
    );
    assert_eq!(answer["lock"]["session"], "ada");
    let (_, answer) =
        check(json!({"project": "shop", "session": "ada", "path": "./src/main.rs", "token": 1})).await;
    assert_eq!((&answer["allowed"], &answer["reason"]), (&json!(true), &json!("yours")));
    let (_, answer) = check(json!({"project": "shop", "path": "other", "must_hold": true})).await;
    assert_eq!((&answer["allowed"], &answer["reason"]), (&json!(false), &json!("free")));
    assert_eq!(check(json!({"project": "shop"})).await.0, 400);
    assert_eq!(check(json!({"project": "shop", "path": ""})).await.0, 400);
    assert_eq!(check(json!({"project": "", "path": "a"})).await.0, 400);
    let key = bearer(&server, bound_to("elsewhere")).await;
    let body = json!({"project": "shop", "path": "a"});
    let denied = server.post("/api/coordination/check", &body).bearer_auth(key).send().await.unwrap();
    assert_eq!(denied.status(), 403);
    server.stopped().await;
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let server = Server::start().await;
    let (_, tools) = get(&server, "/api/tools?toolset=a2amcp").await;
    assert_eq!(tools["toolsets"], json!([{"name": "a2amcp", "summary": "For tests."}]));
    assert_eq!(tools["tools"][0]["name"], "list_active_agents");
    assert_eq!(tools["tools"][0]["inputSchema"]["type"], "object");
    assert_eq!(get(&server, "/api/tools").await.1["tools"].as_array().unwrap().len(), 7);
    assert_eq!(get(&server, "/api/tools?toolset=nope").await.0, 404);

    let call = async |tool: &str, body: &str| {
        let request = server.request(Method::POST, &format!("/api/tools/{tool}")).body(body.to_owned());
        json_of(request.header("idempotency-key", "once").send().await.unwrap()).await
    };
    let (status, answer) = call("echo", r#"{"a":1}"#).await;
    assert_eq!(status, 200);
    assert_eq!(answer, json!({"text": r#"{"a":1}"#, "structured": {"a": 1}, "is_error": false}));
    assert_eq!(call("fail", "").await, (200, json!({"text": "no", "structured": null, "is_error": true})));
    assert_eq!(call("whoami", "{}").await.1["structured"]["command"], "once");
    assert_eq!(call("nope", "{}").await.0, 404);
    assert_eq!(call("panic", "{}").await.0, 500);
    let (status, answer) = call("echo", "[]").await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_json")));
    let (status, answer) = call("echo", &format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65))).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("json_too_deep")));

    let only_play = Grant { toolsets: Some(["play".to_owned()].into()), ..Grant::default() };
    let key = bearer(&server, only_play).await;
    let request = server.post("/api/tools/list_active_agents", &json!({})).bearer_auth(&key);
    assert_eq!(request.send().await.unwrap().status(), 403);
    server.stopped().await;
}

#[tokio::test]
async fn a_client_that_leaves_withdraws_its_call() {
    let server = Server::start().await;
    let waiting = tokio::spawn(server.post("/api/tools/wait", &json!({})).send());
    soon(&server.signals.began).await;
    waiting.abort();
    soon(&server.signals.cancelled).await;
    server.stopped().await;
}

#[tokio::test]
async fn keys_are_for_administrators() {
    let server = Server::start().await;
    assert_eq!(get(&server, "/api/keys").await.0, 403, "being on this machine is not enough");
    let as_owner = async |method: Method, path: &str, body: Value| {
        let request = server.request(method, path).bearer_auth(OWNER).json(&body);
        json_of(request.send().await.unwrap()).await
    };
    let wish =
        json!({"name": "laptop", "grant": {"toolsets": ["play"]}, "expires_at": "2999-01-01T00:00:00Z"});
    let (status, made) = as_owner(Method::POST, "/api/keys", wish.clone()).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(made["key"]["grant"], json!({"toolsets": ["play"], "admin": false}));
    let key = made["bearer"].as_str().unwrap();
    let whoami = async || {
        let request = server.post("/api/tools/whoami", &json!({})).bearer_auth(key);
        json_of(request.send().await.unwrap()).await
    };
    assert_eq!(whoami().await.1["structured"]["caller"], "laptop");
    assert_eq!(as_owner(Method::POST, "/api/keys", wish).await.0, 409);
    let nowhere = json!({"name": "x", "grant": {"toolsets": ["nope"]}});
    let (status, answer) = as_owner(Method::POST, "/api/keys", nowhere).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("unknown_toolset")));
    let (_, keys) = as_owner(Method::GET, "/api/keys", json!({})).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    assert!(!keys.to_string().contains(key));
    let (status, ended) = as_owner(Method::DELETE, "/api/keys/laptop", json!({})).await;
    assert_eq!(status, 200);
    assert!(ended["key"]["revoked_at"].is_string());
    assert_eq!(whoami().await.0, 401);
    assert_eq!(as_owner(Method::DELETE, "/api/keys/nobody", json!({})).await.0, 404);
    server.stopped().await;
}

async fn follow(server: &Server, query: &str, last_event_id: Option<&str>) -> Events {
    let mut request = server.request(Method::GET, &format!("/api/events?{query}"));
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    Events::of(request.send().await.unwrap())
}

#[tokio::test]
async fn a_stream_is_followed_and_taken_up_again() {
    let server = Server::start().await;
    furnish(&server, "shop").await;
    let mut all = follow(&server, "stream=project/shop&after=0", None).await;
    let mut new = follow(&server, "stream=project%2Fshop", None).await;
    for seq in 1..=4 {
        let event = all.next().await.unwrap();
        assert_eq!((&*event.kind, &*event.id), ("entry", &*seq.to_string()));
        let entry = event.json();
        assert_eq!((&entry["stream"], &entry["seq"]), (&json!("project/shop"), &json!(seq)));
        assert!(entry["at"].is_string() && entry["events"][0]["type"].is_string(), "{entry}");
    }
    let todo = AddTodo { session: name("ada"), text: text("more"), priority: Priority::High };
    server.coordination.send(&name("shop"), todo, None).await.unwrap();
    let (last, first) = (all.next().await.unwrap(), new.next().await.unwrap());
    assert_eq!(last.id, "5");
    assert_eq!(last, first);
    let mut resumed = follow(&server, "stream=project/shop&after=0", Some("4")).await;
    assert_eq!(resumed.next().await.unwrap(), last);
    server.stop.cancel();
    assert_eq!(resumed.next().await, None, "stopping ends what streams");
    server.stopped().await;
}

#[tokio::test]
async fn several_streams_are_followed_as_one() {
    let server = Server::start().await;
    furnish(&server, "a").await;
    furnish(&server, "b").await;
    let mut both = follow(&server, "stream=project/a&stream=project/b&after=3,2", None).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let event = both.next().await.unwrap();
        let entry = event.json();
        seen.push(format!("{} {}", entry["stream"].as_str().unwrap(), entry["seq"]));
        if seen.len() == 3 {
            assert_eq!(event.id, "4,4");
        }
    }
    seen.sort();
    assert_eq!(seen, ["project/a 4", "project/b 3", "project/b 4"]);
    server.stopped().await;
}

#[tokio::test]
async fn a_position_that_is_gone_is_told_and_passed_over() {
    let server = Server::start().await;
    let stream = StreamId::new("notes").unwrap();
    for seq in 0..5 {
        let payload = Payload::new(format!(r#"{{"events":[{{"type":"n{seq}"}}]}}"#)).unwrap();
        server.journal.append(&stream, Seq::new(seq), payload).await.unwrap();
    }
    server.journal.save_snapshot(&stream, Snapshot { seq: Seq::new(3), state: "{}".into() }).await.unwrap();
    server.journal.trim(&stream, Seq::new(3)).await.unwrap();
    server.journal.redact(&stream, &[Seq::new(5)]).await.unwrap();
    let mut events = follow(&server, "stream=notes&after=1", None).await;
    let gap = events.next().await.unwrap();
    assert_eq!((gap.kind.as_str(), gap.id.as_str()), ("trimmed", "3"));
    assert_eq!((&gap.json()["error"]["code"], &gap.json()["oldest"]), (&json!("trimmed"), &json!(4)));
    assert_eq!(events.next().await.unwrap().json()["events"], json!([{"type": "n3"}]));
    assert_eq!(events.next().await.unwrap().json()["redacted"], true);
    let kept = server.journal.read(&stream, Seq::new(3), NonZeroUsize::MAX).await.unwrap();
    assert_eq!(kept.len(), 2);
    server.stopped().await;
}

#[tokio::test]
async fn streams_are_for_those_who_may_use_what_is_in_them() {
    let server = Server::start().await;
    furnish(&server, "shop").await;
    let bound = bearer(&server, bound_to("shop")).await;
    let free = bearer(&server, Grant::default()).await;
    let admin = bearer(&server, Grant { admin: true, ..Grant::default() }).await;
    for (who, key, stream, expected) in [
        ("nobody", None, "project/shop", 200),
        ("nobody", None, "notes", 200),
        ("nobody", None, "access", 403),
        ("bound", Some(&bound), "project/shop", 200),
        ("bound", Some(&bound), "project/other", 403),
        ("bound", Some(&bound), "notes", 403),
        ("free", Some(&free), "notes", 200),
        ("free", Some(&free), "access", 403),
        ("admin", Some(&admin), "access", 200),
    ] {
        let mut request = server.request(Method::GET, &format!("/api/events?stream={stream}"));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        assert_eq!(request.send().await.unwrap().status(), expected, "{who} {stream}");
    }
    for bad in ["", "?stream=", "?after=1", "?stream=a&after=x"] {
        assert_eq!(get(&server, &format!("/api/events{bad}")).await.0, 400, "{bad}");
    }
    server.stopped().await;
}
