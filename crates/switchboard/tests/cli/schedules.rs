//! Schedules by the command line, against real processes.

use serde_json::{Value, json};

use crate::support::{Home, Said, Server, said, until};

/// Runs the program with these words, which may hold spaces.
fn run(home: &Home, words: &[&str]) -> Said {
    said(home.command(words.iter().copied()))
}

fn create(home: &Home, words: &[&str]) -> Value {
    let words: Vec<_> = ["schedule", "create", "--json"].iter().chain(words).copied().collect();
    run(home, &words).ok().json()["schedule"].clone()
}

/// Calls a tool of a catalogue over MCP, as a bare client does.
fn call(server: &Server, catalogue: &str, tool: &str, arguments: &Value) -> String {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": tool, "arguments": arguments}});
    let (status, body) = server.http("POST", &format!("/mcp/{catalogue}"), None, Some(&call));
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

#[test]
fn a_schedule_is_made_listed_steered_and_ended() {
    let home = Home::new();
    let _server = home.serve("--schedule-time-zone Europe/Berlin");
    let words =
        ["topic:build.nightly", "--cron", "30 2 * * *", "--message", r#"{"full":true}"#, "--name", "nightly"];
    let made = create(&home, &words);
    let id = made["id"].to_string();
    assert_eq!(made["time_zone"], "Europe/Berlin");
    assert_eq!(made["message"], json!({"full": true}));

    let list = run(&home, &["schedule", "list"]).ok().stdout;
    let row = list.lines().nth(1).unwrap();
    for word in [&*id, "active", "30 2 * * * (Europe/Berlin)", "topic:build.nightly", "nightly"] {
        assert!(row.contains(word), "'{word}' is not in: {row}");
    }
    run(&home, &["schedule", "pause", &id]).ok();
    assert!(run(&home, &["schedule", "list"]).ok().stdout.contains("paused"));
    run(&home, &["schedule", "resume", &id]).ok();
    run(&home, &["schedule", "update", &id, "--every", "2 days"]).ok();
    let seen = run(&home, &["schedule", "get", &id, "--json"]).ok().json();
    assert_eq!((&seen["schedule"]["every"], &seen["schedule"]["name"]), (&json!("2d"), &json!("nightly")));
    run(&home, &["schedule", "update", &id]).fails(2, "nothing is to be changed");

    run(&home, &["schedule", "cancel", &id]).ok();
    run(&home, &["schedule", "update", &id, "--every", "1h"]).fails(1, "cancelled");
    assert_eq!(run(&home, &["schedule", "list", "--json"]).ok().json(), json!([]));
    assert_eq!(run(&home, &["schedule", "list", "--all", "--json"]).ok().json()[0]["status"], "cancelled");
    run(&home, &["schedule", "delete", &id]).ok();
    run(&home, &["schedule", "get", &id]).fails(1, "no schedule");
}

#[test]
fn a_preview_shows_where_daylight_saving_moves_a_time() {
    let home = Home::new();
    let _server = home.serve("");
    let timing =
        ["--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--start", "2031-03-29 00:00", "-n", "2"];
    let words: Vec<_> = ["schedule", "preview"].into_iter().chain(timing).collect();
    let shown = run(&home, &words).ok().stdout;
    assert!(shown.contains("2031-03-29T01:30:00Z") && shown.contains("2031-03-30T01:00:00Z"), "{shown}");
    assert!(shown.contains("the clock skips 02:30"), "{shown}");
    let dry = ["schedule", "create", "topic:x", "--every", "5m", "--dry-run"];
    assert_eq!(run(&home, &dry).ok().stdout.lines().count(), 10);
    assert_eq!(run(&home, &["schedule", "list", "--json"]).ok().json(), json!([]));
}

#[test]
fn what_is_run_by_hand_says_what_came_of_it() {
    let home = Home::new();
    let _server = home.serve("");
    let id = create(&home, &["topic:x", "--every", "1h"])["id"].to_string();
    assert!(run(&home, &["schedule", "run-now", &id]).ok().stdout.contains("delivered"));
    let bad = create(
        &home,
        &[
            "tool:todo_list",
            "--message",
            r#"{"project":"p","session":"nobody"}"#,
            "--every",
            "1h",
            "--retry-attempts",
            "1",
        ],
    );
    let bad = bad["id"].to_string();
    run(&home, &["schedule", "run-now", &bad]).fails(1, "is dead");
    let dead = run(&home, &["schedule", "occurrences", "--fate", "dead", "--json"]).ok().json();
    assert_eq!((dead.as_array().unwrap().len(), dead[0]["schedule"].to_string()), (1, bad));
}

#[test]
fn a_mistake_is_answered_with_what_would_be_right() {
    let home = Home::new();
    run(&home, &["schedule", "list"]).fails(4, "no server runs");
    let _server = home.serve("");
    run(&home, &["schedule", "create", "build.done", "--every", "5m"]).fails(2, "topic:NAME");
    run(&home, &["schedule", "create", "topic:x"]).fails(1, "exactly one of at");
    run(&home, &["schedule", "create", "topic:x", "--every", "5m", "--at", "in 5m"])
        .fails(2, "cannot be used with");
    run(&home, &["schedule", "create", "topic:x", "--cron", "61 * * * *"]).fails(1, "no minute");
    run(&home, &["schedule", "create", "webhook:http://127.0.0.1:9/", "--every", "5m"]).fails(1, "webhook");
    run(&home, &["schedule", "create", "topic:x", "--every", "5m", "--missed", "all"]).fails(2, "all:10:1h");
}

#[test]
fn every_catalogue_shows_what_any_of_them_made() {
    let home = Home::new();
    let server = home.serve("");
    let task = json!({"name": "Morning", "scheduleType": "interval", "intervalMs": 86_400_000, "eventTopic": "morning"});
    let task: Value = serde_json::from_str(&call(&server, "agtos", "schedule.create", &task)).unwrap();
    let prompt = json!({"agent_id": "agent-1", "prompt": "Report", "every": "5h", "skip_validation": true});
    let prompt: Value =
        serde_json::from_str(&call(&server, "promptyoself", "promptyoself_schedule_every", &prompt)).unwrap();
    let ours = create(&home, &["inbox:shop/ada", "--cron", "0 9 * * *", "--message", "Rebase"]);

    let ids = [
        task["taskId"].as_str().unwrap().strip_prefix("task-").unwrap().to_owned(),
        prompt["id"].to_string(),
        ours["id"].to_string(),
    ];
    let listed = run(&home, &["schedule", "list", "--json"]).ok().json();
    let tasks: Value = serde_json::from_str(&call(&server, "agtos", "schedule.list", &json!({}))).unwrap();
    let prompts: Value =
        serde_json::from_str(&call(&server, "promptyoself", "promptyoself_list", &json!({}))).unwrap();
    for id in &ids {
        let has = |list: &Value, id: &Value| list.as_array().unwrap().iter().any(|one| one["id"] == *id);
        let number: Value = id.parse::<u64>().unwrap().into();
        assert!(has(&listed, &number), "{id} is not in {listed}");
        assert!(has(&tasks, &json!(format!("task-{id}"))), "{id} is not in {tasks}");
        assert!(has(&prompts["schedules"], &number), "{id} is not in {prompts}");
    }
    // One catalogue ends what another made.
    let cancelled = call(&server, "agtos", "schedule.cancel", &json!({"taskId": format!("task-{}", ids[1])}));
    assert_eq!(cancelled, format!("Task task-{} cancelled successfully", ids[1]));
    let seen = run(&home, &["schedule", "get", &ids[1], "--json"]).ok().json();
    assert_eq!(seen["schedule"]["status"], "cancelled");
}

#[test]
fn schedules_outlive_a_kill() {
    let home = Home::new();
    let server = home.serve("");
    let id = create(&home, &["topic:x", "--at", "in 1s"])["id"].to_string();
    server.kill();
    let _server = home.serve("");
    let done = until("it is delivered", || {
        let seen = run(&home, &["schedule", "get", &id, "--json"]).ok().json();
        (seen["schedule"]["status"] == "completed").then_some(seen)
    });
    assert_eq!(done["occurrences"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!(done["occurrences"][0]["fate"], "delivered");
}

#[test]
fn the_key_that_signs_webhooks_is_made_once_and_a_broken_one_is_named() {
    let home = Home::new();
    let path = home.data().join("webhook-secret");
    home.serve("").kill();
    let made = std::fs::read_to_string(&path).unwrap();
    assert!(made.starts_with("whsec_"), "{made}");
    home.serve("").kill();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), made);
    std::fs::write(&path, "whsec_\n").unwrap();
    home.run("serve --listen 127.0.0.1:0").fails(1, "holds no key for signing webhooks");
}
