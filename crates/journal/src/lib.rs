//! Streams of entries that are durable before they are acknowledged.
//!
//! Words used here:
//! * a **stream** is a named sequence of entries, owned by one state machine;
//! * an **entry** is what one append wrote: one JSON text, all of it or nothing, numbered 1, 2, 3 … without gaps;
//! * a **snapshot** is a machine's state after a given entry, so that earlier entries need not be replayed;
//! * to **trim** is to forget entries that a snapshot covers, to **redact** is to blank one of them.
//!
//! [`Journal`] says what a caller may rely on. [`MemoryJournal`] is the simulator's disk and the model of the trait,
//! [`SqliteJournal`] the embedded default; [`conformance`] is the suite that every backend passes.
//! This crate does not know what an entry means.

mod stream;
pub use stream::{Entry, InvalidStreamId, Payload, PayloadTooLarge, Seq, Snapshot, StreamHead, StreamId};

mod journal;
pub use journal::{AppendError, BackendError, Journal, ReadError, Sharing, Tail};

mod hub;

mod memory;
pub use memory::MemoryJournal;

mod sqlite;
pub use sqlite::{OpenError, SqliteJournal, SqliteOptions};

pub mod conformance;
