//! What the machine decides, as scripts of commands and what comes of them.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use switchboard_bus::{Data, Key, Ledger, NewEvent, Publish, Topic};
use switchboard_exchange::{Decide as _, Machine as _};

/// Runs lines such as `5s publish a b:key c`: events of the topics `a`, `b` and `c`, the second with a key. Every command
/// is decided by the live machine and by one that was replayed from a snapshot, which must agree.
fn check(script: &str, expected: &Expect) {
    let mut ledger = Ledger::new();
    let mut seen = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (at, words) = line.split_once(" publish").unwrap();
        let command = Publish { events: words.split_whitespace().map(event).collect() };
        let again: Ledger = serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap();
        assert_eq!(again, ledger);
        let decision = ledger.decide(time(at), &command);
        assert_eq!(again.decide(time(at), &command), decision);
        match decision {
            Err(refused) => writeln!(seen, "{at} {refused}").unwrap(),
            Ok(decision) => {
                let positions: Vec<_> = decision.reply.positions.iter().map(ToString::to_string).collect();
                writeln!(seen, "{at} at {}", positions.join(" ")).unwrap();
                for event in &decision.events {
                    writeln!(seen, "   {}", serde_json::to_string(event).unwrap()).unwrap();
                    ledger.apply(event);
                }
            }
        }
    }
    expected.assert_eq(&seen);
}

fn time(at: &str) -> Timestamp {
    let seconds: i64 = at.strip_suffix('s').unwrap().parse().unwrap();
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn event(word: &str) -> NewEvent {
    let (topic, key) = word.split_once(':').map_or((word, None), |(topic, key)| (topic, Some(key)));
    let event = NewEvent::new(Topic::new(topic).unwrap(), Data::json("1").unwrap());
    match key {
        Some(key) => event.keyed(Key::new(key).unwrap()),
        None => event,
    }
}

#[test]
fn positions_have_no_gaps_over_all_topics() {
    check(
        "0s publish a b
         1s publish a",
        &expect![[r#"
            0s at 1 2
               {"type":"published","first":1,"bytes":4,"at_ms":0,"events":[{"topic":"a","data":1},{"topic":"b","data":1}]}
            1s at 3
               {"type":"published","first":3,"bytes":6,"at_ms":1000,"events":[{"topic":"a","data":1}]}
        "#]],
    );
}

#[test]
fn a_known_key_gets_its_first_position() {
    check(
        "0s publish a:k b
         1s publish c:k d
         2s publish c:k",
        &expect![[r#"
            0s at 1 2
               {"type":"published","first":1,"bytes":5,"at_ms":0,"events":[{"topic":"a","data":1,"key":"k"},{"topic":"b","data":1}]}
            1s at 1 3
               {"type":"published","first":3,"bytes":7,"at_ms":1000,"events":[{"topic":"d","data":1}]}
            2s at 1
        "#]],
    );
}

#[test]
fn a_key_that_repeats_within_one_command_is_published_once() {
    check(
        "0s publish a:k b:k c:k d:l",
        &expect![[r#"
            0s at 1 1 1 2
               {"type":"published","first":1,"bytes":6,"at_ms":0,"events":[{"topic":"a","data":1,"key":"k"},{"topic":"d","data":1,"key":"l"}]}
        "#]],
    );
}

#[test]
fn a_key_is_new_again_after_ten_minutes_from_its_last_publication() {
    check(
        "0s publish a:k
         599s publish a:k
         600s publish a:k
         1199s publish b a:k
         1200s publish a:k",
        &expect![[r#"
            0s at 1
               {"type":"published","first":1,"bytes":3,"at_ms":0,"events":[{"topic":"a","data":1,"key":"k"}]}
            599s at 1
            600s at 2
               {"type":"published","first":2,"bytes":6,"at_ms":600000,"events":[{"topic":"a","data":1,"key":"k"}]}
            1199s at 3 2
               {"type":"published","first":3,"bytes":8,"at_ms":1199000,"events":[{"topic":"b","data":1}]}
            1200s at 4
               {"type":"published","first":4,"bytes":11,"at_ms":1200000,"events":[{"topic":"a","data":1,"key":"k"}]}
        "#]],
    );
}

#[test]
fn time_does_not_go_back_on_the_bus() {
    check(
        "9s publish a
         3s publish a",
        &expect![[r#"
            9s at 1
               {"type":"published","first":1,"bytes":2,"at_ms":9000,"events":[{"topic":"a","data":1}]}
            3s at 2
               {"type":"published","first":2,"bytes":4,"at_ms":9000,"events":[{"topic":"a","data":1}]}
        "#]],
    );
}

#[test]
fn nothing_published_changes_nothing() {
    check("0s publish", &expect![["0s at \n"]]);
}

#[test]
fn too_much_at_once_is_refused_as_a_whole() {
    let ledger = Ledger::new();
    let refusal = |event: NewEvent, count| {
        let command = Publish { events: vec![event; count] };
        ledger.decide(Timestamp::UNIX_EPOCH, &command).unwrap_err().to_string()
    };
    expect![["4097 events at once are more than 4096: publish them in several calls"]]
        .assert_eq(&refusal(event("a"), Publish::MAX_EVENTS + 1));
    let large = Data::json(format!("\"{}\"", "x".repeat(Data::MAX_BYTES - 2))).unwrap();
    expect![["4456465 bytes of events at once are more than 4194304: publish them in several calls"]]
        .assert_eq(&refusal(NewEvent::new(Topic::new("a").unwrap(), large), 17));
}

#[test]
fn only_the_latest_keys_are_remembered() {
    let mut ledger = Ledger::new();
    let keyed = |number: usize| event(&format!("a:{number}"));
    let publish = |ledger: &mut Ledger, events: Vec<NewEvent>| {
        let decision = ledger.decide(Timestamp::UNIX_EPOCH, &Publish { events }).unwrap();
        decision.events.iter().for_each(|event| ledger.apply(event));
        decision.reply.positions
    };
    for first in (0..=Ledger::MAX_KEYS).step_by(Publish::MAX_EVENTS) {
        publish(&mut ledger, (first..first + Publish::MAX_EVENTS).map(keyed).collect());
    }
    let newest = ledger.newest().get();
    // One batch more than is remembered was published: its keys are the ones forgotten.
    assert_eq!(publish(&mut ledger, vec![keyed(Publish::MAX_EVENTS)])[0].get(), 4_097);
    assert_eq!(publish(&mut ledger, vec![keyed(0)])[0].get(), newest + 1);
}
