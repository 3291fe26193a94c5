//! Where wake-up calls go: one file per kind of target.

mod letta;
pub use letta::LettaTarget;

mod webhook;
pub use webhook::{Webhook, WebhookOptions};
