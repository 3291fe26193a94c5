//! Whose prompts they are if a call does not say: what is asked, in which order.

use serde_json::{Map, Value, json};

use super::tool::Call;
use crate::Variables;

/// The names under which metadata hold the id of an agent, in the order in which they are asked.
const KEYS: [&str; 4] = ["agent_id", "agentId", "letta_agent_id", "caller_agent_id"];

/// Objects in metadata that describe an agent, and the names under which they hold its id.
const OBJECTS: [&str; 3] = ["agent", "caller", "source_agent"];
const OBJECT_KEYS: [&str; 3] = ["agent_id", "id", "agentId"];

/// How many names of metadata are shown.
const SHOWN_KEYS: usize = 20;

/// What was found, and where.
#[derive(Debug, Default)]
pub(super) struct Inferred {
    pub(super) agent: Option<String>,
    source: Option<&'static str>,
    key: Option<String>,
    scope: Option<String>,
    /// How many agents Letta has; none if it was not asked, or did not answer.
    pub(super) agents_count: Option<usize>,
}

impl Inferred {
    fn found(agent: &str, source: &'static str, key: impl Into<String>) -> Self {
        Self { agent: Some(agent.to_owned()), source: Some(source), key: Some(key.into()), ..Self::default() }
    }
}

/// `agent` without white space around it, unless that says that there is none.
pub(super) fn given(agent: &str) -> Option<&str> {
    let agent = agent.trim();
    let is_none =
        agent.is_empty() || agent.eq_ignore_ascii_case("none") || agent.eq_ignore_ascii_case("null");
    (!is_none).then_some(agent)
}

impl Call {
    /// Whose prompts they are. Asks Letta only if nothing else tells.
    pub(super) async fn infer(&self) -> Inferred {
        let told = self.told().or_else(|| self.scoped()).or_else(|| self.preset());
        match told {
            Some(inferred) => inferred,
            None if self.service.options().agents.single_agent_fallback => self.only_agent().await,
            None => Inferred::default(),
        }
    }

    /// What the client says beside the call.
    fn told(&self) -> Option<Inferred> {
        let meta = &self.context.origin.meta;
        let nested = meta.get("metadata").and_then(Value::as_object);
        in_metadata(meta).or_else(|| in_metadata(nested?)).or_else(|| {
            let agent = self.context.origin.agent.as_deref()?.trim();
            (!agent.is_empty()).then(|| Inferred::found(agent, "context.attr", "agent_id"))
        })
    }

    fn scoped(&self) -> Option<Inferred> {
        let session = self.context.origin.session.as_ref()?;
        let agent = self.service.scopes().get(&session.id)?;
        Some(Inferred {
            agent: Some(agent.to_string()),
            source: Some("scoped-default"),
            scope: Some(session.name.to_string()),
            ..Inferred::default()
        })
    }

    /// What was set for the whole process, by a tool or by a variable.
    ///
    /// Where PromptYoSelf ran over standard streams, its process and with it the variables were its client's own. So a
    /// client that has a process of its own is asked before this one: all its variables, then all of this process.
    fn preset(&self) -> Option<Inferred> {
        if let Some(agent) = self.service.default_agent() {
            return Some(Inferred::found(&agent, "env", "LETTA_AGENT_ID"));
        }
        let of_client = &self.context.origin.variables;
        let of_client = Variables::NAMES.into_iter().filter_map(|name| Some((name, of_client.get(name)?)));
        let variables = of_client.chain(self.service.options().agents.variables());
        let (name, agent) = variables.into_iter().find(|(_, agent)| !agent.is_empty())?;
        Some(Inferred::found(agent, "env", name))
    }

    async fn only_agent(&self) -> Inferred {
        match self.service.letta().agents().await {
            Ok(agents) => Inferred {
                agents_count: Some(agents.len()),
                source: (agents.len() == 1).then_some("single-agent-fallback"),
                agent: match &agents[..] {
                    [only] => Some(only.id.clone()),
                    _ => None,
                },
                ..Inferred::default()
            },
            Err(error) => {
                tracing::debug!(%error, "Letta does not say whether it has a single agent");
                Inferred::default()
            }
        }
    }

