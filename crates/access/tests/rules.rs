//! What the machine decides, as scripts of commands and the events and refusals expected.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use switchboard_access::{AccessKeys, CreateKey, Grant, KeyId, RevokeKey, SecretHash};
use switchboard_exchange::{Decide, Machine};

/// Runs lines such as `5s create a1 laptop [expires 10s] [projects a,b]`, `6s revoke laptop`, `7s open a1 secret`.
fn check(script: &str, expected: &Expect) {
    let mut keys = AccessKeys::new();
    let mut seen = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let now = at(words[0]);
        let outcome = match words[1] {
            "create" => run(&mut keys, now, &create(&words[2..])),
            "revoke" => run(&mut keys, now, &RevokeKey { key: words[2].to_owned() }),
            "open" => keys
                .open(words[2], words[3], now)
                .map_or_else(|| "refused".to_owned(), |key| format!("is {}", key.name)),
            "snapshot" => {
                let state = serde_json::to_string(&keys).unwrap();
                let again: AccessKeys = serde_json::from_str(&state).unwrap();
                assert_eq!(again, keys);
                "same".to_owned()
            }
            word => panic!("no such command: {word}"),
        };
        writeln!(seen, "{} {outcome}", words[0]).unwrap();
    }
    expected.assert_eq(&seen);
}

fn at(seconds: &str) -> Timestamp {
    Timestamp::UNIX_EPOCH
        + SignedDuration::from_secs(seconds.strip_suffix('s').unwrap().parse::<i64>().unwrap())
}

fn create(words: &[&str]) -> CreateKey {
    let option = |name| words.iter().position(|word| *word == name).map(|index| words[index + 1]);
    // `-` is the empty list, `''` the empty name.
    let list = |name| {
        option(name).map(|list| {
            list.split(',')
                .filter(|name| *name != "-")
                .map(|name| name.trim_matches('\'').to_owned())
                .collect()
        })
    };
    CreateKey {
        id: KeyId::new(words[0]),
        name: words[1].to_owned(),
        secret: SecretHash::of("secret"),
        grant: Grant {
            projects: list("projects"),
            toolsets: list("toolsets"),
            admin: words.contains(&"admin"),
        },
        expires_at: option("expires").map(at),
    }
}

fn run<C>(keys: &mut AccessKeys, now: Timestamp, command: &C) -> String
where
    AccessKeys: Decide<C>,
{
    match keys.decide(now, command) {
        Ok(decision) if decision.events.is_empty() => "nothing changes".to_owned(),
        Ok(decision) => {
            for event in &decision.events {
                keys.apply(event);
            }
            let mut json = serde_json::to_value(&decision.events).unwrap();
            for event in json.as_array_mut().unwrap() {
                event.as_object_mut().unwrap().remove("secret_sha256");
            }
            json.to_string()
        }
        Err(refused) => format!("refused: {refused}"),
    }
}

