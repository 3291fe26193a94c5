//! `switchboard schedule`

mod show;
mod wish;

use ::http::Method;
use clap::ValueEnum;
use serde_json::{Value, json};

use self::wish::{Changes, Policies, Target, Timing};
use crate::cli::{self, block_on};
use crate::http::{Http, escape};
use crate::{Failure, output, running};

/// Make, list and steer schedules: wake-up calls for agents, inboxes, topics, webhooks and tools.
///
/// Durations are written as `90s`, `5m`, `1h30m` or `2 days`; times as `in 20 minutes`, `2026-03-29 09:00` on the clock of
/// the time zone, or with an offset, `2026-03-29T09:00:00Z`.
///
/// Example: `switchboard schedule create inbox:shop/ada --cron '30 9 * * MON-FRI' --message 'Rebase and run the tests'`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// As JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a schedule, and show when it is due.
    Create {
        /// What it calls: `topic:NAME`, `inbox:PROJECT/SESSION`, `letta:AGENT`, `webhook:URL` or `tool:NAME`.
        target: Target,
        /// What it says: a text, or JSON, such as the arguments of a tool. `-` reads it from standard input.
        #[arg(long, short, value_name = "TEXT|JSON|-")]
        message: Option<String>,
        /// A name for people.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        timing: Timing,
        #[command(flatten)]
        policies: Policies,
        /// Make nothing; only show when it would be due.
        #[arg(long)]
        dry_run: bool,
    },
    /// Show when a timing is due, and where daylight saving moves it.
    Preview {
        #[command(flatten)]
        timing: Timing,
        /// How many due times.
        #[arg(long, short = 'n', default_value_t = 10)]
        count: u32,
    },
    /// List the schedules, whoever made them.
    List {
        /// Also those that are over.
        #[arg(long)]
        all: bool,
        /// Only those that call this kind of target.
        #[arg(long)]
        kind: Option<String>,
        /// Only those that call this destination.
        #[arg(long)]
        to: Option<String>,
    },
    /// Show a schedule, when it is due next, and what became of its latest due times.
    Get {
        /// Its number.
        id: u64,
        /// How many past occurrences.
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        history: u32,
    },
    /// Change a schedule; what is not said stays. Its target cannot be changed.
    Update {
        /// Its number.
        id: u64,
        #[command(flatten)]
        changes: Changes,
    },
    /// Let nothing be due until it is resumed.
    Pause {
        /// Its number.
        id: u64,
    },
    /// Let a paused schedule go on. Times that passed meanwhile are skipped.
    Resume {
        /// Its number.
        id: u64,
    },
    /// Call its target once, now, beside its timing.
    RunNow {
        /// Its number.
        id: u64,
        /// How many seconds to wait for what comes of it, at most 45.
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        wait: u32,
    },
    /// End a schedule for good. It is kept for a while, to be looked at.
    Cancel {
        /// Its number.
        id: u64,
    },
    /// End a schedule and forget it with its history.
    Delete {
        /// Its number.
        id: u64,
    },
    /// Tell what became of the latest due times of all schedules.
    Occurrences {
        /// How many at most.
        #[arg(long, value_name = "COUNT", default_value_t = 50)]
        limit: u32,
        /// Only those that came to this.
        #[arg(long)]
        fate: Option<Fate>,
    },
}

/// What can become of a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fate {
    Delivered,
    Skipped,
    Dead,
}

pub(crate) fn run(context: &cli::Context, arguments: Args) -> Result<(), Failure> {
    let config = context.options()?.config;
    let Args { command, json } = arguments;
    block_on(async {
        let http = running::server(&config)?;
        act(&http, command, json).await
    })
}

