//! All toolsets put together, and what they cost an agent.

use std::sync::Arc;

use switchboard_bus::Bus;
use switchboard_coordination::Coordination;
use switchboard_letta::Letta;
use switchboard_schedule::{Schedules, Zone};

use crate::agtos::Tasks;
use crate::schedule::Scheduling;
use crate::{
    PromptYoSelf, Registry, RegistryError, Tool, Toolset, a2amcp, agtos, bus, coordination, discovery,
    promptyoself, schedule,
};

/// What the tools of the catalogue work on.
#[derive(Debug, Clone, Copy)]
pub struct Services<'a> {
    /// The projects.
    pub coordination: &'a Coordination,
    /// Published events.
    pub bus: &'a Bus,
    /// Wake-up calls.
    pub schedules: &'a Schedules,
    /// On whose clock the times of schedules are read, unless they name another zone.
    pub zone: &'a Zone,
    /// The server of Letta's agents.
    pub letta: &'a Letta,
    /// Prompts for those agents, as PromptYoSelf keeps them.
    pub promptyoself: &'a PromptYoSelf,
}

/// The registry of everything this program offers, with `more` toolsets that only a test adds.
pub fn catalogue(
    services: Services<'_>,
    more: impl IntoIterator<Item = (Toolset, Vec<Tool>)>,
) -> Result<Arc<Registry>, RegistryError> {
    let (more_sets, more_tools): (Vec<_>, Vec<_>) = more.into_iter().unzip();
    let mut contradiction = None;
    let registry = Arc::new_cyclic(|registry| {
        let (schedules, zone) = (services.schedules, services.zone);
        let toolsets = [
            a2amcp::toolset(),
            coordination::toolset(),
            bus::toolset(),
            schedule::toolset(),
            agtos::toolset(),
            promptyoself::toolset(),
            discovery::toolset(),
        ];
        let tools = [
            a2amcp::tools(services.coordination),
            coordination::tools(services.coordination),
            bus::tools(services.bus),
            schedule::tools(&Scheduling::new(schedules.clone(), zone.clone(), registry.clone())),
            agtos::tools(&Tasks::new(schedules.clone(), zone.clone(), registry.clone())),
            promptyoself::tools(services.promptyoself),
            discovery::tools(registry),
        ];
        let made = Registry::new(
            toolsets.into_iter().chain(more_sets),
            tools.into_iter().chain(more_tools).flatten(),
        );
        made.unwrap_or_else(|error| {
            contradiction = Some(error);
            Registry::default()
        })
    });
    contradiction.map_or(Ok(registry), Err)
}

/// About how many tokens a tool's definition costs an agent that lists it: its JSON's bytes, by four.
pub fn estimated_tokens(tool: &Tool) -> usize {
    serde_json::to_string(&tool.definition).map_or(0, |json| json.len().div_ceil(4))
}
