//! Where wake-up calls go: one file per kind of target.

mod bus;
pub use bus::BusTarget;

mod inbox;
pub use inbox::InboxTarget;

mod letta;
pub use letta::LettaTarget;

mod tool;
pub use tool::ToolTarget;

mod webhook;
pub use webhook::{Webhook, WebhookOptions, read_secret, spelled_secret};
