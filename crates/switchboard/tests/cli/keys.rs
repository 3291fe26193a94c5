//! Keys, against real processes.

use serde_json::{Value, json};

use crate::support::{Home, said};

fn create(home: &Home, line: &str) -> (Value, String) {
    let made = home.run(&format!("key create {line} --json")).ok().json();
    (made["key"].clone(), made["bearer"].as_str().unwrap().to_owned())
}

fn status(server: &crate::support::Server, bearer: Option<&str>) -> u16 {
    server.http("GET", "/api/health", bearer, None).0
}

#[test]
fn a_key_opens_the_door_until_it_is_revoked() {
    let home = Home::new();
    let server = home.serve("--require-key");
    assert_eq!(status(&server, None), 401);
    let (key, bearer) = create(&home, "laptop");
    assert_eq!(key["name"], "laptop");
    assert_eq!(status(&server, Some(&bearer)), 200);
    assert_eq!(home.run("key list --json").ok().json()[0]["name"], "laptop");
    home.run("key revoke laptop").ok();
    assert_eq!(status(&server, Some(&bearer)), 401);
    assert_eq!(home.run("key list --json").ok().json(), json!([]));
    assert_eq!(home.run("key list --all --json").ok().json().as_array().unwrap().len(), 1);
    home.run("key revoke nobody").fails(1, "there is no key 'nobody'");
}

#[test]
fn a_key_made_without_a_server_is_valid_once_it_runs() {
    let home = Home::new();
    let (_, bearer) = create(&home, "laptop --project shop --toolset coordination --expires 90d");
    home.run("key create laptop").fails(1, "there is already a key called 'laptop'");
    let server = home.serve("--require-key");
    assert_eq!(status(&server, Some(&bearer)), 200);
    let listed = home.run("key list --json").ok().json();
    assert_eq!(listed[0]["grant"]["projects"], json!(["shop"]));
    assert!(listed[0]["expires_at"].is_string());
}

#[test]
fn the_commands_reach_a_server_elsewhere_with_a_key() {
    let home = Home::new();
    let server = home.serve("--require-key");
    let (_, bearer) = create(&home, "laptop");
    let elsewhere = Home::new();
    let url = format!("http://{}", server.address());
    elsewhere.run(&format!("status --url {url}")).fails(6, "");
    let mut command = elsewhere.command(["status", "--url", &url, "--json"]);
    command.env("SWITCHBOARD_KEY", &bearer);
    assert_eq!(said(command).ok().json()["health"]["status"], "ok");
    // It may use the tools and not the keys.
    let mut command = elsewhere.command(["key", "list", "--url", &url]);
    command.env("SWITCHBOARD_KEY", &bearer);
    said(command).fails(6, "administer");
}

#[test]
fn a_grant_names_toolsets_that_exist() {
    let home = Home::new();
    home.run("key create laptop --toolset nonsense").fails(2, "there is no toolset 'nonsense'; there are:");
    home.run("key create laptop --expires soon").fails(2, "is no span of time");
}

#[test]
fn an_address_that_others_can_reach_wants_a_key_first() {
    let home = Home::new();
    home.run("serve --listen 0.0.0.0:0").fails(3, "switchboard key create NAME");
    let (_, bearer) = create(&home, "laptop");
    let server = home.serve_by(home.command(["serve", "--listen", "0.0.0.0:0"]));
    let address = server.address().replace("0.0.0.0", "127.0.0.1");
    let code = |bearer| crate::support::http(&address, "GET", "/api/health", bearer, None).0;
    assert_eq!((code(None), code(Some(&*bearer))), (401, 200));
    // The commands of its owner need none.
    home.run("status").ok();
}