    /// The names of the client's metadata.
    pub(super) fn metadata_keys(&self) -> Vec<&str> {
        let mut keys: Vec<_> = self.context.origin.meta.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys.truncate(SHOWN_KEYS);
        keys
    }

    /// Which variables name an agent.
    pub(super) fn variables_set(&self) -> Value {
        let is_set = |(name, agent): (&str, &str)| {
            let by_tool = name == "LETTA_AGENT_ID" && self.service.default_agent().is_some();
            let by_client = self.context.origin.variables.get(name).is_some();
            (name.to_owned(), Value::Bool(by_tool || by_client || !agent.is_empty()))
        };
        Value::Object(self.service.options().agents.variables().into_iter().map(is_set).collect())
    }

    /// How `inferred` was found.
    pub(super) fn explained(&self, inferred: &Inferred) -> Value {
        let mut explained = json!({"source": inferred.source});
        if let Some(key) = &inferred.key {
            explained["key"] = json!(key);
        }
        if let Some(scope) = &inferred.scope {
            explained["scope"] = json!(scope);
        }
        explained["context_metadata_keys"] = json!(self.metadata_keys());
        explained["env_checked"] = self.variables_set();
        explained["single_agent_fallback"] = json!(self.service.options().agents.single_agent_fallback);
        explained["agents_count"] = json!(inferred.agents_count);
        explained
    }
}

fn in_metadata(meta: &Map<String, Value>) -> Option<Inferred> {
    if let Some((key, agent)) = first(meta, &KEYS) {
        return Some(Inferred::found(agent, "context.metadata", key));
    }
    OBJECTS.into_iter().find_map(|name| {
        let (key, agent) = first(meta.get(name)?.as_object()?, &OBJECT_KEYS)?;
        Some(Inferred::found(agent, "context.metadata.nested", format!("{name}.{key}")))
    })
}

/// The first of `keys` that holds a text that is not empty.
fn first<'a>(object: &'a Map<String, Value>, keys: &[&'static str]) -> Option<(&'static str, &'a str)> {
    keys.iter().find_map(|key| {
        let agent = object.get(*key)?.as_str()?.trim();
        (!agent.is_empty()).then_some((*key, agent))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_holds_no_text_is_passed_over() {
        let metadata = [
            json!({}),
            json!({"agent_id": "a"}),
            json!({"agent_id": 5, "agentId": "b"}),
            json!({"agent_id": " ", "caller_agent_id": " c "}),
            json!({"agent": {"id": "d"}}),
            json!({"agent": {"agentId": "e", "id": ""}, "caller": {"id": "f"}}),
            json!({"agent": "g", "source_agent": {"agent_id": "h"}}),
            json!({"caller": {"id": "i"}, "letta_agent_id": "j"}),
        ];
        let found = metadata.iter().map(|meta| {
            let found = in_metadata(meta.as_object()?)?;
            Some(format!("{}: {} {}", found.agent?, found.source?, found.key?))
        });
        let found: Vec<_> = found.map(|found| found.unwrap_or_else(|| "-".to_owned())).collect();
        expect![[r"
            -
            a: context.metadata agent_id
            b: context.metadata agentId
            c: context.metadata caller_agent_id
            d: context.metadata.nested agent.id
            e: context.metadata.nested agent.agentId
            h: context.metadata.nested source_agent.agent_id
            j: context.metadata letta_agent_id"]]
        .assert_eq(&found.join("\n"));
    }

    #[test]
    fn an_agent_may_be_said_to_be_none() {
        let agents = ["", " ", "none", "None", " NULL ", "a", " a ", "nullify"];
        assert_eq!(agents.map(given), [None, None, None, None, None, Some("a"), Some("a"), Some("nullify")]);
    }
}
