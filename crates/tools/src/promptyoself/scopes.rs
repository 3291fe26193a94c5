//! The default agents of sessions.

use std::collections::HashMap;
use std::sync::Arc;

/// How many sessions have a default agent of their own.
const MOST: usize = 10_000;

/// The default agents of sessions, by the ids of the sessions.
///
/// Nobody says when a session ends. Its id is never used again, so what is left of it is in nobody's way; of more than
/// 10,000 the one that was used longest ago is forgotten.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    agents: HashMap<Arc<str>, Scope>,
    uses: u64,
}

#[derive(Debug)]
struct Scope {
    agent: Arc<str>,
    used: u64,
}

impl Scopes {
    pub(super) fn set(&mut self, session: Arc<str>, agent: Arc<str>) {
        self.uses += 1;
        self.agents.insert(session, Scope { agent, used: self.uses });
        if self.agents.len() > MOST {
            let oldest = self.agents.iter().min_by_key(|(_, scope)| scope.used).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.agents.remove(&oldest);
            }
        }
    }

    pub(super) fn get(&mut self, session: &str) -> Option<Arc<str>> {
        let scope = self.agents.get_mut(session)?;
        self.uses += 1;
        scope.used = self.uses;
        Some(scope.agent.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_was_used_longest_ago_is_forgotten_first() {
        let mut scopes = Scopes::default();
        for session in 0..MOST {
            scopes.set(session.to_string().into(), "a".into());
        }
        assert_eq!(scopes.get("0").as_deref(), Some("a"));
        scopes.set("new".into(), "b".into());
        assert_eq!(scopes.get("0").as_deref(), Some("a"));
        assert_eq!(scopes.get("1"), None);
        assert_eq!(scopes.get("new").as_deref(), Some("b"));
        assert_eq!(scopes.agents.len(), MOST);
    }
}
