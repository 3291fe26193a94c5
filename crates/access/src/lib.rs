//! Who may reach the server, and what of it.
//!
//! A **key** is a secret that a client sends as bearer token; it is kept only as a hash. A **grant** says what the holder
//! of a key may use. A **caller** is whoever makes a request, with its grant. A key is **live** until it is revoked or
//! expires.
//!
//! This crate does not know which toolsets or projects exist: whoever makes a grant checks its names.

mod grant;
pub use grant::{Caller, Denied, Grant};

mod key;
pub use key::{KeyId, KeyInfo, SecretHash, TOKEN_CHARS, new_token, token_matches};

mod machine;
pub use machine::{AccessKeys, CreateKey, Event, Refused, RevokeKey};

mod service;
pub use service::{Access, STREAM};
