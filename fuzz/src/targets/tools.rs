//! Tool calls. An input is a script, one call to a line: `TOOL ARGUMENTS`.
//!
//! A line may begin with `#ID ` for a call with a command id, `&` for one that the next lines do not wait for, and be
//! `+SECONDS` to let time pass. `$1` to `$9` are the ids that earlier calls were answered with.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use switchboard_exchange::{CommandId, Options};
use switchboard_tools::{CallError, Output, Registry, View};

use crate::world::{PROJECT, Shared, World, context};

/// More lines are not looked at.
const MOST_CALLS: usize = 40;

/// Longer than any call may wait.
const PATIENCE: Duration = Duration::from_hours(3);

thread_local! {
    static WORLD: Shared<World> = Shared::new();
}

pub(super) fn run(input: &[u8]) {
    let script = String::from_utf8_lossy(input);
    WORLD.with(|shared| {
        shared.run(
            async || World::new(Options::default()),
            async |world, project| play(&world.registry, &script.replace(PROJECT, project)).await,
        );
    });
}

async fn play(registry: &Arc<Registry>, script: &str) {
    let mut beside = Vec::new();
    let mut ids = Vec::new();
    for line in script.lines().take(MOST_CALLS) {
        if let Some(seconds) = line.strip_prefix('+') {
            let seconds = seconds.trim().parse::<u64>().unwrap_or(1).min(1_000_000);
            tokio::time::advance(Duration::from_secs(seconds)).await;
            continue;
        }
        let line = with_ids(line, &ids);
        if let Some(line) = line.strip_prefix('&') {
            beside.push(tokio::spawn(call(registry.clone(), line.to_owned())));
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        } else if let Some(output) = in_time(&line, call(registry.clone(), line.clone())).await {
            ids.extend(id_in(&output.text));
        }
    }
    // Only now: the script itself may let more time pass than a call has.
    for call in beside {
        in_time("a call beside others", call).await.expect("a call does not panic");
    }
}

async fn in_time<T>(what: &str, call: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(PATIENCE, call).await;
    answer.unwrap_or_else(|_| panic!("{what} was not answered within {PATIENCE:?}"))
}

/// What a call made can be named by a later one: `$1` is the id in the first answer that had one.
fn with_ids(line: &str, ids: &[String]) -> String {
    let numbered = ids.iter().take(9).enumerate();
    numbered.fold(line.to_owned(), |line, (index, id)| line.replace(&format!("${}", index + 1), id))
}

fn id_in(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let letter = &answer["messages"][0]["id"];
    let ids = ["id", "ticket", "todo_id", "message_id"].map(|name| &answer[name]);
    ids.into_iter().chain([letter, &answer[0]["id"]]).find_map(Value::as_str).map(str::to_owned)
}

async fn call(registry: Arc<Registry>, line: String) -> Option<Output> {
    let mut context = context();
    let mut line = &*line;
    if let Some(named) = line.strip_prefix('#') {
        let (id, rest) = named.split_once(' ').unwrap_or((named, ""));
        context.command_id = CommandId::new(id).ok();
        line = rest;
    }
    let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
    let mut arguments = serde_json::from_str::<Map<String, Value>>(arguments).ok()?;
    if tool == "promptyoself_execute" {
        // It is meant not to end.
        arguments.remove("loop");
    }
    if ASKS_LETTA.contains(&tool) {
        return None;
    }
    match registry.call(&View::ALL, tool, arguments, context).await {
        Ok(output) => {
            match registry.tool(&View::ALL, tool).map(|tool| tool.toolset) {
                Some("agtos" | "promptyoself") => is_refused_in_words(line, &output),
                _ => is_well_formed(line, &output),
            }
            Some(output)
        }
        Err(CallError::UnknownTool { .. }) => None,
        Err(error @ CallError::Denied(_)) => panic!("{line}: {error}"),
    }
}

/// Tools whose answer is another server's, which no input may reach.
const ASKS_LETTA: [&str; 3] = ["promptyoself_agents", "promptyoself_test", "promptyoself_upload"];

/// The refusals of these catalogues are texts.
fn is_refused_in_words(line: &str, output: &Output) {
    let begins = ["Error: ", "Input validation error: "].iter().any(|words| output.text.starts_with(words));
    assert!(begins || !output.is_error, "{line}: {}", output.text);
    // Nothing can be wrong with this journal, so this is a fault.
    assert!(!output.text.contains("not available"), "{line}: {}", output.text);
}

/// A program can read every answer, and every refusal has a code.
fn is_well_formed(line: &str, output: &Output) {
    let text: Value = serde_json::from_str(&output.text)
        .unwrap_or_else(|why| panic!("{line} was answered with {}: {why}", output.text));
    if let Some(structured) = &output.structured {
        assert_eq!(&text, structured, "{line}");
    }
    if output.is_error {
        let code = text["error"]["code"].as_str().or_else(|| text["details"]["code"].as_str());
        let code = code.unwrap_or_else(|| panic!("{line} was refused without a code: {text}"));
        // Nothing can be wrong with this journal, so these are faults.
        assert!(!matches!(code, "internal" | "unavailable" | "outcome_unknown"), "{line}: {text}");
    }
}
