//! How the play is shown: calls, answers, and the events between them.

use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use ::http::header::{ACCEPT, HeaderValue};
use futures::StreamExt as _;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::agent::Agent;
use super::say;
use crate::Failure;
use crate::commands::events::{Line, lines};
use crate::http::{Http, escape, refusal};
use crate::output::Style;

/// For reading one step, and for reading what a scene is about.
const STEP: Duration = Duration::from_millis(280);
const SCENE: Duration = Duration::from_millis(500);

/// How long the events of a step may come after its answer.
const AFTERWARDS: Duration = Duration::from_millis(60);

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The widest line of arguments or of an answer, in characters.
const WIDTH: usize = 150;

/// Where the play is shown.
pub(super) struct Stage {
    events: mpsc::UnboundedReceiver<Line>,
    style: Style,
    fast: bool,
    json: bool,
}

/// A call that is waited for later.
pub(super) struct Begun {
    agent: Arc<Agent>,
    tool: &'static str,
    arguments: Value,
    answer: JoinHandle<Result<(Value, bool), Failure>>,
}

impl Stage {
    /// Follows the project's events from its beginning.
    pub(super) async fn open(http: &Http, project: &str, fast: bool, json: bool) -> Result<Self, Failure> {
        let stream = escape(&format!("project/{project}"));
        let path = format!("/api/events?stream={stream}&after=0");
        let accept = [(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        let response = http.send(Method::GET, &path, &accept, Bytes::new()).await?;
        let status = response.status();
        if !status.is_success() {
            let body = http.read(response).await?;
            return Err(refusal(status, &serde_json::from_slice(&body).unwrap_or(Value::Null)));
        }
        let (sender, events) = mpsc::unbounded_channel();
        let following = http.events(response);
        tokio::spawn(async move {
            let mut following = std::pin::pin!(following);
            while let Some(Ok(event)) = following.next().await {
                let entry = serde_json::from_str(&event.data).unwrap_or(Value::Null);
                for line in lines(&entry) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Self { events, style: Style::stdout(), fast, json })
    }

    pub(super) fn title(&self, text: &str) {
        if !self.json {
            say(self.style.bold(text));
        }
    }

    pub(super) async fn scene(&self, text: &str) {
        if !self.json {
            say(format_args!("\n{}", self.style.bold(text)));
        }
        self.pause(SCENE).await;
    }

    pub(super) fn curtain(&self, text: &str) {
        self.title(&format!("\n{text}"));
    }

    /// Calls a tool and shows the call, the answer, and what happened.
    pub(super) async fn call(
        &mut self,
        agent: &Arc<Agent>,
        tool: &'static str,
        arguments: Value,
    ) -> Result<Value, Failure> {
        let begun = self.begin(agent, tool, arguments);
        self.end(begun).await
    }

    /// Shows a call and sends it off.
    pub(super) fn begin(&self, agent: &Arc<Agent>, tool: &'static str, arguments: Value) -> Begun {
        if !self.json {
            let shown = self.style.dim(clip(&arguments.to_string()));
            let name = self.style.yellow(format_args!("{:>4}", agent.name()));
            say(format_args!("{name} → {} {shown}", self.style.bold(tool)));
        }
        let arguments = agent.complete(tool, arguments);
        let (caller, sent) = (agent.clone(), arguments.clone());
        let answer = tokio::spawn(async move { caller.call(tool, &sent).await });
        Begun { agent: agent.clone(), tool, arguments, answer }
    }

    /// Waits for the answer to a call and shows it, and what happened meanwhile.
    pub(super) async fn end(&mut self, begun: Begun) -> Result<Value, Failure> {
        let Begun { agent, tool, arguments, answer } = begun;
        let answered =
            answer.await.map_err(|error| Failure::failed(format!("the call of {tool} broke: {error}")));
        let (answer, is_error) = answered??;
        let events = self.happened().await;
        if self.json {
            let events: Vec<_> = events.iter().map(|line| line.kind.clone()).collect();
            say(json!({
                "agent": agent.name(), "tool": tool, "arguments": arguments,
                "answer": answer, "is_error": is_error, "events": events,
            }));
        } else {
            let text = clip(&answer.to_string());
            let text = if is_error { self.style.red(text) } else { self.style.green(text) };
            let name = self.style.yellow(format_args!("{:>4}", agent.name()));
            say(format_args!("{name} ← {text}"));
            for line in &events {
                self.show(line);
            }
        }
        self.pause(STEP).await;
        Ok(answer)
    }

    /// Waits until an event of this kind happens.
    pub(super) async fn until(&mut self, kind: &str) -> Result<(), Failure> {
        loop {
            let Ok(Some(line)) = timeout(PATIENCE, self.events.recv()).await else {
                return Err(Failure::failed(format!("'{kind}' did not happen")));
            };
            let found = line.kind == kind;
            if !self.json {
                self.show(&line);
            }
            if found {
                self.pause(STEP).await;
                return Ok(());
            }
        }
    }

    async fn happened(&mut self) -> Vec<Line> {
        let mut events = Vec::new();
        while let Ok(Some(line)) = timeout(AFTERWARDS, self.events.recv()).await {
            events.push(line);
        }
        events
    }

    fn show(&self, line: &Line) {
        let head = self.style.cyan(format_args!("     · {} {}", line.seq, line.kind));
        say(format_args!("{head} {}", self.style.dim(clip(&line.rest))));
    }

    async fn pause(&self, time: Duration) {
        if !self.fast && !self.json {
            sleep(time).await;
        }
    }
}

fn clip(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    text.chars().take(WIDTH).chain(['…']).collect()
}
