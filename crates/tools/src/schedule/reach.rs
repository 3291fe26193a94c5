//! Whom a caller may have called: a schedule must not do for it what it may not do itself.

use switchboard_access::{Caller, Denied};
use switchboard_schedule::Address;

use crate::{Registry, View, bus, coordination, discovery};

/// Whether `caller` may have `address` called, look at schedules that call it, and change them.
///
/// | kind | wants |
/// |---|---|
/// | `topic` | the toolset `bus` |
/// | `inbox` | the toolset `coordination`, and the project |
/// | `letta` | the toolset `promptyoself` |
/// | `tool` | the tool's toolset; a key bound to projects may have no tool called, a key bound to toolsets none that calls others |
/// | any other | nothing |
pub(crate) fn may_reach(caller: &Caller, registry: &Registry, address: &Address) -> Result<(), Denied> {
    let to = &*address.to;
    match &*address.kind {
        "topic" => caller.may_use_shared(bus::NAME),
        "inbox" => {
            caller.may_use_toolset(coordination::NAME)?;
            caller.may_use_project(to.rsplit_once('/').map_or(to, |(project, _)| project))
        }
        "letta" => caller.may_use_shared(LETTA),
        "tool" => may_have_called(caller, registry, to),
        _ => Ok(()),
    }
}

/// The toolset that sends prompts to Letta's agents.
const LETTA: &str = "promptyoself";

fn may_have_called(caller: &Caller, registry: &Registry, name: &str) -> Result<(), Denied> {
    // What does not exist is refused as such, by the target.
    let Some(tool) = registry.tool(&View::ALL, name) else { return Ok(()) };
    caller.may_use_toolset(tool.toolset)?;
    // A schedule's calls are bound to nothing, and each tool has its own words for the project it works on.
    let is_bound_to_projects = caller.grant.projects.is_some();
    let calls_others = matches!(tool.toolset, discovery::NAME | super::NAME);
    if is_bound_to_projects || (calls_others && caller.grant.toolsets.is_some()) {
        return Err(Denied::Unbound { caller: caller.name.clone(), tool: name.to_owned() });
    }
    Ok(())
}
