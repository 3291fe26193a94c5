//! `question_ask`, `question_wait`, `question_answer`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    AnswerQuestion, Ask, CollectAnswer, Collected, Coordination, Name, Otherwise,
};

use super::answer::Failure;
use super::tool::{Call, in_project, tool};
use crate::input::{BadArguments, NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            "question_ask",
            "Ask",
            "Ask an agent and wait up to wait_seconds. If it stays pending, question_wait goes on waiting; a late answer \
             also comes by message_read.",
            Annotations::WRITES,
            ask,
        ),
        tool(
            coordination,
            "question_wait",
            "Wait for answer",
            "Wait for the answer to a question you asked.",
            Annotations::WRITES,
            wait,
        ),
        tool(
            coordination,
            "question_answer",
            "Answer",
            "Answer a question that message_read gave you.",
            Annotations::WRITES,
            answer,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct AskInput {
    project: NameParam,
    session: NameParam,
    /// Session asked
    to: NameParam,
    text: TextParam,
    /// interface, api, help, status; default: help
    #[serde(default)]
    r#type: Option<NameParam>,
    /// 0-45
    #[serde(default = "thirty")]
    wait_seconds: i64,
}

const fn thirty() -> i64 {
    30
}

async fn ask(call: Call, input: AskInput) -> Result<Value, Failure> {
    let to = input.to.0;
    let question_type = match input.r#type {
        Some(word) => word.0,
        None => Name::new("help").map_err(|why| BadArguments::invalid("type", why))?,
    };
    let patience = call.patience(input.wait_seconds, format!("waiting for {to} to answer"))?;
    let question = Ask {
        from: input.session.0,
        to: to.clone(),
        question_type,
        content: input.text.0,
        requires_response: true,
        waits_until: None,
    };
    let id = call.context.command_id.clone();
    let (id, collected) = call.coordination.ask(&call.project, question, patience, id).await?;
    let collected = collected.unwrap_or(Collected::Pending { to, delivered_at: None, read_at: None });
    Ok(shown(&id.to_string(), &collected))
}

fn shown(id: &str, collected: &Collected) -> Value {
    match collected {
        Collected::Answer { response, answered_at, delivered_before } => json!({
            "status": "answered",
            "id": id,
            "answer": response,
            "answered_at": answered_at,
            "delivered_before": delivered_before,
        }),
        Collected::Pending { to, delivered_at, read_at } => json!({
            "status": "pending",
            "id": id,
            "to": to,
            "delivered_at": delivered_at,
            "read_at": read_at,
            "next": "call question_wait with this id, or find the answer in message_read later",
        }),
    }
}

#[derive(Deserialize, JsonSchema)]
struct WaitInput {
    project: NameParam,
    session: NameParam,
    /// The question's id
    id: NameParam,
    /// 0-45
    #[serde(default = "thirty")]
    wait_seconds: i64,
}

async fn wait(call: Call, input: WaitInput) -> Result<Value, Failure> {
    let (session, id) = (input.session.0, input.id.0);
    let patience = call.patience(input.wait_seconds, "waiting for the answer".to_owned())?;
    let collected = if let Some(patience) = patience {
        call.coordination.wait_for_answer(&call.project, &session, id.as_str(), &patience).await?
    } else {
        let look = CollectAnswer { session, id: id.as_str().to_owned(), otherwise: Otherwise::Leave };
        call.send(look).await?
    };
    Ok(shown(id.as_str(), &collected))
}

#[derive(Deserialize, JsonSchema)]
struct AnswerInput {
    project: NameParam,
    session: NameParam,
    /// The question's id
    id: NameParam,
    text: TextParam,
}

async fn answer(call: Call, input: AnswerInput) -> Result<Value, Failure> {
    let command = AnswerQuestion {
        from: input.session.0,
        to: None,
        id: input.id.0.as_str().to_owned(),
        response: input.text.0,
    };
    let asked_by = call.send(command).await?;
    Ok(json!({"status": "answered", "asked_by": asked_by}))
}

in_project!(AskInput, WaitInput, AnswerInput);
