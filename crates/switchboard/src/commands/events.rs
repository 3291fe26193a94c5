//! `switchboard events`

use std::time::Duration;

use ::http::Method;
use ::http::header::{ACCEPT, HeaderValue};
use futures::StreamExt as _;
use hyper::body::Bytes;
use serde_json::Value;

use crate::cli::{self, block_on};
use crate::http::{escape, refusal};
use crate::output::{self, Style};
use crate::{Failure, running};

/// How long after its end a stream is taken up again.
const RESUME_AFTER: Duration = Duration::from_millis(250);

/// Follow what happens in a stream, until interrupted.
///
/// Example: `switchboard events project/shop --after 0`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The stream, such as `project/shop`.
    stream: String,
    /// Begin after this entry: 0 for the beginning. Default: only what is new.
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// One JSON object per entry.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &cli::Context, arguments: Args) -> Result<(), Failure> {
    let config = context.options()?.config;
    let Args { stream, after, json } = arguments;
    block_on(async {
        let http = running::server(&config)?;
        let mut after = after;
        loop {
            let path = match after {
                Some(after) => format!("/api/events?stream={}&after={after}", escape(&stream)),
                None => format!("/api/events?stream={}", escape(&stream)),
            };
            let accept = [(ACCEPT, HeaderValue::from_static("text/event-stream"))];
            let response = http.send(Method::GET, &path, &accept, Bytes::new()).await?;
            let status = response.status();
            if !status.is_success() {
                let body = http.read(response).await?;
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                return Err(refusal(status, &body));
            }
            let mut events = std::pin::pin!(http.events(response));
            // A stream that ends or breaks is taken up again where it was; a server that is gone is an error.
            while let Some(Ok(event)) = events.next().await {
                if let Some(id) = event.id.as_deref().and_then(|id| id.parse().ok()) {
                    after = Some(id);
                }
                match event.event.as_deref() {
                    None | Some("entry") => show(&event.data, json),
                    Some(news) => say_news(news, &event.data),
                }
            }
            tokio::time::sleep(RESUME_AFTER).await;
        }
    })
}

/// Says what is no entry: that some are gone, or that the journal cannot be read.
fn say_news(news: &str, data: &str) {
    let data = serde_json::from_str::<Value>(data).unwrap_or_default();
    let message = data["error"]["message"].as_str().unwrap_or(news);
    output::note(format_args!("note: {message}"));
}

fn show(data: &str, json: bool) {
    match serde_json::from_str::<Value>(data) {
        Ok(entry) if !json => describe(&entry),
        _ => output::line(data),
    }
}

/// A line per event of an entry: its number, its time, its type, and the rest.
pub(crate) fn describe(entry: &Value) {
    let style = Style::stdout();
    for line in lines(entry) {
        output::line(format_args!(
            "{} {} {} {}",
            style.dim(format_args!("{:>6}", line.seq)),
            style.dim(&line.at),
            style.cyan(&line.kind),
            line.rest
        ));
    }
}

/// One event, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) at: String,
    pub(crate) kind: String,
    pub(crate) rest: String,
}

/// The events of an entry: `{"seq","at","events":[{"type",…}]}`, also with the last two in `entry` or `payload`.
pub(crate) fn lines(entry: &Value) -> Vec<Line> {
    let record = ["record", "entry", "payload"].iter().find_map(|name| entry.get(*name)).unwrap_or(entry);
    let seq = entry.get("seq").and_then(Value::as_u64).unwrap_or_default();
    let at = record.get("at").and_then(Value::as_str).unwrap_or_default();
    // The time of day, to the millisecond.
    let at = at.get(11..23).unwrap_or(at).to_owned();
    let events = record.get("events").and_then(Value::as_array).into_iter().flatten();
    events
        .map(|event| {
            let mut event = event.clone();
            let kind = event.as_object_mut().and_then(|fields| {
                fields.remove("at");
                fields.remove("type")
            });
            let kind = kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
            Line { seq, at: at.clone(), kind, rest: event.to_string() }
        })
        .collect()
}
