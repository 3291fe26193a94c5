//! Runs pure state machines over a journal: commands in, durable events out.
//!
//! ```text
//! command + now ──▶ decide(&state) ──▶ events ──▶ journal (durable) ──▶ apply(&mut state) ──▶ reply
//! ```
//!
//! A [`Machine`] holds the rules and knows no clock, no randomness and no I/O. An [`Exchange`] runs one machine per
//! stream: it batches the commands that wait, appends their events as one entry, replies once that entry is durable, and
//! on a conflict with another node catches up and decides again.
//!
//! A caller that sees [`CommandError::Unknown`] or loses its connection repeats the call with the same [`CommandId`]:
//! it takes effect at most once and gets the first reply.

mod machine;
pub use machine::{Decide, Decision, Machine};

mod clock;
pub use clock::{Clock, SystemClock};

mod command;
pub use command::{CommandError, CommandId, InvalidCommandId};

mod record;
pub use record::Record;

mod replies;

mod live;

mod exchange;
pub use exchange::{Exchange, Options, Stats};

pub use jiff::{SignedDuration, Timestamp};
