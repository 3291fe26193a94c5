//! A prompt to an agent.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, Method};
use serde_json::json;
use switchboard_outbound::{Answer, Fault, Limits, encode_segment};

use crate::agents::agent_segment;
use crate::call::Call;
use crate::reply::assistant_text;
use crate::{CallError, Letta};

/// As much of an answer as is looked through for the agent's words.
const KEEP_BYTES: usize = 256 << 10;

/// Why a prompt was not delivered. The text is that of the last failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// Letta will not take this prompt for this agent: a 4xx that is not about the moment, or an id that is none. The same
    /// again fails again, until someone changes something.
    #[error("{0}")]
    Refused(CallError),
    /// All attempts failed, for reasons that pass: connection faults, 408, 409, 429, 5xx.
    #[error("{cause}")]
    Unavailable {
        /// Of the last attempt.
        cause: CallError,
        /// How many attempts there were.
        attempts: u32,
        /// When Letta asked to be tried again, at most a day.
        retry_after: Option<Duration>,
    },
}

impl DeliveryError {
    /// Whether the agent's id is none, so that nothing was sent and nothing ever can be.
    pub const fn is_ill_formed(&self) -> bool {
        matches!(self, Self::Refused(CallError::IllFormedAgent(_)))
    }
}

impl Letta {
    /// Delivers `prompt` to `agent`, and returns what the agent said, if Letta's answer tells: at most 1,024 bytes.
    ///
    /// Up to three attempts, 1 s and 2 s apart, on connection faults, 408, 409, 429 and 5xx. All carry the same
    /// `Idempotency-Key`, so that a server that heeds it takes the prompt once. Any 2xx is a delivery, whatever else is
    /// in the answer and whether or not it ends.
    ///
    /// No reply within 300 s is a delivery too, if the request was sent: a connection stood (TLS included), and the last
    /// byte was handed to it. It is assumed that Letta then has it and the agent is still thinking; the prompt again
    /// would be worse than the prompt lost with a server that died without closing its connections (a machine that
    /// vanished is noticed by TCP within about two minutes, which is a connection fault). A time-out before that is one.
    ///
    /// Dropping the future gives up; whether the prompt was delivered is then unknown.
    pub async fn deliver(
        &self,
        agent: &str,
        prompt: &str,
        idempotency_key: &str,
    ) -> Result<Option<String>, DeliveryError> {
        let segment = agent_segment(agent).map_err(DeliveryError::Refused)?;
        let key = key_value(idempotency_key);
        let body = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}]});
        let timing = self.shared.timing;
        let mut call = Call {
            method: Method::POST,
            path: format!("/v1/agents/{segment}/messages"),
            body: Bytes::from(body.to_string()),
            idempotency_key: key.as_ref(),
            limits: Limits { timeout: timing.reply, keep_bytes: KEEP_BYTES, read_bytes: usize::MAX },
        };
        let mut pauses = timing.pauses.iter();
        let mut attempts = 1;
        let mut streams = false;
        loop {
            let mut outcome = self.call(&call).await;
            if !streams && outcome.as_ref().is_ok_and(asks_for_stream) {
                // Once it said so it stays so: later attempts go there at once.
                streams = true;
                call.path = format!("/v1/agents/{segment}/messages/stream");
                outcome = self.call(&call).await;
            }
            let (cause, retry_after) = match outcome {
                Ok(answer) if answer.status.is_success() => return Ok(assistant_text(&answer.body)),
                Ok(answer) => {
                    let cause = self.status_error(&answer);
                    if !passes(answer.status.as_u16()) {
                        return Err(DeliveryError::Refused(cause));
                    }
                    (cause, answer.retry_after(SystemTime::now()))
                }
                Err(Fault::TimedOut { sent: true, after, .. }) => {
                    tracing::info!(agent, ?after, "no reply in time: the prompt counts as delivered");
                    return Ok(None);
                }
                Err(fault) => (CallError::Fault(fault), None),
            };
            let Some(pause) = pauses.next() else {
                return Err(DeliveryError::Unavailable { cause, attempts, retry_after });
            };
            tracing::debug!(agent, attempts, %cause, "a prompt is tried again");
            tokio::time::sleep(*pause).await;
            attempts += 1;
        }
    }
}

/// Whether a failure with this status is about the moment.
const fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..)
}

/// Some versions of Letta fail at messages without inner monologue, except when they are streamed.
fn asks_for_stream(answer: &Answer) -> bool {
    if answer.status.is_success() {
        return false;
    }
    let body = String::from_utf8_lossy(&answer.body);
    body.contains("'description'") && body.contains("ChatMLInnerMonologueWrapper")
}

/// The key as a header field; what does not fit into one is percent-encoded. None for an empty key.
fn key_value(key: &str) -> Option<HeaderValue> {
    if key.is_empty() {
        return None;
    }
    HeaderValue::from_str(key).or_else(|_| HeaderValue::from_str(&encode_segment(key))).ok()
}
