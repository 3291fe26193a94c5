//! The life of a server: where it says it is, who else may run, how it ends.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Home, http, signal, until};

#[test]
fn it_says_where_it_is_from_the_first_connection_to_the_end() {
    let home = Home::new();
    let server = home.serve("");
    let file = home.data().join("server.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.data().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(server.described["listeners"][0]["toolset"], "all");
    assert_eq!(server.token().len(), 64);
    assert_eq!(server.http("GET", "/api/health", Some(&server.token()), None).0, 200);
    let status = home.run("status --json").ok().json();
    assert_eq!((&status["pid"], &status["health"]["status"]), (&json!(server.pid()), &json!("ok")));
    until("it says what to paste", || server.log().contains("claude_desktop_config.json").then_some(()));
    let paste =
        format!("claude mcp add --transport http switchboard http://{}/mcp/coordination", server.address());
    assert!(server.log().contains(&paste), "{}", server.log());
    assert_eq!(server.terminate(), 0);
    assert!(!file.exists());
    home.run("status").fails(4, "no server runs on the data directory");
}

#[test]
fn what_a_killed_server_left_behind_misleads_nobody() {
    let home = Home::new();
    let server = home.serve("");
    home.run("call register_agent project_id=p session_name=ada task_id=t branch=b description=d").ok();
    server.kill();
    assert!(home.described().is_some());
    home.run("status").fails(4, "no server runs on the data directory");
    let _server = home.serve("");
    let agents = home.run("call list_active_agents project_id=p").ok().json();
    assert!(agents.get("ada").is_some(), "{agents}");
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let home = Home::new();
    let server = home.serve("");
    let holder = format!("pid {}", server.pid());
    home.run("serve --listen 127.0.0.1:0").fails(5, &server.pid().to_string());
    home.run("mcp --standalone").fails(5, &server.pid().to_string());
    // Also where nothing is kept: the commands could not tell the two apart.
    home.run("serve --journal memory: --listen 127.0.0.1:0").fails(5, &server.pid().to_string());
    assert_eq!(home.described().unwrap()["pid"], server.pid(), "{holder}");
}

#[test]
fn an_address_in_use_is_refused_with_its_holder() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = home.run(&format!("serve --listen {address}"));
    let refused = refused.fails(5, &format!("pid {}", std::process::id()));
    assert!(refused.stderr.contains("--listen"), "{}", refused.stderr);
    assert!(!home.data().join("server.json").exists());
    home.run("serve --listen 127.0.0.1:0=nonsense").fails(3, "there is no toolset 'nonsense'");
}

#[test]
fn each_listener_shows_its_own_tools() {
    let home = Home::new();
    let server = home.serve("--listen 127.0.0.1:0=a2amcp");
    let listeners = server.described["listeners"].as_array().unwrap();
    let toolsets: Vec<_> = listeners.iter().map(|listener| listener["toolset"].as_str().unwrap()).collect();
    assert_eq!(toolsets, ["all", "a2amcp"]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let count = |index: usize| {
        let address = listeners[index]["address"].as_str().unwrap();
        let (code, body) = http(address, "POST", "/mcp", None, Some(&list));
        assert_eq!(code, 200, "{body}");
        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
        answer["result"]["tools"].as_array().unwrap().len()
    };
    assert!(count(0) > count(1));
    assert_eq!(count(1), 19);
}

#[test]
fn a_call_that_waits_is_answered_when_the_server_is_told_to_end() {
    let home = Home::new();
    let server = home.serve("");
    for session in ["ada", "ben"] {
        home.run(&format!("call agent_register project=p session={session}")).ok();
    }
    let address = server.address();
    let waiting = std::thread::spawn(move || {
        let question =
            json!({"project": "p", "session": "ada", "to": "ben", "text": "?", "wait_seconds": 40});
        http(&address, "POST", "/api/tools/question_ask", None, Some(&question))
    });
    until("the question is asked", || {
        let inbox = home.run("call message_read project=p session=ben keep=true").ok();
        inbox.stdout.contains("question").then_some(())
    });
    assert_eq!(server.terminate(), 0);
    let (code, body) = waiting.join().unwrap();
    assert!(code == 200 || code == 503, "{code} {body}");
    // What was asked is still there.
    let _server = home.serve("");
    let inbox = home.run("call message_read project=p session=ben keep=true").ok();
    assert!(inbox.stdout.contains("question"), "{}", inbox.stdout);
}

#[test]
fn the_log_of_an_interrupted_server_says_so() {
    let home = Home::new();
    let mut server = home.serve("");
    signal(server.pid(), Signal::INT);
    assert_eq!(server.wait(), 0);
    assert!(server.log().contains("stopped"), "{}", server.log());
}
