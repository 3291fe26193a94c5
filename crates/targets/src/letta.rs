//! Prompts to Letta's agents.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use switchboard_letta::{DeliveryError, Letta, check_agent_id};
use switchboard_schedule::{Delivery, Manners, Message, Outcome, Retry, Target};

/// The kind `letta`: a prompt to an agent, by its id. JSON is sent as its text.
///
/// Prompts to one agent go one after another, to eight agents at once. Each attempt of a schedule is up to three requests
/// (see [`Letta::deliver`]). No failure is for good but that of an id that cannot be one: an agent that Letta does not know
/// now may be restored, and a password put right.
#[derive(Debug, Clone)]
pub struct LettaTarget {
    letta: Letta,
    pace_ms: u32,
}

impl LettaTarget {
    /// The agents of `letta`. A prompt that failed is tried again every minute, for ever.
    pub fn new(letta: Letta) -> Self {
        Self { letta, pace_ms: 60_000 }
    }

    /// The same; a prompt that failed is tried again at this pace: at least a second, at most 49 days.
    #[must_use]
    pub fn retried_every(self, pace: Duration) -> Self {
        let pace_ms = u32::try_from(pace.as_millis()).unwrap_or(u32::MAX);
        Self { pace_ms: pace_ms.max(1_000), ..self }
    }

    async fn deliver_one(&self, delivery: Delivery) -> Outcome {
        let outcome =
            self.letta.deliver(&delivery.address.to, delivery.message.as_str(), &delivery.key).await;
        match outcome {
            Ok(reply) => Outcome::Delivered { reply },
            Err(error) if error.is_ill_formed() => Outcome::refused(error.to_string()),
            Err(error) => {
                let retry_after = match &error {
                    DeliveryError::Unavailable { retry_after, .. } => *retry_after,
                    DeliveryError::Refused(_) => None,
                };
                Outcome::Failed { error: error.to_string(), permanent: false, retry_after }
            }
        }
    }
}

impl Target for LettaTarget {
    fn kind(&self) -> &'static str {
        "letta"
    }

    fn manners(&self) -> Manners {
        Manners {
            ordered: true,
            at_once: 8,
            per_group: 1,
            batch: 1,
            // Three requests of up to 300 s each and 3 s between them, with something to spare: were the attempt ended
            // from outside, nobody would know whether the prompt was delivered.
            timeout: Duration::from_secs(950),
            // Letta may be down for a night or an agent gone for a week; the prompt is due until it is delivered.
            retry: Retry { first_ms: self.pace_ms, factor: 1, max_ms: self.pace_ms, attempts: None },
        }
    }

    fn check(&self, to: &str, message: &Message) -> Result<(), String> {
        check_agent_id(to).map_err(|error| error.to_string())?;
        if message.as_str().trim().is_empty() {
            return Err("a Letta agent needs a prompt that is not empty".into());
        }
        Ok(())
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        join_all(deliveries.into_iter().map(|delivery| self.deliver_one(delivery))).boxed()
    }
}
