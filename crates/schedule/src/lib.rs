//! Wake-up calls: when, how often, to whom, and what became of each.

mod message;
pub use message::Message;

mod retry;
pub use retry::Retry;

mod target;
pub use target::{Address, Delivery, Manners, Outcome, Target, Targets};
