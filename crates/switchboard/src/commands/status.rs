//! `switchboard status`

use ::http::Method;
use serde_json::{Value, json};

use crate::cli::{self, block_on};
use crate::config::Config;
use crate::http::{Http, refusal};
use crate::output::{self, Style};
use crate::running::{Running, no_server};
use crate::{Exit, Failure};

/// Tell what the running server does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    let config = context.options()?.config;
    block_on(async {
        let (http, running) = reach(&config)?;
        let (code, health) = http.json(Method::GET, "/api/health", None).await?;
        if health.get("status").is_none() {
            return Err(refusal(code, &health));
        }
        let report = report(&http, running.as_ref(), &health);
        if arguments.json {
            output::json(&report);
        } else {
            show(&report);
        }
        match health["status"].as_str() {
            Some("ok") => Ok(()),
            _ => Err(Failure::new(Exit::Failed, "the server does not work as it should")
                .hint("its log says more; `switchboard doctor` looks for the cause")),
        }
    })
}

fn reach(config: &Config) -> Result<(Http, Option<Running>), Failure> {
    if let Some(url) = &config.client.url {
        return Ok((Http::new(url, config.client.key.as_deref())?, None));
    }
    let data_dir = config.data_dir()?;
    let running = Running::find(&data_dir)?.ok_or_else(|| no_server(&data_dir))?;
    Ok((running.http()?, Some(running)))
}

fn report(http: &Http, running: Option<&Running>, health: &Value) -> Value {
    let mut report = json!({ "url": http.base(), "health": health });
    if let Some(running) = running {
        report["pid"] = running.pid.into();
        report["version"] = running.version.clone().into();
        report["listeners"] = json!(running.listeners);
    }
    report
}

fn show(report: &Value) {
    let style = Style::stdout();
    let health = &report["health"];
    let status = health["status"].as_str().unwrap_or("unknown");
    let status = if status == "ok" { style.green(status) } else { style.red(status) };
    let mut table = output::Table::default();
    table.row(["status".to_owned(), status]);
    table.row(["server".to_owned(), text(&report["url"])]);
    if !report["pid"].is_null() {
        table.row(["process".to_owned(), text(&report["pid"])]);
    }
    for (name, value) in health.as_object().into_iter().flatten().filter(|(name, _)| *name != "status") {
        table.row([name.clone(), text(value)]);
    }
    for listener in report["listeners"].as_array().into_iter().flatten() {
        let line = format!("{} shows {}", text(&listener["address"]), text(&listener["toolset"]));
        table.row(["listens".to_owned(), line]);
    }
    output::text(table);
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name} {}", text(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}
