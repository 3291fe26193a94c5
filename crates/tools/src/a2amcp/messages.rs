//! `query_agent`, `check_messages`, `respond_to_query`, `broadcast_message` (contract §3.3).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    AnswerQuestion, Ask, Collected, Coordination, Letter, LetterKind, Name, Patience, SendMessage,
    TakeMessages,
};
use switchboard_exchange::SignedDuration;

use super::answer::{Failure, seconds};
use super::tool::{Call, Spec, in_project, tool};
use crate::input::{BadArguments, NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            Spec {
                name: "query_agent",
                title: "Query agent",
                description: "Ask another agent a question and, by default, wait for the answer.",
                annotations: Annotations::WRITES,
                aliases: &[("from_session", "session_name"), ("to_session", "target_session")],
                may_be_absent: &[],
            },
            query,
        ),
        tool(
            coordination,
            Spec {
                name: "check_messages",
                title: "Check messages",
                description: "Your incoming messages. Clears the queue.",
                annotations: Annotations::WRITES,
                aliases: &[],
                may_be_absent: &[],
            },
            check,
        ),
        tool(
            coordination,
            Spec {
                name: "respond_to_query",
                title: "Respond to query",
                description: "Answer a query that another agent sent you.",
                annotations: Annotations::WRITES,
                aliases: &[("from_session", "session_name"), ("message_id", "query_id")],
                may_be_absent: &["to_session"],
            },
            respond,
        ),
        tool(
            coordination,
            Spec {
                name: "broadcast_message",
                title: "Broadcast message",
                description: "Send a message to all other agents.",
                annotations: Annotations::WRITES,
                aliases: &[("session_name", "from_session")],
                may_be_absent: &[],
            },
            broadcast,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the document's names")]
struct Query {
    /// Project identifier
    project_id: NameParam,
    /// Sender's session name
    from_session: NameParam,
    /// Target agent's session name
    to_session: NameParam,
    /// Type of query (interface, api, help, status)
    #[serde(default = "help")]
    #[schemars(default = "help_word")]
    query_type: NameParam,
    /// The question
    query: TextParam,
    /// Whether to wait
    #[serde(default = "yes")]
    wait_for_response: bool,
    /// Seconds to wait
    #[serde(default = "thirty")]
    timeout: i64,
}

const HELP: &str = "help";

fn help() -> NameParam {
    #[expect(clippy::expect_used, reason = "a constant within bounds")]
    NameParam(Name::new(HELP).expect("a short word is a name"))
}

fn help_word() -> &'static str {
    HELP
}

const fn yes() -> bool {
    true
}

const fn thirty() -> i64 {
    30
}

/// The longest a query waits, in seconds.
const LONGEST_WAIT: i64 = 3_600;

async fn query(call: Call, input: Query) -> Result<Value, Failure> {
    if input.timeout < 1 {
        return Err(BadArguments::invalid("timeout", "must be at least 1 second").into());
    }
    let seconds = input.timeout.min(LONGEST_WAIT);
    let to = input.to_session.0;
    let question = Ask {
        from: input.from_session.0,
        to: to.clone(),
        question_type: input.query_type.0,
        content: input.query.0,
        requires_response: input.wait_for_response,
        waits_until: None,
    };
    let patience = input.wait_for_response.then(|| {
        let waiting_for = format!("waiting for {to} to answer");
        patience(&call, SignedDuration::from_secs(seconds), waiting_for)
    });
    let asked =
        call.coordination.ask(&call.project, question, patience, call.context.command_id.clone()).await;
    let (id, collected) = asked.map_err(|error| call.refused(error))?;
    match collected {
        None => Ok(json!({"status": "sent", "message_id": id.to_string()})),
        Some(Collected::Answer { response, .. }) => Ok(json!({"status": "received", "response": response})),
        Some(Collected::Pending { .. }) => Err(Failure::Timeout { seconds, message_id: id.to_string(), to }),
    }
}

fn patience(call: &Call, time: SignedDuration, message: String) -> Patience {
    crate::waiting::patience(&call.context, time, message)
}

#[derive(Deserialize, JsonSchema)]
struct Check {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
}

async fn check(call: Call, input: Check) -> Result<Value, Failure> {
    let letters = call.send(TakeMessages { session: input.session_name.0 }).await?;
    Ok(Value::Array(letters.iter().map(queue_item).collect()))
}

fn queue_item(letter: &Letter) -> Value {
    let (id, from, at) = (&letter.id, &letter.from, seconds(letter.sent_at));
    match &letter.kind {
        LetterKind::Question { question_type, requires_response } => json!({
            "id": id,
            "from": from,
            "type": "query",
            "query_type": question_type,
            "content": letter.content,
            "timestamp": at,
            "requires_response": requires_response,
        }),
        LetterKind::Note { message_type, .. } => json!({
            "id": id,
            "from": from,
            "type": "broadcast",
            "message_type": message_type,
            "content": letter.content,
            "timestamp": at,
            "requires_response": false,
        }),
        LetterKind::Response { response_to } => json!({
            "id": id,
            "from": from,
            "type": "response",
            "response_to": response_to,
            "content": letter.content,
            "timestamp": at,
            "requires_response": false,
        }),
        LetterKind::Notice { event } => notice(id, from, event.as_str(), letter.content.as_str(), &at),
        // A catalogue without lines for locks has no word of its own for it; an agent in a line uses ours as well.
        LetterKind::LockGranted { ticket, path, token, .. } => {
            let content = format!("{path} is yours with token {token}: claim {ticket} with lock_wait");
            notice(id, from, "lock_granted", &content, &at)
        }
    }
}

fn notice(id: &str, from: &Name, event: &str, content: &str, at: &Value) -> Value {
    json!({
        "id": id,
        "from": from,
        "type": "event",
        "event": event,
        "content": content,
        "timestamp": at,
        "requires_response": false,
    })
}

#[derive(Deserialize, JsonSchema)]
struct Respond {
    /// Project identifier
    project_id: NameParam,
    /// Responder's session name
    from_session: NameParam,
    /// Original sender's session name
    #[schemars(with = "NameParam")]
    to_session: Option<NameParam>,
    /// Original message ID
    message_id: NameParam,
    /// Response content
    response: TextParam,
}

async fn respond(call: Call, input: Respond) -> Result<Value, Failure> {
    let command = AnswerQuestion {
        from: input.from_session.0,
        to: input.to_session.map(|to| to.0),
        id: input.message_id.0.as_str().to_owned(),
        response: input.response.0,
    };
    let asked_by = call.send(command).await?;
    Ok(json!({"status": "response_sent", "to": asked_by}))
}

#[derive(Deserialize, JsonSchema)]
struct Broadcast {
    /// Project identifier
    project_id: NameParam,
    /// Sender's session name
    session_name: NameParam,
    /// Type (info, warning, help_needed)
    message_type: NameParam,
    /// Message content
    content: TextParam,
}

async fn broadcast(call: Call, input: Broadcast) -> Result<Value, Failure> {
    let command = SendMessage {
        session: input.session_name.0,
        to: None,
        message_type: input.message_type.0,
        content: input.content.0,
    };
    let sent = call.send(command).await?;
    Ok(json!({"status": "broadcast_sent", "recipients": sent.recipients}))
}

in_project!(Query, Check, Respond, Broadcast);
