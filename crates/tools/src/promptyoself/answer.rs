//! The shapes of PromptYoSelf's answers: an object with `status`, or `{"error": …}`, which is no error of the protocol.

use std::fmt::Display;

use serde_json::{Value, json};
use switchboard_exchange::Timestamp;

use crate::Output;

/// Why a call has no success answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The arguments are not what the tool takes.
    Arguments(String),
    /// In the catalogue's own words.
    Said(String),
}

impl Failure {
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    /// `Failed to list prompts: …`
    pub(super) fn because(what: &'static str) -> impl Fn(&dyn Display) -> Self {
        move |cause| Self::Said(format!("{what}: {cause}"))
    }
}

pub(super) fn output(answer: Result<Value, Failure>) -> Output {
    match answer {
        Ok(answer) => Output::structured(answer),
        Err(Failure::Said(text)) => Output::structured(json!({"error": text})),
        Err(Failure::Arguments(detail)) => Output::text(format!("Input validation error: {detail}")).error(),
    }
}

/// `2025-01-02T09:00:00+00:00`: whole seconds, UTC.
pub(super) fn seconds(at_ms: i64) -> Value {
    let at = Timestamp::from_second(at_ms.div_euclid(1_000)).unwrap_or(Timestamp::MAX);
    Value::String(at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string())
}
