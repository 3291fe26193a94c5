//! `switchboard import`

mod promptyoself;

use std::path::PathBuf;

use ::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_schedule::Message;

use self::promptyoself::{Found, Row};
use crate::cli::{self, block_on};
use crate::http::Http;
use crate::{Failure, output, running};

/// How many schedules go with one request. The server takes no more.
const AT_ONCE: usize = 1_000;

/// How many bytes of prompts go with one request, unless a single one is longer.
const BYTES_AT_ONCE: usize = 1 << 20;

/// Take over what a replaced system has kept, into the running server.
///
/// Only shows what would be taken over, and what not and why, unless `--apply` is given. Importing again takes over only what
/// is new since.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    source: Source,
    /// As JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Source {
    /// Take over the active prompts of PromptYoSelf.
    ///
    /// Its database is only read, and may be in use. Times are read as UTC. Each prompt keeps its next due time and how often
    /// it was delivered, and gets a new number.
    Promptyoself {
        /// Its database, as in PROMPTYOSELF_DB: `promptyoself.db`, or `unified.sqlite3` in newer versions.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Really take them over.
        #[arg(long)]
        apply: bool,
    },
}

pub(crate) fn run(context: &cli::Context, arguments: Args) -> Result<(), Failure> {
    let config = context.options()?.config;
    let Args { source: Source::Promptyoself { file, apply }, json } = arguments;
    let found = promptyoself::read(&file)?;
    block_on(async {
        let http = running::server(&config)?;
        let outcomes = import(&http, &found.rows, apply).await?;
        show(&found, &outcomes, apply, json);
        let refused = outcomes.iter().filter(|outcome| outcome.is_refused()).count();
        if apply && refused > 0 {
            let left = format!("{} not imported: the list says why", these(refused));
            return Err(Failure::failed(left).hint("make them anew with `switchboard schedule create`"));
        }
        Ok(())
    })
}

/// What becomes of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Outcome {
    /// It is here now.
    Imported { id: u64 },
    /// It would be imported.
    New,
    /// It was imported before.
    ImportedBefore { id: u64 },
    /// It cannot be kept here.
    Refused { why: String },
}

impl Outcome {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// As it stands in the list.
    fn text(&self) -> String {
        match self {
            Self::Imported { id } => format!("imported as {id}"),
            Self::New => "new".to_owned(),
            Self::ImportedBefore { id } => format!("imported before, as {id}"),
            Self::Refused { why } => format!("not imported: {why}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Imported { id } => json!({"outcome": "imported", "schedule": id}),
            Self::New => json!({"outcome": "new"}),
            Self::ImportedBefore { id } => json!({"outcome": "imported_before", "schedule": id}),
            Self::Refused { why } => json!({"outcome": "refused", "why": why}),
        }
    }
}

/// What becomes of each row, in their order.
async fn import(http: &Http, rows: &[Row], apply: bool) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    let mut wishes: Vec<(usize, Value)> = Vec::new();
    let mut bytes = 0;
    for (place, row) in rows.iter().enumerate() {
        let wish = match &row.wish {
            Ok(wish) if row.prompt.len() <= Message::MAX_BYTES => wish.clone(),
            Ok(_) => {
                let why =
                    format!("the prompt has {} bytes, the most is {}", row.prompt.len(), Message::MAX_BYTES);
                outcomes.push(Some(Outcome::Refused { why }));
                continue;
            }
            Err(why) => {
                outcomes.push(Some(Outcome::Refused { why: why.clone() }));
                continue;
            }
        };
        outcomes.push(None);
        if wishes.len() == AT_ONCE || (bytes + row.prompt.len() > BYTES_AT_ONCE && !wishes.is_empty()) {
            send(http, std::mem::take(&mut wishes), apply, &mut outcomes).await?;
            bytes = 0;
        }
        bytes += row.prompt.len();
        wishes.push((place, wish));
    }
    // Also without any, so that whoever has nothing to import learns whether a server is there.
    send(http, wishes, apply, &mut outcomes).await?;
    Ok(outcomes.into_iter().flatten().collect())
}

