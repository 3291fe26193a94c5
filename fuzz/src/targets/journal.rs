//! What a journal may hold: entries and snapshots that somebody edited, another version wrote, or a disk made up.
//!
//! An input is one record to a line, in the order of the stream. A line that begins with `=` is a snapshot of what stands
//! above it. Lines are the entries of a project; if the first line is `access`, those of the keys, and if it is `schedules`, those
//! of schedules.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard_coordination::Coordination;
use switchboard_exchange::Options;
use switchboard_journal::{Journal as _, MemoryJournal, Payload, Seq, Snapshot, StreamId};
use switchboard_schedule::Shard;
use switchboard_tools::View;

use crate::world::{PROJECT, World, clock, context, runtime};

const MOST_LINES: usize = 60;

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    runtime().block_on(async {
        match text.split_once('\n') {
            Some(("access", records)) => keys(records).await,
            Some(("schedules", records)) => schedules(records).await,
            _ => project(&text).await,
        }
    });
}

async fn keys(records: &str) {
    let journal = Arc::new(MemoryJournal::new());
    fill(&journal, switchboard_access::STREAM, records).await;
    let world = World::over(journal, Options::default());
    let Some(access) = world.access().await else { return };
    let now = switchboard_exchange::Clock::now(&*clock());
    access.has_live_keys(now);
    access.authenticate("sb_0123456789ab_0123456789abcdef", now);
    if let Ok(keys) = access.list().await {
        let json = serde_json::to_string(&keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>());
        json.expect("names of keys can be written");
    }
}

async fn schedules(records: &str) {
    const LIST: &str = r#"{"status":"all","limit":1000}"#;
    let journal = Arc::new(MemoryJournal::new());
    let shard = Shard::all().next().expect("there are streams of schedules");
    fill(&journal, shard.stream().as_str(), records).await;
    let options =
        Options { snapshot_every: 1, snapshot_bytes: 1, snapshot_on_leave: 1, ..Options::default() };
    let world = World::over(journal.clone(), options.clone());
    let Some(listed) = look(&world, "schedule_list", LIST).await else { return };
    let first = &listed["schedules"][0]["id"];
    for tool in ["schedule_pause", "schedule_resume", "schedule_run_now", "schedule_get", "schedule_cancel"] {
        look(&world, tool, &json!({ "id": first }).to_string()).await;
    }
    let before = look(&world, "schedule_list", LIST).await;
    world.schedules.exchange().stop().await;
    let again = World::over(journal, options);
    let after = look(&again, "schedule_list", LIST).await;
    assert_eq!(before, after, "schedules changed by being read again");
    // Everything that is due comes due, and is delivered.
    tokio::time::advance(Duration::from_hours(24 * 30)).await;
    if again.schedules.start().await.is_ok() {
        look(&again, "schedule_list", LIST).await;
        again.schedules.stop(Duration::from_mins(1)).await;
    }
}

/// What the tools show of a project.
const LOOKS: [(&str, &str); 6] = [
    ("agent_list", "{}"),
    ("todo_list", "{}"),
    ("lock_list", "{}"),
    ("interface_list", "{}"),
    ("change_list", r#"{"limit":100}"#),
    ("get_all_todos", "{}"),
];

async fn project(records: &str) {
    let journal = Arc::new(MemoryJournal::new());
    fill(&journal, &format!("{}{PROJECT}", Coordination::STREAMS), records).await;
    // A snapshot after every entry: what is written now must be legible again.
    let options =
        Options { snapshot_every: 1, snapshot_bytes: 1, snapshot_on_leave: 1, ..Options::default() };
    let world = World::over(journal.clone(), options.clone());
    if look(&world, "agent_list", "{}").await.is_none() {
        return;
    }
    for (tool, arguments) in [
        ("agent_register", r#"{"session":"ada"}"#),
        ("todo_add", r#"{"session":"ada","text":"x"}"#),
        ("lock_acquire", r#"{"session":"ada","path":"src/**","wait_seconds":1}"#),
        ("message_send", r#"{"session":"ada","text":"x"}"#),
        ("message_read", r#"{"session":"ada"}"#),
        ("interface_register", r#"{"session":"ada","name":"X","definition":"x"}"#),
    ] {
        look(&world, tool, arguments).await;
    }
    let before = looks(&world).await;
    world.coordination.exchange().stop().await;
    let again = World::over(journal, options);
    let after = looks(&again).await;
    assert_eq!(before, after, "the project changed by being read again");
    // Everything that is due comes due.
    tokio::time::advance(Duration::from_hours(24 * 30)).await;
    look(&again, "agent_list", "{}").await;
}

async fn looks(world: &World) -> Vec<Option<Value>> {
    let mut seen = Vec::new();
    for (tool, arguments) in LOOKS {
        seen.push(look(world, tool, arguments).await);
    }
    seen
}

/// What a tool answers; none if it was refused, which is right for a stream that cannot be understood.
async fn look(world: &World, tool: &str, arguments: &str) -> Option<Value> {
    let mut arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    arguments.extend(["project", "project_id"].map(|name| (name.to_owned(), json!(PROJECT))));
    let call = world.registry.call(&View::ALL, tool, arguments, context());
    let answer = tokio::time::timeout(Duration::from_hours(1), call).await;
    let output = answer.unwrap_or_else(|_| panic!("{tool} was not answered")).expect("the tool is there");
    let value = serde_json::from_str(&output.text).unwrap_or_else(|_| panic!("{tool}: {}", output.text));
    (!output.is_error).then_some(value)
}

async fn fill(journal: &MemoryJournal, stream: &str, records: &str) {
    let stream = StreamId::new(stream).expect("a short name");
    let mut seq = Seq::START;
    for line in records.lines().take(MOST_LINES) {
        if let Some(state) = line.strip_prefix('=') {
            let snapshot = Snapshot { seq, state: state.into() };
            journal.save_snapshot(&stream, snapshot).await.expect("memory takes a snapshot");
        } else {
            let payload = Payload::new(line).expect("a line is short");
            seq = journal.append(&stream, seq, payload).await.expect("memory takes an entry");
        }
    }
}
