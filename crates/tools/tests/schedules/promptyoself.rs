//! PromptYoSelf's tools.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_access::Caller;
use switchboard_tools::{Context, DefaultAgents, Origin, PromptYoSelfOptions, Variables, View};

use crate::world::{Server, World, pass_time};

impl Server {
    async fn prompt(&self, tool: &str, arguments: Value) -> Value {
        self.prompt_from(Origin::default(), tool, arguments).await
    }

    async fn prompt_from(&self, origin: Origin, tool: &str, arguments: Value) -> Value {
        self.call_from(origin, &format!("promptyoself_{tool}"), arguments).await.structured.unwrap()
    }

    async fn every(&self, every: &str) -> Value {
        let wish = json!({"agent_id": "a", "prompt": "p", "every": every, "skip_validation": true});
        self.prompt("schedule_every", wish).await
    }
}

/// An acceptance check of PromptYoSelf's contract.
#[tokio::test(start_paused = true)]
async fn check_19_what_was_missed_in_35_minutes_is_made_up_for_once() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    assert_eq!(server.every("10m").await["next_run"], "2025-01-02T09:10:00+00:00");
    server.stop().await;

    pass_time(35).await;
    let server = world.start().await;
    let passed = server.prompt("execute", json!({})).await;
    assert_eq!(passed["message"], "1 prompts executed");
    assert_eq!(passed["executed"][0]["repetition_count"], 1);
    assert_eq!(passed["executed"][0]["next_run"], "2025-01-02T09:40:00+00:00");
    assert_eq!(server.prompt("execute", json!({})).await["message"], "0 prompts executed");
    assert_eq!(world.prompts(), ["a: p"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_late_stays_on_its_grid() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    server.every("10m").await;
    pass_time(14).await;
    let passed = server.prompt("execute", json!({})).await;
    assert_eq!(passed["executed"][0]["next_run"], "2025-01-02T09:20:00+00:00");
    // One that is due at the very moment is due.
    pass_time(6).await;
    let passed = server.prompt("execute", json!({})).await;
    assert_eq!(passed["executed"][0]["next_run"], "2025-01-02T09:30:00+00:00");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_once_is_delivered_however_late() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    let wish =
        json!({"agent_id": "a", "prompt": "p", "time": "2025-01-02 09:30 UTC", "skip_validation": true});
    server.prompt("schedule_time", wish).await;
    server.stop().await;
    pass_time(60 * 24 * 3).await;
    let server = world.start().await;
    let passed = server.prompt("execute", json!({})).await;
    assert_eq!(
        (&passed["executed"][0]["delivered"], &passed["executed"][0]["next_run"]),
        (&json!(true), &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn a_loop_passes_at_once_and_at_its_interval_until_it_is_withdrawn() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    server.every("1m").await;
    pass_time(1).await;
    let context = Context::new(Caller::local());
    let cancelled = context.cancelled.clone();
    let arguments = json!({"loop": true, "interval": "120"}).as_object().unwrap().clone();
    let registry = server.registry.clone();
    let looping = tokio::spawn(async move {
        registry.call(&View::ALL, "promptyoself_execute", arguments, context).await.unwrap().structured
    });
    // Passes at 9:01, 9:03 and 9:05.
    tokio::time::sleep(Duration::from_secs(250)).await;
    assert_eq!(world.prompts().len(), 3);
    cancelled.cancel();
    let answer = looping.await.unwrap();
    assert_eq!(answer, Some(json!({"status": "success", "message": "Scheduler loop completed"})));
    pass_time(10).await;
    assert_eq!(world.prompts().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn cron_is_in_utc_also_when_clocks_change() {
    let world = World::at("2025-03-29T09:00:00Z");
    let server = world.start().await;
    let wish = json!({"agent_id": "a", "prompt": "p", "cron": "0 9 * * MON-FRI", "skip_validation": true});
    // Strictly after now, and over a weekend on which clocks change in Europe.
    assert_eq!(server.prompt("schedule_cron", wish).await["next_run"], "2025-03-31T09:00:00+00:00");
}

#[tokio::test(start_paused = true)]
async fn what_one_call_schedules_another_lists_in_the_order_in_which_it_is_due() {
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start().await;
    for every in ["30m", "10m", "20m", "10m"] {
        server.every(every).await;
    }
    let listed = server.prompt("list", json!({"agent_id": " A "})).await;
    assert_eq!(listed["count"], 0, "an agent's id is as it is written");
    let listed = server.prompt("list", json!({"agent_id": "NONE"})).await;
    let of = |key: &str| -> Vec<Value> {
        listed["schedules"].as_array().unwrap().iter().map(|schedule| schedule[key].clone()).collect()
    };
    assert_eq!(of("schedule_value"), ["10m", "10m", "20m", "30m"]);
    let ids: Vec<_> = of("id").iter().map(|id| id.as_u64().unwrap()).collect();
    assert!(ids[0] < ids[1], "{ids:?}");
    let keys = listed["schedules"][0].as_object().unwrap().len();
    assert_eq!(keys, 11);
}

/// Whose prompt it is where the client and the server have variables, such as `D=x L=y`: `D` is
/// `PROMPTYOSELF_DEFAULT_AGENT_ID`, `L` is `LETTA_AGENT_ID`, `X` is `LETTA_DEFAULT_AGENT_ID`.
async fn inferred(client: &str, server: &str) -> String {
    let of = |variables: &str, letter: &str| {
        let mut set = variables.split_whitespace().filter_map(|variable| variable.split_once('='));
        set.find(|(name, _)| *name == letter).map_or_else(String::new, |(_, agent)| agent.replace('_', " "))
    };
    let agents = DefaultAgents {
        promptyoself_default: of(server, "D"),
        letta: of(server, "L"),
        letta_default: of(server, "X"),
        single_agent_fallback: false,
    };
    let world = World::at("2025-01-02T09:00:00Z");
    let server = world.start_with(PromptYoSelfOptions { agents, ..PromptYoSelfOptions::default() }).await;
    let mut variables = Variables::default();
    for (name, letter) in Variables::NAMES.into_iter().zip(["D", "L", "X"]) {
        variables.set(name, &of(client, letter));
    }
    let origin = Origin { variables, ..Origin::default() };
    let told = server.prompt_from(origin, "inference_diagnostics", json!({})).await;
    let set: String = Variables::NAMES
        .iter()
        .zip(["D", "L", "X"])
        .filter_map(|(name, letter)| told["env"][*name].as_bool().unwrap().then_some(letter))
        .collect();
    let debug = &told["inference_debug"];
    assert_eq!(debug["env_checked"], told["env"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!(
        "{} by {} {} of {set}",
        text(&told["inferred_agent_id"]),
        text(&debug["source"]),
        text(&debug["key"])
    )
}

#[tokio::test(start_paused = true)]
async fn all_variables_of_a_client_are_asked_before_those_of_the_server() {
    assert_eq!(inferred("", "").await, "- by - - of ");
    assert_eq!(inferred("", "L=s X=t").await, "s by env LETTA_AGENT_ID of LX");
    assert_eq!(inferred("X=c", "D=s").await, "c by env LETTA_DEFAULT_AGENT_ID of DX");
    assert_eq!(inferred("X=b L=c", "D=s L=t").await, "c by env LETTA_AGENT_ID of DLX");
    assert_eq!(inferred("L=b D=_c_", "").await, "c by env PROMPTYOSELF_DEFAULT_AGENT_ID of DL");
    assert_eq!(inferred("D=_", "X=s").await, "s by env LETTA_DEFAULT_AGENT_ID of X");
    let longest = "c".repeat(Variables::MAX_VALUE);
    assert_eq!(inferred(&format!("L={longest}"), "").await, format!("{longest} by env LETTA_AGENT_ID of L"));
    assert_eq!(inferred(&format!("L={longest}c"), "X=s").await, "s by env LETTA_DEFAULT_AGENT_ID of X");
}

#[tokio::test(start_paused = true)]
async fn what_is_set_by_a_tool_or_told_beside_a_call_beats_the_variables_of_the_client() {
    let server = World::at("2025-01-02T09:00:00Z").start().await;
    let mut origin = Origin::default();
    origin.variables.set("PROMPTYOSELF_DEFAULT_AGENT_ID", "c");
    let inferred = async |origin: &Origin| {
        server.prompt_from(origin.clone(), "inference_diagnostics", json!({})).await["inferred_agent_id"]
            .clone()
    };
    assert_eq!(inferred(&origin).await, "c");
    server.prompt("set_default_agent", json!({"agent_id": "y"})).await;
    assert_eq!(inferred(&origin).await, "y");
    origin.agent = Some("h".into());
    assert_eq!(inferred(&origin).await, "h");
}
