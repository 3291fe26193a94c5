//! Options: where they come from, and what is refused.

use serde_json::Value;

use crate::support::{Home, said};

fn setting(list: &Value, key: &str) -> (Value, String) {
    let found = list.as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
    (found["value"].clone(), found["source"].as_str().unwrap().to_owned())
}

#[test]
fn config_show_tells_where_each_value_comes_from() {
    let home = Home::new();
    home.write_config("compat = true\n[limits]\nbatch = 7\n");
    let mut command = home.command(["--log-level", "debug", "config", "show", "--json"]);
    command
        .env("SWITCHBOARD_LIMITS_CALLS", "9")
        .env("HEARTBEAT_TIMEOUT", "30")
        .env("SWITCHBOARD_KEY", "hush");
    let said = said(command).ok();
    let list = said.json();
    let file = format!("file {}", home.path().join("config/switchboard/config.toml").display());
    assert_eq!(setting(&list, "compat"), (true.into(), file.clone()));
    assert_eq!(setting(&list, "limits.batch"), (7.into(), file));
    assert_eq!(setting(&list, "limits.calls"), (9.into(), "environment SWITCHBOARD_LIMITS_CALLS".into()));
    assert_eq!(
        setting(&list, "a2amcp.heartbeat_timeout"),
        ("30".into(), "environment HEARTBEAT_TIMEOUT".into())
    );
    assert_eq!(setting(&list, "log.level"), ("debug".into(), "flag --log-level".into()));
    assert_eq!(setting(&list, "require_key"), (false.into(), "default".into()));
    assert_eq!(setting(&list, "data_dir").0, home.data().display().to_string());
    assert!(!said.stdout.contains("hush"), "a key is not shown");
}

#[test]
fn what_is_no_option_is_refused_everywhere() {
    let home = Home::new();
    home.write_config("jurnal = \"memory:\"\n");
    home.run("serve").fails(3, "sets 'jurnal', which is no option: did you mean 'journal'?");
    home.run("status").fails(3, "did you mean 'journal'?");
    home.write_config("");
    let mut command = home.command(["config", "show"]);
    command.env("SWITCHBOARD_DATADIR", "x");
    said(command).fails(3, "SWITCHBOARD_DATADIR sets no option: did you mean 'SWITCHBOARD_DATA_DIR'?");
    home.run("serve --lissen 1").fails(2, "--listen");
    home.run("serve --journal redis://x").fails(3, "write `sqlite:`");
}

#[test]
fn config_path_names_the_file() {
    let home = Home::new();
    let file = home.path().join("config/switchboard/config.toml");
    assert_eq!(home.run("config path").ok().stdout.trim_end(), file.display().to_string());
    assert_eq!(home.run("--config /x/y.toml config path").ok().stdout.trim_end(), "/x/y.toml");
}
