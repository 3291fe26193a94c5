//! `switchboard mcp`: with a server, starting one, losing one, and leaving.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Home, http, runs, signal, until};

const LEAVES_WITHIN: Duration = Duration::from_secs(2);

fn bridge(home: &Home, options: &str) -> Client {
    let words = ["mcp", "--toolset", "coordination"].into_iter().chain(options.split_terminator(' '));
    Client::start(home.command(words))
}

/// A bridge whose client has introduced itself, and an agent that it registered.
fn agent(home: &Home, session: &str) -> Client {
    let mut client = bridge(home, "");
    client.initialize();
    assert_eq!(client.call("agent_register", &of(session, json!({})))["session"], session);
    client
}

fn of(session: &str, mut arguments: Value) -> Value {
    arguments["project"] = "p".into();
    arguments["session"] = session.into();
    arguments
}

fn question() -> Value {
    of("ada", json!({"to": "ben", "text": "?", "wait_seconds": 40}))
}

#[test]
fn it_carries_messages_to_the_server_and_back() {
    let home = Home::new();
    let server = home.serve("");
    let mut client = bridge(&home, "");
    let hello = client.initialize();
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    let tools = client.request("tools/list", &json!({}));
    assert!(tools["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "lock_acquire"));
    client.call("agent_register", &of("ada", json!({})));
    assert!(client.close() < LEAVES_WITHIN);
    let (_, agents) = server.http("POST", "/api/tools/agent_list", None, Some(&json!({"project": "p"})));
    assert!(agents.contains("ada"), "{agents}");
}

#[test]
fn it_speaks_the_protocol_without_sessions_too() {
    let home = Home::new();
    let _server = home.serve("");
    let mut client = bridge(&home, "");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.request("server/discover", &json!({"_meta": meta}));
    assert!(found["result"].is_object(), "{found}");
    let arguments = of("grüß", json!({}));
    let call = json!({"name": "agent_register", "arguments": arguments, "_meta": meta});
    let answer = client.request("tools/call", &call);
    assert_eq!(answer["result"]["structuredContent"]["session"], "grüß", "{answer}");
}

#[test]
fn it_starts_a_server_that_outlives_it() {
    let home = Home::new();
    home.write_config("listen = [\"127.0.0.1:0\"]\n");
    let client = agent(&home, "ada");
    let server = home.described().unwrap();
    assert!(client.close() < LEAVES_WITHIN);
    let address = server["listeners"][0]["address"].as_str().unwrap();
    assert_eq!(http(address, "GET", "/health", None, None).0, 200);
    assert!(home.data().join("server.log").exists());
}

#[test]
fn bridges_that_start_at_once_share_one_server() {
    let home = Home::new();
    home.write_config("listen = [\"127.0.0.1:0\"]\n");
    let mut clients: Vec<_> = (0..6).map(|_| bridge(&home, "")).collect();
    for client in &mut clients {
        assert!(client.initialize()["result"].is_object());
    }
    clients[0].call("agent_register", &of("ada", json!({})));
    let agents = clients[5].call("agent_list", &json!({"project": "p"}));
    assert!(agents.to_string().contains("ada"), "{agents}");
    let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
    assert_eq!(log.matches("listening").count(), 1, "{log}");
}

#[test]
fn a_server_that_cannot_start_is_explained() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    home.write_config(&format!("listen = [\"{}\"]\n", taken.local_addr().unwrap()));
    home.run("mcp").fails(1, "is in use by pid");
}

#[test]
fn it_leaves_when_its_input_ends_also_with_a_call_under_way() {
    let home = Home::new();
    let _server = home.serve("");
    let mut ada = agent(&home, "ada");
    let _ben = agent(&home, "ben");
    ada.begin_call("question_ask", &question());
    until("the question is asked", || {
        home.run("call message_read project=p session=ben keep=true")
            .ok()
            .stdout
            .contains("question")
            .then_some(())
    });
    assert!(ada.close() < LEAVES_WITHIN);
}

#[test]
fn it_leaves_when_its_parent_is_killed() {
    let home = Home::new();
    let _server = home.serve("");
    // The parent holds the other end of the bridge's standard input, and nothing else does.
    let script =
        r#"mkfifo "$0/pipe"; "$1" mcp <"$0/pipe" >"$0/out" & echo $! >"$0/pid"; exec sleep 1000 >"$0/pipe""#;
    let mut parent = home.command([]);
    let program = parent.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(home.path()).arg(program).stdin(Stdio::null()).stderr(Stdio::null());
    shell.env_clear().envs(parent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    parent = shell;
    let mut parent = parent.spawn().unwrap();
    let pid: u32 = until("the bridge runs", || {
        let pid = std::fs::read_to_string(home.path().join("pid")).ok()?.trim().parse().ok()?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        program.ends_with("switchboard").then_some(pid)
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    let killed = std::time::Instant::now();
    until("the bridge is gone", || (!runs(pid)).then_some(()));
    assert!(killed.elapsed() < LEAVES_WITHIN);
}

#[test]
fn calls_do_not_wait_for_each_other() {
    let home = Home::new();
    let _server = home.serve("");
    let mut ada = agent(&home, "ada");
    ada.call("agent_register", &of("ben", json!({})));
    let asked = ada.begin_call("question_ask", &question());
    let inbox = until("the question is asked", || {
        let inbox = ada.call("message_read", &of("ben", json!({"keep": true})));
        inbox["messages"][0]["id"].as_str().map(str::to_owned)
    });
    assert!(!ada.is_answered(asked));
    ada.call("question_answer", &of("ben", json!({"id": inbox, "text": "!"})));
    assert_eq!(ada.end(asked)["result"]["structuredContent"]["answer"], "!");
}

#[test]
fn a_call_that_is_withdrawn_is_not_answered() {
    let home = Home::new();
    let _server = home.serve("");
    let mut ada = agent(&home, "ada");
    ada.call("agent_register", &of("ben", json!({})));
    let asked = ada.begin_call("question_ask", &question());
    until("the question is asked", || {
        ada.call("message_read", &of("ben", json!({"keep": true})))["messages"][0]["id"].as_str().map(drop)
    });
    ada.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asked}}));
    ada.call("agent_heartbeat", &of("ada", json!({})));
    assert!(!ada.is_answered(asked));
}

