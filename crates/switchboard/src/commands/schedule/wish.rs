//! What the command line asks for, as REST takes it.

use std::io::Read as _;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::Failure;
use crate::cli::usage;

/// What a schedule calls: `KIND:TO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    kind: String,
    to: String,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((kind, to)) if !kind.is_empty() && !to.is_empty() => {
                // A URL says by itself what it is.
                let (kind, to) = if matches!(kind, "http" | "https") { ("webhook", text) } else { (kind, to) };
                Ok(Self { kind: kind.to_owned(), to: to.to_owned() })
            }
            _ => Err("write what it calls as topic:NAME, inbox:PROJECT/SESSION, letta:AGENT, webhook:URL or tool:NAME"
                .to_owned()),
        }
    }
}

/// When it is due.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Timing {
    /// Once, at this time.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["cron", "every"])]
    at: Option<String>,
    /// By a cron expression of five fields, such as `30 9 * * MON-FRI`.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "every")]
    cron: Option<String>,
    /// At an even pace, first after one such span.
    #[arg(long, value_name = "DURATION")]
    every: Option<String>,
    /// Whose clock, such as `Europe/Berlin`. Default: the server's.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Nothing is due before this time.
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// Nothing is due after this time.
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
}

/// What is done when not all goes to plan.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Policies {
    /// It is completed after so many deliveries.
    #[arg(long, value_name = "COUNT")]
    max_repetitions: Option<u32>,
    /// What becomes of times that pass while the server is down: `skip`, `once` (one is made up for; the default), or
    /// `all:MAX:WITHIN`, such as `all:10:1h`.
    #[arg(long, value_name = "POLICY", value_parser = missed)]
    missed: Option<Value>,
    /// What becomes of times that come while an earlier one is not delivered: `queue` (the default), `skip`, `allow`.
    #[arg(long, value_name = "POLICY", value_parser = ["queue", "skip", "allow"])]
    overlap: Option<String>,
    /// Each is late by a random span of up to this, so that not all come at once.
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// How many attempts a delivery gets in all; 0 for no end. Default: the target's habit.
    #[arg(long, value_name = "COUNT")]
    retry_attempts: Option<u32>,
    /// The pause after the first attempt that failed; each next one is twice as long.
    #[arg(long, value_name = "DURATION")]
    retry_first: Option<String>,
    /// The longest pause between attempts.
    #[arg(long, value_name = "DURATION")]
    retry_max: Option<String>,
}

/// What is changed.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Changes {
    /// What it says. `-` reads it from standard input.
    #[arg(long, short, value_name = "TEXT|JSON|-")]
    message: Option<String>,
    /// A name for people.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    policies: Policies,
}

fn missed(text: &str) -> Result<Value, String> {
    match text.split(':').collect::<Vec<_>>()[..] {
        ["skip"] => Ok(json!("skip")),
        ["once"] => Ok(json!("once")),
        ["all", max, within] => {
            let max: u32 = max.parse().map_err(|_| format!("'{max}' is no number"))?;
            Ok(json!({"all": {"max": max, "within": within}}))
        }
        _ => Err("write skip, once, or all:MAX:WITHIN such as all:10:1h".to_owned()),
    }
}

/// Puts what was said into an object; what was not said is left out.
fn put<const N: usize>(object: &mut Map<String, Value>, fields: [(&str, Option<Value>); N]) {
    let said = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    object.extend(said);
}

impl Timing {
    /// As REST takes it.
    pub(super) fn as_json(&self) -> Value {
        let mut object = Map::new();
        self.put_into(&mut object);
        object.into()
    }

    fn put_into(&self, object: &mut Map<String, Value>) {
        let text = |text: &Option<String>| text.clone().map(Value::from);
        put(
            object,
            [
                ("at", text(&self.at)),
                ("cron", text(&self.cron)),
                ("every", text(&self.every)),
                ("time_zone", text(&self.time_zone)),
                ("start", text(&self.start)),
                ("end", text(&self.end)),
            ],
        );
    }
}

impl Policies {
    fn put_into(self, object: &mut Map<String, Value>) {
        let mut retry = Map::new();
        put(
            &mut retry,
            [
                ("attempts", self.retry_attempts.map(Value::from)),
                ("first", self.retry_first.map(Value::from)),
                ("max", self.retry_max.map(Value::from)),
            ],
        );
        put(
            object,
            [
                ("max_repetitions", self.max_repetitions.map(Value::from)),
                ("missed", self.missed),
                ("overlap", self.overlap.map(Value::from)),
                ("jitter", self.jitter.map(Value::from)),
                ("retry", (!retry.is_empty()).then(|| retry.into())),
            ],
        );
    }
}

/// A message: JSON if it is an object or a list, any other as text.
fn message(text: String) -> Result<Value, Failure> {
    let text = if text == "-" {
        let mut read = String::new();
        let result = std::io::stdin().read_to_string(&mut read);
        result.map_err(|error| usage(format!("cannot read standard input: {error}")))?;
        read
    } else {
        text
    };
    Ok(match serde_json::from_str::<Value>(&text) {
        Ok(json @ (Value::Object(_) | Value::Array(_))) => json,
        Ok(_) | Err(_) => Value::String(text),
    })
}

pub(super) fn create(
    target: &Target,
    text: Option<String>,
    name: Option<String>,
    timing: &Timing,
    policies: Policies,
) -> Result<Value, Failure> {
    let mut wish = Map::new();
    put(
        &mut wish,
        [
            ("target", Some(json!({"kind": target.kind, "to": target.to}))),
            ("message", text.map(message).transpose()?),
            ("name", name.map(Value::from)),
        ],
    );
    timing.put_into(&mut wish);
    policies.put_into(&mut wish);
    Ok(wish.into())
}

pub(super) fn update(changes: Changes) -> Result<Value, Failure> {
    let mut wish = Map::new();
    put(
        &mut wish,
        [("message", changes.message.map(message).transpose()?), ("name", changes.name.map(Value::from))],
    );
    changes.timing.put_into(&mut wish);
    changes.policies.put_into(&mut wish);
    if wish.is_empty() {
        return Err(usage("nothing is to be changed")
            .hint("say what, such as `--cron '0 9 * * *'`; `switchboard schedule update --help` lists all"));
    }
    Ok(wish.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_kind_and_where() {
        for (text, expected) in [
            ("topic:build.done", Some(("topic", "build.done"))),
            ("inbox:shop/ada", Some(("inbox", "shop/ada"))),
            ("webhook:https://a.example/x", Some(("webhook", "https://a.example/x"))),
            ("https://a.example/x", Some(("webhook", "https://a.example/x"))),
            ("letta:", None),
            ("build.done", None),
        ] {
            let read = text.parse::<Target>().ok();
            let read = read.as_ref().map(|target| (target.kind.as_str(), target.to.as_str()));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn a_policy_for_missed_times_is_one_of_three() {
        assert_eq!(missed("skip"), Ok(json!("skip")));
        assert_eq!(missed("all:10:1h"), Ok(json!({"all": {"max": 10, "within": "1h"}})));
        assert!(missed("all").is_err() && missed("all:x:1h").is_err() && missed("").is_err());
    }

    #[test]
    fn a_message_is_json_only_where_it_is_an_object_or_a_list() {
        for (text, expected) in
            [("{\"a\":1}", json!({"a": 1})), ("[1]", json!([1])), ("5", json!("5")), ("{x", json!("{x"))]
        {
            assert_eq!(message(text.to_owned()).unwrap(), expected);
        }
    }
}
