//! A client of Letta's REST API: who the agents are, a prompt to one of them, a tool for all.
//!
//! A **call** is a request with the redirects it led to. A **delivery** is up to three calls that carry one prompt. The
//! **token** is the API key, or else the server's password; no error and no log holds it.

mod client;
pub use client::{InvalidOptions, Letta, Options, Timing};

mod agents;
pub use agents::{Agent, check_agent_id};

mod delivery;
pub use delivery::DeliveryError;

mod tool;
pub use tool::Tool;

mod call;
pub use call::CallError;

mod reply;
