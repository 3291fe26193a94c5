//! Compares what the server says with what it had acknowledged.
//!
//! While a call of an agent is pending, the state before and the state after it are both right, and nothing between.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::call::Wish;
use crate::client::Client;
use crate::ledger::Agent;
use crate::team::Team;
use crate::{Outcome, Torment};

/// How many changes a project remembers.
const CHANGES_KEPT: usize = 100;

/// Agents, todos, locks and the line for them, interfaces, changes.
pub(crate) fn state(client: &mut Client, team: &Team) -> Outcome {
    let in_team = |why: String| Torment::broken(format!("team {}: {why}", team.name));
    let project = json!({"project": team.name});
    agents(team, &read(client, "agent_list", &project)?).map_err(in_team)?;
    for agent in &team.agents {
        let arguments = json!({"project": team.name, "session": agent.name});
        let answer = client.call("todo_list", &arguments, None)?;
        todos(agent, &answer.value).map_err(in_team)?;
    }
    locks(team, &read(client, "lock_list", &project)?).map_err(in_team)?;
    interfaces(team, &read(client, "interface_list", &project)?).map_err(in_team)?;
    let arguments = json!({"project": team.name, "limit": CHANGES_KEPT});
    changes(team, &read(client, "change_list", &arguments)?).map_err(in_team)
}

/// Every message that was sent was received once, and none that was not. The inboxes must be empty.
pub(crate) fn messages(team: &Team) -> Outcome {
    for from in &team.agents {
        for to in &team.agents {
            let none = Vec::new();
            let sent = from.sent.get(&to.name).unwrap_or(&none);
            let received = to.received.get(&from.name).unwrap_or(&none);
            if sent != received {
                return Err(Torment::broken(format!(
                    "team {}: {} sent {sent:?} to {}, who received {received:?}",
                    team.name, from.name, to.name
                )));
            }
        }
    }
    Ok(())
}

