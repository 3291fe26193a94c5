//! Who may reach the server, and what of it.
//!
//! A **key** is a secret that a client sends as bearer token; it is kept only as a hash. A **grant** says what the holder
//! of a key may use. A **caller** is whoever makes a request, with its grant.

mod grant;
pub use grant::{Caller, Denied, Grant};
