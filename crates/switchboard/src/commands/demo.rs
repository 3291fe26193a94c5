//! `switchboard demo`

mod agent;
mod stage;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use switchboard_exchange::{Clock as _, SystemClock};

use crate::background::Launch;
use crate::cli::{self, block_on};
use crate::config::{Flags, Inputs};
use crate::http::Http;
use crate::running::{self, Running};
use crate::{Failure, output};
use agent::Agent;
use stage::Stage;

/// How long the server of the demonstration may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Show in a few seconds what this is good for.
///
/// Three agents work side by side on a real server, over real MCP. Shown are what each calls, what it is answered, and
/// what happens meanwhile, live. The server is started for the purpose, on a directory that is removed at the end.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Use the server that runs already, with a project that nobody else uses.
    #[arg(long)]
    running: bool,
    /// Without pauses for reading.
    #[arg(long)]
    fast: bool,
    /// One JSON object per call.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    block_on(async {
        if arguments.running || context.options()?.config.client.url.is_some() {
            return play(&running::server(&context.options()?.config)?, arguments).await;
        }
        let dir = tempfile::Builder::new().prefix("switchboard-demo-").tempdir();
        let dir = dir.map_err(|error| Failure::failed(format!("cannot make a directory: {error}")))?;
        let server = Launch::new(dir.path(), &private(context.inputs(), dir.path())).find_or_start().await?;
        let played = match server.http() {
            Ok(http) => play(&http, arguments).await,
            Err(failure) => Err(failure),
        };
        stop(&server, dir.path()).await;
        played
    })
}

/// A server of our own listens on a free port, whatever else is configured.
fn private(inputs: &Inputs, dir: &std::path::Path) -> Inputs {
    let flags = [
        ("listen", "127.0.0.1:0".to_owned()),
        ("a2amcp.status_dir", dir.join("status").display().to_string()),
    ];
    Inputs {
        file: inputs.file.clone(),
        environment: inputs.environment.clone(),
        flags: inputs.flags.clone().and(Flags(flags.map(|(key, value)| (key, vec![value])).into())),
    }
}

async fn stop(server: &Running, dir: &std::path::Path) {
    let pid = i32::try_from(server.pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // If it is gone already, all the better.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let deadline = Instant::now() + STOP_TIMEOUT;
    while Instant::now() < deadline && server_is_there(dir) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn server_is_there(dir: &std::path::Path) -> bool {
    // The lock is the last thing that a server leaves.
    std::fs::File::open(dir.join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

async fn play(http: &Http, arguments: &Args) -> Result<(), Failure> {
    let began = SystemClock.now();
    let project = format!("demo-{}", began.as_millisecond());
    let mut stage = Stage::open(http, &project, arguments.fast, arguments.json).await?;
    stage.title(&format!("Three agents on one repository, at {}/mcp/coordination", http.base()));
    story(http, &project, &mut stage).await?;
    stage.curtain(&summary(began, &project, arguments.running));
    Ok(())
}

fn summary(began: Timestamp, project: &str, running: bool) -> String {
    let seconds = SystemClock.now().duration_since(began).as_secs_f64();
    let what_next = if running {
        format!("`switchboard events project/{project} --after 0` shows all of it again.")
    } else {
        "`switchboard serve` starts a server of your own and says what to paste into your agents.".to_owned()
    };
    format!("That took {seconds:.1} s. Every answer came after its events were on disk. {what_next}")
}

async fn story(http: &Http, project: &str, stage: &mut Stage) -> Result<(), Failure> {
    let ada = Agent::connect(http, project, "ada").await?;
    let ben = Agent::connect(http, project, "ben").await?;
    let cleo = Agent::connect(http, project, "cleo").await?;
    let file = "src/auth/login.rs";

    stage.scene("They say who they are and what they do.").await;
    for (agent, task) in
        [(&ada, "Limit failed logins"), (&ben, "Log every login"), (&cleo, "Document the API")]
    {
        let who = json!({"task": task, "branch": format!("feature/{}", agent.name()), "description": task});
        stage.call(agent, "agent_register", who).await?;
    }
    let todo = stage.call(&ada, "todo_add", json!({"text": "Count failures per address"})).await?;
    if let Some(id) = todo.get("id") {
        stage.call(&ada, "todo_update", json!({"id": id, "status": "in_progress"})).await?;
    }

    stage.scene("Ada takes the file that Ben wants, too. Only one of them gets it.").await;
    let wish = json!({"path": file, "description": "count failures"});
    let granted = stage.call(&ada, "lock_acquire", wish.clone()).await?;
    stage.call(&ben, "lock_acquire", wish.clone()).await?;

    stage.scene("Ben asks Ada, and waits. Ada finds the question, and answers.").await;
    let question = json!({"to": "ada", "text": "How long will you need login.rs?", "wait_seconds": 30});
    let asking = stage.begin(&ben, "question_ask", question);
    stage.until("question_asked").await?;
    let inbox = stage.call(&ada, "message_read", json!({})).await?;
    let id = find(&inbox, "id").unwrap_or_default();
    stage.call(&ada, "question_answer", json!({"id": id, "text": "Two minutes: I am nearly done."})).await?;
    stage.end(asking).await?;

    stage.scene("Cleo tells everybody, and Ada publishes a type that Cleo reads.").await;
    stage.call(&cleo, "message_send", json!({"text": "The API is frozen at noon."})).await?;
    let definition = "struct LoginAttempt { address: IpAddr, failures: u32 }";
    let interface = json!({"name": "LoginAttempt", "definition": definition, "file": file});
    stage.call(&ada, "interface_register", interface).await?;
    stage.call(&cleo, "interface_get", json!({"name": "LoginAttempt"})).await?;

    stage.scene("Ben stands in line for the file. He gets it the moment Ada is done, with the next fencing token.").await;
    let mut patient = wish;
    patient["wait_seconds"] = 30.into();
    let waiting = stage.begin(&ben, "lock_acquire", patient);
    stage.until("line_joined").await?;
    stage.call(&ada, "lock_release", json!({"path": file})).await?;
    stage.end(waiting).await?;

    stage.scene("Ada's old token is worth nothing now: what she might still write would be refused.").await;
    let mut check = json!({"path": file});
    if let Some(token) = find(&granted, "token") {
        check["token"] = token;
    }
    stage.call(&ada, "lock_check", check).await?;

    stage.scene("They leave. What they held is free.").await;
    for agent in [&ada, &ben, &cleo] {
        stage.call(agent, "agent_unregister", json!({})).await?;
    }
    for agent in [ada, ben, cleo] {
        agent.leave().await;
    }
    Ok(())
}

/// The first value called `name`, wherever it is.
fn find(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            fields.get(name).cloned().or_else(|| fields.values().find_map(|value| find(value, name)))
        }
        Value::Array(items) => items.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

/// Writes one line of the play.
fn say(text: impl std::fmt::Display) {
    output::line(text);
}