async fn act(http: &Http, command: Command, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create { target, message, name, timing, policies, dry_run } => {
            let wish = wish::create(&target, message, name, &timing, policies)?;
            if dry_run {
                return preview(http, &timing, 10, json).await;
            }
            let made = http.ask(Method::POST, "/api/schedules", Some(&wish)).await?;
            show::or_json(&made, json, show::made);
        }
        Command::Preview { timing, count } => preview(http, &timing, count, json).await?,
        Command::List { all, kind, to } => {
            let schedules = list(http, all, kind.as_deref(), to.as_deref()).await?;
            show::or_json(&schedules, json, show::list);
        }
        Command::Get { id, history } => {
            let path = format!("/api/schedules/{id}?history={history}");
            show::or_json(&http.ask(Method::GET, &path, None).await?, json, show::whole);
        }
        Command::Update { id, changes } => {
            let path = format!("/api/schedules/{id}");
            let changed = http.ask(Method::PATCH, &path, Some(&wish::update(changes)?)).await?;
            show::or_json(&changed, json, show::made);
        }
        Command::Pause { id } => steer(http, id, "pause", json).await?,
        Command::Resume { id } => steer(http, id, "resume", json).await?,
        Command::Cancel { id } => steer(http, id, "cancel", json).await?,
        Command::RunNow { id, wait } => run_now(http, id, wait, json).await?,
        Command::Delete { id } => {
            let deleted = http.ask(Method::DELETE, &format!("/api/schedules/{id}"), None).await?;
            show::or_json(&deleted, json, show::steered);
        }
        Command::Occurrences { limit, fate } => {
            let mut answer = http.ask(Method::GET, &format!("/api/occurrences?limit={limit}"), None).await?;
            if let (Some(fate), Some(all)) = (fate, answer["occurrences"].as_array_mut()) {
                let fate = fate.to_possible_value().map(|value| value.get_name().to_owned());
                all.retain(|occurrence| occurrence["fate"].as_str() == fate.as_deref());
            }
            show::or_json(&answer["occurrences"], json, show::occurrences);
        }
    }
    Ok(())
}

async fn preview(http: &Http, timing: &Timing, count: u32, json: bool) -> Result<(), Failure> {
    let mut wish = timing.as_json();
    wish["count"] = count.into();
    let preview = http.ask(Method::POST, "/api/schedules/preview", Some(&wish)).await?;
    show::or_json(&preview, json, show::preview);
    Ok(())
}

/// All pages of the list.
async fn list(http: &Http, all: bool, kind: Option<&str>, to: Option<&str>) -> Result<Value, Failure> {
    let mut schedules = Vec::new();
    let mut after = None::<u64>;
    loop {
        let mut path = "/api/schedules?limit=1000".to_owned();
        if all {
            path.push_str("&status=all");
        }
        for (name, value) in [("kind", kind), ("to", to)] {
            if let Some(value) = value {
                path = format!("{path}&{name}={}", escape(value));
            }
        }
        if let Some(after) = after {
            path = format!("{path}&after={after}");
        }
        let mut page = http.ask(Method::GET, &path, None).await?;
        if let Some(page) = page["schedules"].as_array_mut() {
            schedules.append(page);
        }
        after = page["next"].as_u64();
        if after.is_none() {
            return Ok(json!(schedules));
        }
    }
}

async fn steer(http: &Http, id: u64, how: &str, json: bool) -> Result<(), Failure> {
    let answer = http.ask(Method::POST, &format!("/api/schedules/{id}/{how}"), None).await?;
    show::or_json(answer.get("schedule").unwrap_or(&answer), json, show::steered);
    Ok(())
}

async fn run_now(http: &Http, id: u64, wait: u32, json: bool) -> Result<(), Failure> {
    let path = format!("/api/schedules/{id}/run?wait_seconds={wait}");
    let ran = http.ask(Method::POST, &path, None).await?;
    show::or_json(&ran, json, show::ran);
    match ran["occurrence"]["fate"].as_str() {
        None | Some("delivered") => Ok(()),
        Some(fate) => Err(Failure::failed(format!("schedule {id} was run, and is {fate}"))
            .hint(format!("`switchboard schedule get {id}` shows why"))),
    }
}

/// Writes a line that is no result.
fn note(text: &str) {
    output::note(text);
}
