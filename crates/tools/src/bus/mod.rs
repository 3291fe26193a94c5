//! The toolset `bus`: publish events by topic, and read on from a position.
//!
//! The bus serves all projects alike, so a key that is bound to projects may use it only if its grant names this toolset.

mod answer;
mod publish;
mod read;
pub use read::json_of_page;

mod tool;

use switchboard_bus::Bus;

use crate::{Tool, Toolset};

/// The name of the toolset of the bus.
pub const NAME: &str = "bus";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "publish events by topic and read them from any position; subscribe to bus://topic/{pattern}",
        instructions: "bus.publish tells everybody who follows a topic. bus.read gives what matches a pattern, from a position \
                       on: pass next as after to go on, and wait_seconds to wait for more. To hear of events without \
                       asking, subscribe to the resource bus://topic/{pattern}.",
        server_name: "switchboard",
        server_version: env!("CARGO_PKG_VERSION"),
        sessions: true,
    }
}

/// Its tools.
pub(crate) fn tools(bus: &Bus) -> Vec<Tool> {
    vec![publish::tool(bus), read::tool(bus)]
}
