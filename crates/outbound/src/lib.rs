//! HTTP requests that leave the server.
//!
//! An **answer** is what a server said, whatever its status. A **fault** is why there is none. The **reach** says which
//! addresses may be called; it judges the address that is connected to, not the name that was asked for.
//!
//! One [`Outbound`] keeps its connections and is shared. It speaks HTTP/1.1, follows no redirects, tries nothing again,
//! knows no proxies and no cookies: whoever calls decides on these.

mod client;
pub use client::{Limits, Options, Outbound};

mod answer;
pub use answer::Answer;

mod fault;
pub use fault::Fault;

mod reach;
pub use reach::{Reach, is_public};

mod url;
pub use url::{InvalidUrl, encode_segment, join, parse_url};

mod body;
mod dial;
mod tls;

#[cfg(feature = "fake")]
pub mod fake;
