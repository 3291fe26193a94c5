//! Schedules and occurrences, for people to read.

use serde_json::Value;

use super::note;
use crate::output::{self, Style, Table};

/// Shows an answer: as JSON, or by `show`.
pub(super) fn or_json(answer: &Value, json: bool, show: impl FnOnce(&Value)) {
    if json { output::json(answer) } else { show(answer) }
}

/// A schedule that was made or changed, and when it is due.
pub(super) fn made(answer: &Value) {
    let schedule = &answer["schedule"];
    output::line(format_args!("Schedule {} calls {} {}.", schedule["id"], target(schedule), when(schedule)));
    upcoming(&answer["upcoming"]);
}

/// When a timing is due.
pub(super) fn preview(answer: &Value) {
    if answer["upcoming"].as_array().is_none_or(Vec::is_empty) {
        note("It is never due.");
        return;
    }
    note(&format!("Local times are of {}.", text(&answer["time_zone"])));
    upcoming(&answer["upcoming"]);
}

fn upcoming(due: &Value) {
    let mut table = Table::default();
    for due in due.as_array().into_iter().flatten() {
        table.row(["due".to_owned(), text(&due["utc"]), text(&due["local"]), text(&due["note"])]);
    }
    output::text(table);
}

/// All schedules.
pub(super) fn list(schedules: &Value) {
    let schedules = schedules.as_array().map(Vec::as_slice).unwrap_or_default();
    if schedules.is_empty() {
        note("There are no schedules. `switchboard schedule create --help` says how to make one.");
        return;
    }
    let mut table = Table::default();
    table.row(["ID", "STATUS", "NEXT", "WHEN", "CALLS", "NAME"].map(str::to_owned));
    for schedule in schedules {
        table.row([
            schedule["id"].to_string(),
            text(&schedule["status"]),
            text(&schedule["next"]),
            when(schedule),
            target(schedule),
            text(&schedule["name"]),
        ]);
    }
    output::text(table);
}

/// A schedule with all that is known of it.
pub(super) fn whole(answer: &Value) {
    let schedule = &answer["schedule"];
    let mut table = Table::default();
    for (name, value) in schedule.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "open" => continue,
            "target" => target(schedule),
            _ => text(value),
        };
        table.row([name.clone(), value]);
    }
    output::text(table);
    upcoming(&answer["upcoming"]);
    open(&schedule["open"]);
    occurrences(&answer["occurrences"]);
}

fn open(open: &Value) {
    let mut table = Table::default();
    for one in open.as_array().into_iter().flatten() {
        let attempts = format!("attempt {}", one["attempts"]);
        table.row([text(&one["state"]), text(&one["due"]), attempts, text(&one["error"])]);
    }
    output::text(table);
}

/// What became of due times.
pub(super) fn occurrences(occurrences: &Value) {
    let occurrences = occurrences.as_array().map(Vec::as_slice).unwrap_or_default();
    if occurrences.is_empty() {
        note("Nothing was due yet that is still remembered.");
        return;
    }
    let style = Style::stdout();
    let mut table = Table::default();
    table.row(["SCHEDULE", "DUE", "FATE", "AT", "ATTEMPTS", "WHY"].map(str::to_owned));
    for one in occurrences {
        let fate = match one["fate"].as_str() {
            Some("delivered") => style.green("delivered"),
            Some("dead") => style.red("dead"),
            Some(other) => style.yellow(other),
            None => String::new(),
        };
        table.row([
            one["schedule"].to_string(),
            text(&one["due"]),
            fate,
            text(&one["at"]),
            one["attempts"].to_string(),
            why(one),
        ]);
    }
    output::text(table);
}

fn why(occurrence: &Value) -> String {
    let reason = ["error", "why", "reply"].into_iter().find_map(|name| occurrence.get(name));
    let reason = reason.map(text).unwrap_or_default();
    match occurrence["count"].as_u64() {
        Some(count) if count > 1 => {
            format!("{reason}, {count} times until {}", text(&occurrence["last_due"]))
        }
        _ => reason,
    }
}

/// A schedule that was paused, resumed or ended.
pub(super) fn steered(schedule: &Value) {
    output::line(format_args!("Schedule {} is {}.", schedule["id"], text(&schedule["status"])));
}

/// What came of a run by hand.
pub(super) fn ran(answer: &Value) {
    if answer["over"] == Value::Bool(true) {
        occurrences(&Value::Array(vec![answer["occurrence"].clone()]));
    } else {
        output::line(format_args!(
            "Schedule {} runs. `switchboard schedule get {}` shows what came of it.",
            answer["id"], answer["id"]
        ));
    }
}

fn target(schedule: &Value) -> String {
    format!("{}:{}", text(&schedule["target"]["kind"]), text(&schedule["target"]["to"]))
}

fn when(schedule: &Value) -> String {
    let said = |name: &str| schedule[name].as_str().map(str::to_owned);
    if let Some(cron) = said("cron") {
        return format!("{cron} ({})", text(&schedule["time_zone"]));
    }
    match (said("every"), said("at")) {
        (Some(every), _) => format!("every {every}"),
        (None, Some(at)) => format!("at {at}"),
        (None, None) => String::new(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
