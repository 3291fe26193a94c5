//! Wake-up calls: when, how often, to whom, and what became of each.

mod zone;
pub use zone::{UnknownZone, Zone};

mod cron;
pub use cron::{Cron, InvalidCron};

mod timing;
pub use timing::{Counted, InvalidPeriod, Timing};

mod message;
pub use message::Message;

mod retry;
pub use retry::Retry;

mod target;
pub use target::{Address, Delivery, Manners, Outcome, Target, Targets};