async fn send(
    http: &Http,
    wishes: Vec<(usize, Value)>,
    apply: bool,
    outcomes: &mut [Option<Outcome>],
) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Answer {
        schedules: Vec<Outcome>,
    }
    let (places, wishes): (Vec<_>, Vec<_>) = wishes.into_iter().unzip();
    let body = json!({"schedules": wishes, "apply": apply});
    let answer = http.ask(Method::POST, "/api/schedules/import", Some(&body)).await?;
    let answer = Answer::deserialize(&answer).ok().filter(|answer| answer.schedules.len() == places.len());
    let answer = answer.ok_or_else(|| {
        Failure::failed("the server's answer cannot be understood")
            .hint("the server may be of another version: `switchboard status` tells")
    })?;
    for (place, outcome) in places.into_iter().zip(answer.schedules) {
        if let Some(slot) = outcomes.get_mut(place) {
            *slot = Some(outcome);
        }
    }
    Ok(())
}

fn show(found: &Found, outcomes: &[Outcome], apply: bool, as_json: bool) {
    let both = || found.rows.iter().zip(outcomes);
    if as_json {
        let schedules: Vec<Value> = both()
            .map(|(row, outcome)| {
                let mut shown = outcome.json();
                shown["row"] = json!(row.id);
                shown["agent_id"] = json!(row.agent);
                shown["prompt"] = json!(row.prompt);
                shown["schedule_type"] = json!(row.kind);
                shown["schedule_value"] = json!(row.value);
                shown["next_run"] = json!(row.next);
                shown
            })
            .collect();
        output::json(&json!({
            "table": found.table,
            "applied": apply,
            "schedules": schedules,
            "inactive": found.inactive,
            "without_agent": found.without_agent,
        }));
        return;
    }
    if !found.rows.is_empty() {
        let mut table = output::Table::default();
        table.row(["ROW", "AGENT", "WHEN", "NEXT (UTC)", "PROMPT", "OUTCOME"].map(str::to_owned));
        for (row, outcome) in both() {
            table.row([
                row.id.to_string(),
                row.agent.clone(),
                format!("{} {}", row.kind, row.value),
                row.next.clone(),
                beginning(&row.prompt),
                outcome.text(),
            ]);
        }
        output::text(table);
    }
    output::note(summary(found, outcomes, apply));
}

/// The first words of a prompt, on one line.
fn beginning(prompt: &str) -> String {
    const MOST: usize = 32;
    let line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What all of it comes to, and what to do next.
fn summary(found: &Found, outcomes: &[Outcome], apply: bool) -> String {
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    let new = count(|outcome| matches!(outcome, Outcome::Imported { .. } | Outcome::New));
    let before = count(|outcome| matches!(outcome, Outcome::ImportedBefore { .. }));
    let mut parts = vec![format!("{new} {}", if apply { "imported" } else { "to import" })];
    let others = [
        (before, "imported before"),
        (count(Outcome::is_refused), "not to be kept here"),
        (found.inactive, "over or cancelled, left out"),
        (found.without_agent, "for no agent, left out"),
        (found.older, "in the older table 'schedules', which that version does not deliver either, left out"),
    ];
    parts.extend(
        others.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    let next = match (apply, new) {
        (false, 0) => "There is nothing to do.",
        (false, _) => {
            "Nothing was changed: add `--apply` to import. What is due already is then delivered at once."
        }
        (true, 0) => "Nothing was changed.",
        (true, _) => "Stop PromptYoSelf now, if it still runs: it would deliver them, too.",
    };
    format!("{}.\n{next}", parts.join("; "))
}

fn these(count: usize) -> String {
    if count == 1 { "1 schedule was".to_owned() } else { format!("{count} schedules were") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_answers_is_understood() {
        let answer = json!([
            {"outcome": "imported", "id": 7},
            {"outcome": "new"},
            {"outcome": "imported_before", "id": 8},
            {"outcome": "refused", "why": "no"},
        ]);
        let outcomes: Vec<Outcome> = serde_json::from_value(answer).unwrap();
        let texts: Vec<_> = outcomes.iter().map(Outcome::text).collect();
        assert_eq!(texts, ["imported as 7", "new", "imported before, as 8", "not imported: no"]);
    }

    #[test]
    fn the_beginning_of_a_prompt_is_one_line_and_ends_with_a_whole_character() {
        assert_eq!(beginning("a\n  b\tc"), "a b c");
        assert_eq!(beginning(&"ü".repeat(40)), format!("{}…", "ü".repeat(32)));
    }
}