#[test]
fn a_key_opens_until_it_is_revoked() {
    check(
        "1s create a1 laptop
         2s open a1 secret
         2s open a1 wrong
         2s open a2 secret
         3s revoke laptop
         3s open a1 secret
         4s revoke a1
         4s snapshot",
        &expect![[r#"
            1s [{"type":"key_created","id":"a1","name":"laptop","at":"1970-01-01T00:00:01Z","grant":{"admin":false}}]
            2s is laptop
            2s refused
            2s refused
            3s [{"type":"key_revoked","id":"a1","at":"1970-01-01T00:00:03Z"}]
            3s refused
            4s nothing changes
            4s same
        "#]],
    );
}

#[test]
fn a_key_opens_until_it_expires() {
    check(
        "1s create a1 laptop expires 10s
         9s open a1 secret
         10s open a1 secret
         10s create a2 laptop expires 10s
         10s create a2 laptop expires 11s",
        &expect![[r#"
            1s [{"type":"key_created","id":"a1","name":"laptop","expires_at":"1970-01-01T00:00:10Z","grant":{"admin":false},"at":"1970-01-01T00:00:01Z"}]
            9s is laptop
            10s refused
            10s refused: a key cannot expire at 1970-01-01T00:00:10Z, which is over: give a time to come
            10s [{"type":"key_created","id":"a2","name":"laptop","expires_at":"1970-01-01T00:00:11Z","grant":{"admin":false},"at":"1970-01-01T00:00:10Z"}]
        "#]],
    );
}

#[test]
fn a_name_is_unique_among_live_keys() {
    check(
        "1s create a1 laptop
         2s create a2 laptop
         3s revoke laptop
         4s create a2 laptop
         5s revoke laptop
         5s open a2 secret
         6s revoke tablet",
        &expect![[r#"
            1s [{"type":"key_created","id":"a1","name":"laptop","at":"1970-01-01T00:00:01Z","grant":{"admin":false}}]
            2s refused: there is already a key called 'laptop': choose another name, or revoke that one first
            3s [{"type":"key_revoked","id":"a1","at":"1970-01-01T00:00:03Z"}]
            4s [{"type":"key_created","id":"a2","name":"laptop","at":"1970-01-01T00:00:04Z","grant":{"admin":false}}]
            5s [{"type":"key_revoked","id":"a2","at":"1970-01-01T00:00:05Z"}]
            5s refused
            6s refused: there is no key 'tablet'
        "#]],
    );
}

#[test]
fn an_id_and_a_name_never_mean_two_keys() {
    check(
        "1s create a1 laptop
         2s create a2 a1
         3s create a1 tablet
         4s create laptop tablet
         5s create a5 a5",
        &expect![[r#"
            1s [{"type":"key_created","id":"a1","name":"laptop","at":"1970-01-01T00:00:01Z","grant":{"admin":false}}]
            2s refused: there is already a key called 'a1': choose another name, or revoke that one first
            3s refused: there is already a key with the id 'a1'
            4s refused: there is already a key with the id 'laptop'
            5s refused: there is already a key with the id 'a5'
        "#]],
    );
}

#[test]
fn a_key_that_opens_nothing_or_cannot_be_named_is_refused() {
    check(
        "1s create a1 ci projects shop,site toolsets coordination admin
         2s create a2 ci2 projects ''
         3s create a2 ci2 toolsets -
         4s create a2 a/b
         5s create a2 owner",
        &expect![[r#"
            1s [{"type":"key_created","id":"a1","name":"ci","at":"1970-01-01T00:00:01Z","grant":{"projects":["shop","site"],"toolsets":["coordination"],"admin":true}}]
            2s refused: a name in the list of projects has 0 bytes, it must have 1 to 4096
            3s refused: a key for no toolsets at all would open nothing: name some, or leave the list out to allow all
            4s refused: 'a/b' cannot name a key: a name is 1 to 64 characters of A-Z a-z 0-9 _ . @ -
            5s refused: 'owner' stands for callers that need no key: choose another name
        "#]],
    );
}

#[test]
fn live_keys_are_bounded_and_ended_ones_are_forgotten() {
    let mut keys = AccessKeys::new();
    for number in 0..AccessKeys::MAX_LIVE + AccessKeys::MAX_ENDED + 10 {
        run(&mut keys, at("1s"), &create(&[&format!("i{number}"), &format!("n{number}")]));
        if number < AccessKeys::MAX_ENDED + 10 {
            run(&mut keys, at("1s"), &RevokeKey { key: format!("i{number}") });
        }
    }
    assert_eq!(keys.keys().count(), AccessKeys::MAX_LIVE + AccessKeys::MAX_ENDED);
    let refused = run(&mut keys, at("1s"), &create(&["more", "more1"]));
    assert_eq!(refused, "refused: there are 1000 live keys, the most there may be: revoke some first");
    // The oldest were forgotten, and may be used again once there is room.
    assert_eq!(
        run(&mut keys, at("1s"), &RevokeKey { key: "i0".to_owned() }),
        "refused: there is no key 'i0'"
    );
}
