//! The commands that talk to a server, and those that need none.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Home, said, until};

#[test]
fn call_takes_json_pairs_and_standard_input() {
    let home = Home::new();
    let _server = home.serve("");
    let registered = home.run("call agent_register project=p session=ada").ok().json();
    assert_eq!(registered["session"], "ada");
    said(home.command(["call", "agent_register", r#"{"project":"p","session":"ben"}"#])).ok();
    let mut command = home.command(["call", "agent_list", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"project":"p"}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ada") && text.contains("ben"), "{text}");
}

#[test]
fn call_says_what_is_wrong() {
    let home = Home::new();
    home.run("call agent_list project=p").fails(4, "switchboard serve");
    let _server = home.serve("");
    home.run("call no_such_tool").fails(1, "no_such_tool");
    home.run("call agent_list nonsense").fails(2, "neither JSON nor NAME=VALUE");
    // The answer is the tool's; that it is an error is the exit code's to say.
    let said =
        home.run("call lock_acquire project=p session=nobody path=x").fails(1, "answered with an error");
    assert_eq!(said.json()["error"]["code"], "not_registered");
}

#[test]
fn tools_tells_what_each_toolset_costs() {
    let home = Home::new();
    let list = home.run("tools --toolset coordination --json").ok().json();
    assert_eq!(list[0]["toolset"], "coordination");
    assert!(list[0]["estimated_tokens"].as_u64().unwrap() > 500);
    assert!(list[0]["tools"][0]["inputSchema"].is_object());
    assert!(home.run("tools").ok().stdout.contains("estimate"));
    home.run("tools --toolset nonsense").fails(2, "there are: all,");
}

#[test]
fn events_follows_a_stream() {
    let home = Home::new();
    let _server = home.serve("");
    home.run("call agent_register project=p session=ada").ok();
    let mut follower =
        crate::support::Client::start(home.command(["events", "project/p", "--after", "0", "--json"]));
    let entry = follower.await_message(|entry| entry["seq"] == 1);
    assert_eq!(entry["events"][0]["type"], "agent_registered");
    home.run("call agent_register project=p session=ben").ok();
    let entry = follower.await_message(|entry| entry["seq"] == 2);
    assert_eq!(entry["events"][0]["session"], "ben");
}

#[test]
fn the_demonstration_tells_its_story_and_leaves_nothing_behind() {
    let home = Home::new();
    let said = home.run("demo --json").ok();
    let steps: Vec<serde_json::Value> =
        said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |tool: &str, agent: &str| {
        let of = |step: &&serde_json::Value| step["tool"] == tool && step["agent"] == agent;
        steps.iter().filter(of).map(|step| step["answer"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(answer("lock_acquire", "ada")[0]["token"], 1);
    let ben = answer("lock_acquire", "ben");
    assert_eq!((&ben[0]["error"]["code"], &ben[1]["token"]), (&json!("locked"), &json!(2)));
    assert_eq!(answer("question_ask", "ben")[0]["status"], "answered");
    assert_eq!(answer("lock_check", "ada")[0]["allowed"], false);
    assert!(!home.data().exists(), "it uses a directory of its own");
}

#[test]
fn doctor_finds_what_is_wrong_and_says_what_to_do() {
    let home = Home::new();
    let _server = home.serve("");
    home.run("doctor").ok();
    let mut open = std::fs::metadata(home.data()).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o755);
    std::fs::set_permissions(home.data(), open).unwrap();
    let said = home.run("doctor").fails(1, "one thing is wrong");
    assert!(said.stdout.contains("chmod 700"), "{}", said.stdout);
    home.write_config("nonsense = 1\n");
    let said = home.run("doctor --json").fails(1, "one thing is wrong");
    assert_eq!(said.json()[0]["what"], "options");
}

#[test]
fn doctor_looks_at_a_journal_that_nobody_serves() {
    let home = Home::new();
    home.serve("").terminate();
    let said = home.run("doctor --json");
    let find = |what: &str| said.json().as_array().unwrap().iter().find(|one| one["what"] == what).cloned();
    assert_eq!(find("journal").unwrap()["verdict"], "fine");
    std::fs::write(home.data().join("journal.db"), "no database").unwrap();
    let said = home.run("doctor --json").fails(1, "wrong");
    assert!(said.stdout.contains("is not a journal"), "{}", said.stdout);
}

#[test]
fn completions_name_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&format!("completions {shell}")).ok().stdout;
        assert!(script.contains("standalone"), "{shell}");
    }
}

#[test]
fn whoever_stops_reading_is_no_error() {
    let home = Home::new();
    let mut child = home.command(["completions", "zsh"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(until("it ends", || child.try_wait().unwrap()).code(), Some(0));
}