fn read(client: &mut Client, tool: &str, arguments: &Value) -> Outcome<Value> {
    let answer = client.call(tool, arguments, None)?;
    match answer.refused {
        None => Ok(answer.value),
        Some(code) => Err(Torment::broken(format!("'{tool}' was refused as {code}"))),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn pending(agent: &Agent) -> Option<&Wish> {
    agent.pending.as_ref().map(|call| &call.wish)
}

fn agents(team: &Team, answer: &Value) -> Result<(), String> {
    let present: BTreeSet<&str> = list(answer, "agents").iter().map(|agent| text(agent, "session")).collect();
    for agent in &team.agents {
        let in_doubt = matches!(pending(agent), Some(Wish::Register | Wish::Unregister));
        if !in_doubt && present.contains(&*agent.name) != agent.registered {
            return Err(format!("{} is registered: {}", agent.name, !agent.registered));
        }
    }
    match present.iter().find(|name| !team.agents.iter().any(|agent| agent.name == **name)) {
        Some(stranger) => Err(format!("nobody registered as {stranger}")),
        None => Ok(()),
    }
}

fn todos(agent: &Agent, answer: &Value) -> Result<(), String> {
    let found: BTreeMap<String, (String, String)> = list(answer, "todos")
        .iter()
        .map(|todo| (text(todo, "id").into(), (text(todo, "text").into(), text(todo, "status").into())))
        .collect();
    let known = &agent.todos;
    let after_pending = match pending(agent) {
        Some(Wish::AddTodo { text }) => {
            let new: Vec<_> = found.iter().filter(|(id, _)| !known.contains_key(*id)).collect();
            let is_it = matches!(new[..], [(_, (added, status))] if added == text && status == "pending");
            is_it && known.iter().all(|(id, todo)| found.get(id) == Some(todo))
        }
        Some(Wish::UpdateTodo { id, status }) => {
            let mut updated = known.clone();
            if let Some((_, now)) = updated.get_mut(id) {
                (*status).clone_into(now);
            }
            found == updated
        }
        Some(Wish::Register | Wish::Unregister) => found.is_empty(),
        _ => false,
    };
    if found == *known || after_pending {
        return Ok(());
    }
    let of = |todos: &BTreeMap<String, (String, String)>, others: &BTreeMap<_, _>| {
        let only = todos.iter().filter(|(id, todo)| others.get(*id) != Some(*todo));
        only.map(|(id, todo)| format!("{id} {todo:?}")).collect::<Vec<_>>()
    };
    Err(format!(
        "{}'s todos: acknowledged and not there: {:?}; there and not acknowledged: {:?}; pending: {:?}",
        agent.name,
        of(known, &found),
        of(&found, known),
        agent.pending
    ))
}

/// A lock as the server shows it.
struct Held<'a> {
    path: &'a str,
    session: &'a str,
    token: u64,
}

fn locks(team: &Team, answer: &Value) -> Result<(), String> {
    let shown = |lock| Held {
        path: text(lock, "path"),
        session: text(lock, "session"),
        token: lock["token"].as_u64().unwrap_or_default(),
    };
    let held: Vec<Held<'_>> = list(answer, "held").iter().map(shown).collect();
    let waiting: Vec<Held<'_>> = list(answer, "waiting").iter().map(shown).collect();
    held_once(&held)?;
    for agent in &team.agents {
        let theirs = |lock: &&Held<'_>| lock.session == agent.name;
        locks_of(agent, held.iter().filter(theirs)).map_err(|why| format!("{}: {why}", agent.name))?;
        places_of(agent, &held, &waiting).map_err(|why| format!("{}: {why}", agent.name))?;
    }
    let is_strange = |lock: &&Held<'_>| !team.agents.iter().any(|agent| agent.name == lock.session);
    match held.iter().chain(&waiting).find(is_strange) {
        Some(lock) => Err(format!("a stranger called {} holds or wants {}", lock.session, lock.path)),
        None => Ok(()),
    }
}

fn held_once(held: &[Held<'_>]) -> Result<(), String> {
    for (index, one) in held.iter().enumerate() {
        for other in &held[index + 1..] {
            if one.session != other.session && overlap(one.path, other.path) {
                return Err(format!(
                    "{} holds {} and {} holds {}",
                    one.session, one.path, other.session, other.path
                ));
            }
            if one.token == other.token {
                return Err(format!(
                    "{} and {} are held with one token, {}",
                    one.path, other.path, one.token
                ));
            }
        }
    }
    Ok(())
}

/// Whether a file is in both. Only files and folders (`a/b/**`) are used here.
fn overlap(one: &str, other: &str) -> bool {
    let within = |path: &str, folder: &str| {
        folder.strip_suffix("/**").is_some_and(|folder| {
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    one == other || within(one, other) || within(other, one)
}

fn locks_of<'a>(agent: &Agent, held: impl Iterator<Item = &'a Held<'a>>) -> Result<(), String> {
    let held: BTreeMap<&str, u64> = held.map(|lock| (lock.path, lock.token)).collect();
    for (path, token) in &agent.locks {
        match (held.get(&**path), token) {
            (None, _) if pending(agent).is_some_and(|wish| wish.may_free(path)) => {}
            (None, _) => return Err(format!("the lock on {path} is gone; pending: {:?}", agent.pending)),
            (Some(now), Some(granted)) if now != granted => {
                return Err(format!("the lock on {path} was granted with token {granted}, now it is {now}"));
            }
            (Some(_), _) => {}
        }
    }
    for (path, token) in &held {
        let older = if agent.locks.contains_key(*path) {
            0
        } else if let Some(place) = agent.tickets.get(*path) {
            place.newest_token
        } else if let Some(call) = agent.pending.as_ref().filter(|call| call.wish.may_take(path)) {
            call.newest_token
        } else {
            return Err(format!("it holds {path}, which it was never granted; pending: {:?}", agent.pending));
        };
        if *token <= older {
            return Err(format!("{path} has token {token}, but {older} had been granted before"));
        }
    }
    Ok(())
}

fn places_of(agent: &Agent, held: &[Held<'_>], waiting: &[Held<'_>]) -> Result<(), String> {
    let among = |locks: &[Held<'_>], path: &str| {
        locks.iter().any(|lock| lock.session == agent.name && lock.path == path)
    };
    for path in agent.tickets.keys() {
        let may_be_gone = match pending(agent) {
            Some(Wish::Unregister) => true,
            Some(Wish::Leave { path: left, .. }) => left == path,
            _ => false,
        };
        if !may_be_gone && !among(held, path) && !among(waiting, path) {
            return Err(format!("its place in the line for {path} is gone; pending: {:?}", agent.pending));
        }
    }
    for place in waiting.iter().filter(|place| place.session == agent.name) {
        let may_wait = matches!(pending(agent), Some(Wish::Acquire { path, wait_seconds: 1.., .. }) if path == place.path);
        if !agent.tickets.contains_key(place.path) && !may_wait {
            return Err(format!("it never asked to wait for {}; pending: {:?}", place.path, agent.pending));
        }
    }
    Ok(())
}

fn interfaces(team: &Team, answer: &Value) -> Result<(), String> {
    let mut found: BTreeMap<&str, &str> = list(answer, "interfaces")
        .iter()
        .map(|interface| (text(interface, "name"), text(interface, "definition")))
        .collect();
    for agent in &team.agents {
        let in_doubt = match pending(agent) {
            Some(Wish::Share { name, definition }) => Some((&**name, &**definition)),
            _ => None,
        };
        for (name, definition) in &agent.interfaces {
            let now = found.remove(&**name);
            if now != Some(definition)
                && now != in_doubt.filter(|(in_doubt, _)| in_doubt == name).map(|(_, new)| new)
            {
                return Err(format!("interface {name} is {now:?}, acknowledged was {definition:?}"));
            }
        }
        if let Some((name, definition)) = in_doubt
            && found.get(name) == Some(&definition)
        {
            found.remove(name);
        }
    }
    match found.first_key_value() {
        Some((name, definition)) => Err(format!("nobody shared interface {name}: {definition:?}")),
        None => Ok(()),
    }
}

/// A change is listed once; one that was granted is listed unless enough others may have come after it.
fn changes(team: &Team, answer: &Value) -> Result<(), String> {
    let mut listed = BTreeSet::new();
    for change in list(answer, "changes") {
        let (session, description) = (text(change, "session"), text(change, "description"));
        if !team.agents.iter().any(|agent| agent.name == session && agent.has_described(description)) {
            return Err(format!("nobody announced the change {description:?} of {session}"));
        }
        if !listed.insert(description) {
            return Err(format!("the change {description:?} is listed twice"));
        }
    }
    let all: Vec<_> = team.agents.iter().flat_map(|agent| &agent.changes).collect();
    for change in all.iter().filter(|change| change.granted) {
        let is_earlier = |other: &&&crate::ledger::Announced| {
            other.over_at.is_some_and(|over_at| over_at <= change.sent_at)
        };
        // The change itself is among those that are not earlier.
        let perhaps_later = all.len() - all.iter().filter(is_earlier).count() - 1 + team.in_line;
        if perhaps_later < CHANGES_KEPT && !listed.contains(&*change.description) {
            return Err(format!("the change {:?} is gone", change.description));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_overlaps_with_what_is_in_it() {
        for (one, other, expected) in [
            ("a/b.rs", "a/b.rs", true),
            ("a/**", "a/b.rs", true),
            ("a", "a/**", true),
            ("a/**", "ab.rs", false),
            ("a/b.rs", "a/c.rs", false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
            assert_eq!(overlap(other, one), expected, "{other} {one}");
        }
    }
}
