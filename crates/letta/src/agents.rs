//! Who the agents are.

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use switchboard_outbound::encode_segment;

use crate::call::{Call, whole};
use crate::{CallError, Letta};

/// How many agents are asked for at once.
const PAGE: usize = 50;
const MAX_PAGES: usize = 1_000;
const MAX_BYTES: usize = 64 << 20;

/// An agent, as Letta lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Its name; empty if Letta has none.
    pub name: String,
    /// Its description; empty if Letta has none.
    pub description: String,
    /// When it was made, in Letta's writing.
    pub created_at: Option<String>,
    /// When it was last changed, in Letta's writing (`updated_at`).
    pub last_updated: Option<String>,
}

impl Letta {
    /// All agents, in Letta's order.
    ///
    /// At most 1,000 pages of 50 agents and 64 MiB in all. A server that does not page, and answers each time with the same
    /// agents, is believed the first time.
    pub async fn agents(&self) -> Result<Vec<Agent>, CallError> {
        let mut agents: Vec<Agent> = Vec::new();
        let mut bytes = 0;
        for _ in 0..MAX_PAGES {
            let last = agents.last().map(|agent| agent.id.as_str());
            let after = last.map(|id| format!("&after={}", encode_segment(id))).unwrap_or_default();
            let page = self.get(format!("/v1/agents/?limit={PAGE}{after}")).await?;
            bytes += page.len();
            let page: Vec<WireAgent> = serde_json::from_slice(&page)
                .map_err(|_| CallError::NotUnderstood { expected: "a list of agents" })?;
            if bytes > MAX_BYTES {
                return Err(CallError::TooMany { limit: "64 MiB of agents" });
            }
            let stands_still = page.last().is_some_and(|agent| last == Some(agent.id.as_str()));
            if stands_still {
                return Ok(agents);
            }
            let is_short = page.len() < PAGE;
            agents.extend(page.into_iter().map(Agent::from));
            if is_short {
                return Ok(agents);
            }
        }
        Err(CallError::TooMany { limit: "1000 pages of agents" })
    }

    /// Whether there is an agent with this id.
    ///
    /// Letta says no with 404, and with 400 or 422 to what cannot be an id. If it does not answer single questions (405,
    /// 501) the list of all agents is searched.
    pub async fn agent_exists(&self, id: &str) -> Result<bool, CallError> {
        // An empty segment would ask for the list of agents, and a dot for something else again.
        let Ok(segment) = agent_segment(id) else { return Ok(false) };
        let call = self.getting(format!("/v1/agents/{segment}"));
        let answer = self.call(&call).await.map_err(CallError::Fault)?;
        match answer.status.as_u16() {
            // What else the answer holds does not matter, so neither does its end.
            200..=299 => Ok(true),
            400 | 404 | 422 => Ok(false),
            405 | 501 => Ok(self.agents().await?.iter().any(|agent| agent.id == id)),
            _ => Err(self.status_error(&answer)),
        }
    }

    async fn get(&self, path: String) -> Result<Bytes, CallError> {
        let answer = self.call(&self.getting(path)).await.map_err(CallError::Fault)?;
        Ok(self.success(answer)?.body)
    }

    fn getting(&self, path: String) -> Call<'_> {
        Call {
            method: Method::GET,
            path,
            body: Bytes::new(),
            idempotency_key: None,
            limits: whole(self.shared.timing.call),
        }
    }
}

/// Whether `id` can be the id of an agent: 1 to 256 bytes, no control characters, not `.` or `..`, which would lead
/// elsewhere in a path. Whether there is such an agent only Letta knows: see [`Letta::agent_exists`].
///
/// # Errors
/// [`CallError::IllFormedAgent`], whose text says what would be right.
pub fn check_agent_id(id: &str) -> Result<(), CallError> {
    let fits = (1..=256).contains(&id.len()) && !id.chars().any(char::is_control);
    if !fits || id == "." || id == ".." {
        let shown = &id[..id.floor_char_boundary(256)];
        return Err(CallError::IllFormedAgent(shown.to_owned()));
    }
    Ok(())
}

/// The id as a segment of a path.
pub(crate) fn agent_segment(id: &str) -> Result<String, CallError> {
    check_agent_id(id)?;
    Ok(encode_segment(id))
}

#[derive(Deserialize)]
struct WireAgent {
    id: String,
    name: Option<String>,
    description: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
}

impl From<WireAgent> for Agent {
    fn from(wire: WireAgent) -> Self {
        Self {
            id: wire.id,
            name: wire.name.unwrap_or_default(),
            description: wire.description.unwrap_or_default(),
            created_at: wire.created_at,
            last_updated: wire.updated_at,
        }
    }
}
