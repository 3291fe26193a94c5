//! What a caller may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What the holder of a key may use. Everything, unless it is bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The projects it may use; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<BTreeSet<String>>,
    /// The toolsets it may use; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolsets: Option<BTreeSet<String>>,
    /// Whether it may create, list and revoke keys.
    #[serde(default)]
    pub admin: bool,
}

/// Why a caller may not do what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The project is not in its grant.
    #[error("key '{caller}' is not valid for project '{project}'")]
    Project {
        /// The name of the key.
        caller: Arc<str>,
        /// The project.
        project: String,
    },
    /// The toolset is not in its grant.
    #[error("key '{caller}' is not valid for toolset '{toolset}'")]
    Toolset {
        /// The name of the key.
        caller: Arc<str>,
        /// The toolset.
        toolset: String,
    },
    /// A schedule would call the tool for it, and could do what its grant does not allow.
    #[error(
        "key '{caller}' is bound, and a schedule that calls tool '{tool}' would not be: use a key without bounds, or \
         another target"
    )]
    Unbound {
        /// The name of the key.
        caller: Arc<str>,
        /// The tool.
        tool: String,
    },
    /// It may not administer keys.
    #[error("key '{caller}' may not administer this server")]
    Admin {
        /// The name of the key.
        caller: Arc<str>,
    },
}

/// Whoever makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of its key, or `local` for a request that needs none.
    pub name: Arc<str>,
    /// What it may use.
    pub grant: Arc<Grant>,
}

impl Caller {
    /// A caller on this machine, where no key is asked for: may use everything but the administration of keys.
    pub fn local() -> Self {
        Self { name: "local".into(), grant: Arc::default() }
    }

    /// The owner of the data directory, who proved it by the token that only they can read.
    pub fn owner() -> Self {
        Self { name: "owner".into(), grant: Arc::new(Grant { admin: true, ..Grant::default() }) }
    }

    /// Whether it may use `project`.
    pub fn may_use_project(&self, project: &str) -> Result<(), Denied> {
        match &self.grant.projects {
            Some(projects) if !projects.contains(project) => {
                Err(Denied::Project { caller: self.name.clone(), project: project.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Whether it may use `toolset`.
    pub fn may_use_toolset(&self, toolset: &str) -> Result<(), Denied> {
        match &self.grant.toolsets {
            Some(toolsets) if !toolsets.contains(toolset) => {
                Err(Denied::Toolset { caller: self.name.clone(), toolset: toolset.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Whether it may use `toolset`, which serves all projects alike: a key that is bound to projects may only if its grant
    /// names the toolset.
    pub fn may_use_shared(&self, toolset: &str) -> Result<(), Denied> {
        if self.grant.projects.is_some() && self.grant.toolsets.is_none() {
            return Err(Denied::Toolset { caller: self.name.clone(), toolset: toolset.to_owned() });
        }
        self.may_use_toolset(toolset)
    }

    /// Whether it may administer keys.
    pub fn may_administer(&self) -> Result<(), Denied> {
        if self.grant.admin { Ok(()) } else { Err(Denied::Admin { caller: self.name.clone() }) }
    }
}