#[test]
fn progress_reaches_the_client() {
    let home = Home::new();
    let _server = home.serve("");
    let mut ada = agent(&home, "ada");
    ada.call("agent_register", &of("ben", json!({})));
    let params = json!({"name": "question_ask", "arguments": question(), "_meta": {"progressToken": "t"}});
    ada.begin("tools/call", &params);
    let progress = ada.await_message(|message| message["method"] == "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "t");
}

#[test]
fn a_server_that_was_restarted_is_found_again() {
    let home = Home::new();
    let server = home.serve("");
    let mut ada = agent(&home, "ada");
    server.kill();
    let listing = ada.begin_call("agent_list", &json!({"project": "p"}));
    let _server = home.serve("");
    let agents = ada.end(listing);
    assert!(agents["result"]["structuredContent"].to_string().contains("ada"), "{agents}");
    // The session is another one now, which nobody notices.
    assert!(ada.call("agent_list", &json!({"project": "p"})).to_string().contains("ada"));
}

#[test]
fn a_call_that_lost_its_server_is_repeated_and_takes_effect_once() {
    let home = Home::new();
    let server = home.serve("");
    let mut ada = agent(&home, "ada");
    ada.call("agent_register", &of("ben", json!({})));
    let asked = ada.begin_call("question_ask", &question());
    until("the question is asked", || {
        ada.call("message_read", &of("ben", json!({"keep": true})))["messages"][0]["id"].as_str().map(drop)
    });
    server.kill();
    let _server = home.serve("");
    let id = until("the question is there again, once", || {
        let inbox = ada.call("message_read", &of("ben", json!({"keep": true})));
        let messages = inbox["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{inbox}");
        messages[0]["id"].as_str().map(str::to_owned)
    });
    ada.call("question_answer", &of("ben", json!({"id": id, "text": "!"})));
    let answer = ada.end(asked);
    assert_eq!(answer["result"]["structuredContent"]["answer"], "!", "{answer}");
}

#[test]
fn a_server_that_is_gone_for_good_is_an_error_for_whoever_asks() {
    let home = Home::new();
    let server = home.serve("");
    let elsewhere = Home::new();
    let url = format!("http://{}", server.address());
    let mut client = Client::start(elsewhere.command(["mcp", "--url", &url]));
    client.initialize();
    server.kill();
    let answer = client.request("tools/list", &json!({}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the server is gone") && message.contains(&url), "{message}");
}

#[test]
fn a_line_that_is_no_message_is_answered_as_such() {
    let home = Home::new();
    let _server = home.serve("");
    let mut client = bridge(&home, "");
    client.send(&json!("no message"));
    let answer = client.await_message(|message| message["id"].is_null());
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    assert!(client.initialize()["result"].is_object());
}

#[test]
fn standalone_serves_the_data_directory_itself() {
    let home = Home::new();
    let mut client = bridge(&home, "--standalone");
    client.initialize();
    client.call("agent_register", &of("ada", json!({})));
    assert!(home.described().is_none());
    assert!(client.close() < LEAVES_WITHIN);
    let _server = home.serve("");
    assert!(home.run("call agent_list project=p").ok().stdout.contains("ada"));
}

#[test]
fn it_ends_with_a_signal() {
    let home = Home::new();
    let _server = home.serve("");
    let mut client = bridge(&home, "");
    client.initialize();
    signal(client.child.id(), rustix::process::Signal::TERM);
    until("it is gone", || client.child.try_wait().unwrap());
}
