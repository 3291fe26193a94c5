//! Published events by topic, kept for a while, resumable.
//!
//! Whoever **publishes** gives an event a topic and a JSON value, and gets its **position**: events are numbered 1, 2, 3 …
//! over all topics, without gaps, in the order in which they became durable. Whoever **reads** or **tails** names patterns of
//! topics and a position to go on after, and gets every matching event once, in that order.
//!
//! Events are not held in memory: they are the entries of one stream of the journal. They are kept for a stated time, number
//! and size; a reader that comes back for what is gone is told so.
//!
//! * `topic` says what a topic is, and which a pattern matches.
//! * `event` says what an event is.
//! * `machine` numbers events and knows which were published before.
//! * `log` finds positions in the journal and reads on from them; `line` tells all who tail what is new.
//! * `retention` forgets what is old.
//! * `service` is the way in.

mod topic;
pub use topic::{Filter, InvalidTopic, Pattern, Topic};

mod event;
pub use event::{Data, Event, InvalidEvent, Key, NewEvent, Position, Source};

mod machine;
pub use machine::{Ledger, Publish, Published, Receipt, Refused};

mod log;
pub use log::Page;

mod line;

mod retention;
pub use retention::Retention;

mod service;
pub use service::{Bus, BusError, STREAM, Stats, Tail};
