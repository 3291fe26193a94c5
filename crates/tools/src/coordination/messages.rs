//! `message_send`, `message_read`, `message_status`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    Coordination, Letter, LetterKind, MessageStatus, Name, ReadMessages, SendMessage,
};

use super::answer::Failure;
use super::tool::{Call, in_project, tool};
use crate::input::{BadArguments, NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            "message_send",
            "Send message",
            "Tell some agents something, or all of them.",
            Annotations::WRITES,
            send,
        ),
        tool(
            coordination,
            "message_read",
            "Read messages",
            "Read your messages, questions and late answers, oldest first.",
            Annotations::WRITES,
            read,
        ),
        tool(
            coordination,
            "message_status",
            "Message status",
            "What became of messages and questions you sent: stored, delivered, read, answered.",
            Annotations::READS,
            status,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SendInput {
    project: NameParam,
    session: NameParam,
    /// Sessions; default: all others
    #[serde(default)]
    to: Option<Vec<NameParam>>,
    /// info, warning, help_needed; default: info
    #[serde(default)]
    r#type: Option<NameParam>,
    text: TextParam,
}

/// The most addressees of one message, and the most ids in one call.
const MOST_NAMED: usize = 1_000;

async fn send(call: Call, input: SendInput) -> Result<Value, Failure> {
    if input.to.as_ref().is_some_and(|to| to.len() > MOST_NAMED) {
        return Err(
            BadArguments::invalid("to", format_args!("must name at most {MOST_NAMED} sessions")).into()
        );
    }
    let message_type = match input.r#type {
        Some(word) => word.0,
        None => Name::new("info").map_err(|why| BadArguments::invalid("type", why))?,
    };
    let to = input.to.map(|to| to.into_iter().map(|name| name.0).collect());
    let sent =
        call.send(SendMessage { session: input.session.0, to, message_type, content: input.text.0 }).await?;
    Ok(json!({"id": sent.id.map(|id| id.to_string()), "recipients": sent.recipients}))
}

#[derive(Deserialize, JsonSchema)]
struct ReadInput {
    project: NameParam,
    session: NameParam,
    /// At most so many, 1-1000
    #[serde(default = "fifty")]
    limit: i64,
    /// Keep them in the inbox until acknowledged
    #[serde(default)]
    keep: bool,
    /// Ids kept earlier that you are done with
    #[serde(default)]
    acknowledge: Vec<NameParam>,
}

const fn fifty() -> i64 {
    50
}

fn limit(given: i64) -> Result<usize, BadArguments> {
    usize::try_from(given)
        .ok()
        .filter(|limit| (1..=MOST_NAMED).contains(limit))
        .ok_or_else(|| BadArguments::invalid("limit", format_args!("must be 1 to {MOST_NAMED}")))
}

async fn read(call: Call, input: ReadInput) -> Result<Value, Failure> {
    if input.acknowledge.len() > MOST_NAMED {
        return Err(
            BadArguments::invalid("acknowledge", format_args!("must hold at most {MOST_NAMED} ids")).into()
        );
    }
    let command = ReadMessages {
        session: input.session.0,
        limit: limit(input.limit)?,
        keep: input.keep,
        acknowledge: input.acknowledge.iter().map(|id| id.0.as_str().to_owned()).collect(),
    };
    let read = call.send(command).await?;
    let messages: Vec<Value> = read.letters.iter().map(shown).collect();
    Ok(json!({"messages": messages, "more": read.more}))
}

fn shown(letter: &Letter) -> Value {
    let mut shown = json!({"id": letter.id, "from": letter.from});
    let particular = match &letter.kind {
        LetterKind::Note { message_type, broadcast } => {
            json!({"kind": "message", "type": message_type, "to_all": broadcast})
        }
        LetterKind::Question { question_type, requires_response } => {
            json!({"kind": "question", "type": question_type, "answer_needed": requires_response})
        }
        LetterKind::Response { response_to } => json!({"kind": "answer", "question": response_to}),
        LetterKind::LockGranted { ticket, path, token, claim_by } => json!({
            "kind": "lock_granted",
            "ticket": ticket.to_string(),
            "path": path,
            "token": token,
            "claim_by": claim_by,
            "next": "call lock_wait with this ticket to take it",
        }),
        LetterKind::Notice { event } => json!({"kind": "notice", "type": event}),
    };
    if let (Value::Object(shown), Value::Object(particular)) = (&mut shown, particular) {
        shown.extend(particular);
        if !matches!(letter.kind, LetterKind::LockGranted { .. }) {
            shown.insert("text".to_owned(), json!(letter.content));
        }
        shown.insert("sent_at".to_owned(), json!(letter.sent_at));
        if letter.delivered_before {
            shown.insert("delivered_before".to_owned(), true.into());
        }
    }
    shown
}

#[derive(Deserialize, JsonSchema)]
struct StatusInput {
    project: NameParam,
    session: NameParam,
    /// Only this message
    #[serde(default)]
    id: Option<NameParam>,
    /// At most so many, newest first, 1-1000
    #[serde(default = "twenty")]
    limit: i64,
}

const fn twenty() -> i64 {
    20
}

async fn status(call: Call, input: StatusInput) -> Result<Value, Failure> {
    let command = MessageStatus {
        session: input.session.0,
        id: input.id.map(|id| id.0.as_str().to_owned()),
        limit: limit(input.limit)?,
    };
    let deliveries = call.send(command).await?;
    let shown = deliveries.iter().map(|delivery| {
        json!({
            "id": delivery.id.to_string(),
            "kind": if delivery.is_question { "question" } else { "message" },
            "stored_at": delivery.stored_at,
            "to": delivery.receipts,
            "answered_at": delivery.answered_at,
            "answer_delivered_at": delivery.answer_delivered_at,
        })
    });
    Ok(json!({"messages": shown.collect::<Vec<_>>()}))
}

in_project!(SendInput, ReadInput, StatusInput);
