//! Definitions that the agents of a project share.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::project::{Project, Rule};
use crate::{Event, Name, Rejection, Text};

/// A shared definition. The last writer wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The definition itself.
    pub definition: Text,
    /// Who registered it last.
    pub registered_by: Name,
    /// Where it is defined, if that was said.
    pub file_path: Option<Name>,
    /// When it was registered last.
    pub registered_at: Timestamp,
}

/// An interface by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedInterface {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub interface: Interface,
}

/// Shares a definition, or replaces one.
#[derive(Debug, Clone)]
pub struct RegisterInterface {
    /// Who shares it.
    pub session: Name,
    /// Its name, case-sensitive.
    pub name: Name,
    /// The definition.
    pub definition: Text,
    /// Where it is defined.
    pub file_path: Option<Name>,
}

impl RegisterInterface {
    /// The most interfaces of one project.
    const MOST: usize = 10_000;
    /// The most text in their definitions.
    const MOST_BYTES: usize = 64 << 20;
}

impl Rule for RegisterInterface {
    type Reply = ();
    const NAME: &'static str = "interface_register";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, ()>, Rejection> {
        project.agent(&self.session)?;
        let full = |limit, remedy| Rejection::Full {
            what: "the project's list of interfaces".to_owned(),
            limit,
            remedy,
        };
        if project.interfaces.len() >= Self::MOST && !project.interfaces.contains_key(&self.name) {
            return Err(full(Self::MOST, "replace an existing interface instead"));
        }
        let others = project.interfaces.iter().filter(|(name, _)| **name != self.name);
        let bytes: usize = others.map(|(_, interface)| interface.definition.as_str().len()).sum();
        if bytes + self.definition.as_str().len() > Self::MOST_BYTES {
            return Err(full(Self::MOST_BYTES, "replace an existing definition by a shorter one"));
        }
        let mut events = vec![Event::InterfaceRegistered {
            session: self.session.clone(),
            name: self.name.clone(),
            definition: self.definition.clone(),
            file_path: self.file_path.clone(),
            at: now,
        }];
        events.extend(project.notice("interface_registered", &self.session, now, || {
            format!("Agent {} registered interface {}", self.session, self.name)
        }));
        Ok(Decision::events(events, ()))
    }
}

/// Looks a definition up.
#[derive(Debug, Clone)]
pub struct QueryInterface {
    /// Its name.
    pub name: Name,
}

impl QueryInterface {
    /// The most names that are suggested.
    const MOST_SIMILAR: usize = 10;
}

impl Rule for QueryInterface {
    type Reply = Interface;
    const NAME: &'static str = "interface_get";

    fn decide(&self, project: &Project, _now: Timestamp) -> Result<Decision<Event, Interface>, Rejection> {
        if let Some(interface) = project.interfaces.get(&self.name) {
            return Ok(Decision::unchanged(interface.clone()));
        }
        let asked = self.name.as_str().to_lowercase();
        let is_similar = |name: &&Name| {
            let name = name.as_str().to_lowercase();
            name.contains(&asked) || asked.contains(&name)
        };
        let similar =
            project.interfaces.keys().filter(is_similar).take(Self::MOST_SIMILAR).cloned().collect();
        Err(Rejection::InterfaceNotFound { name: self.name.clone(), similar })
    }
}

/// All definitions, in the order of their first registration.
#[derive(Debug, Clone)]
pub struct ListInterfaces;

impl Rule for ListInterfaces {
    type Reply = Vec<NamedInterface>;
    const NAME: &'static str = "interface_list";

    fn decide(
        &self,
        project: &Project,
        _now: Timestamp,
    ) -> Result<Decision<Event, Vec<NamedInterface>>, Rejection> {
        let named = |(name, interface): (&Name, &Interface)| NamedInterface {
            name: name.clone(),
            interface: interface.clone(),
        };
        Ok(Decision::unchanged(project.interfaces.iter().map(named).collect()))
    }
}
