//! A team at work, and at taking up its work after the server was gone.

use std::net::SocketAddr;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::call::{Call, Wish};
use crate::client::Client;
use crate::ledger::{Agent, Shared};
use crate::{Outcome, Torment, inspect};

/// A project and its agents.
#[derive(Debug)]
pub(crate) struct Team {
    pub(crate) name: String,
    pub(crate) agents: Vec<Agent>,
    pub(crate) shared: Shared,
    /// How many places in the line there were when the round began: each may turn into a change at any time.
    pub(crate) in_line: usize,
}

impl Team {
    pub(crate) fn new(name: String, size: usize) -> Self {
        let names: Vec<String> = (0..size).map(|index| format!("agent{index}")).collect();
        let visitor = size - 1;
        let agents = names.iter().enumerate().map(|(index, name)| {
            let others = names[..visitor].iter().filter(|peer| *peer != name);
            Agent::new(name.clone(), others.cloned().collect(), index == visitor)
        });
        Self { agents: agents.collect(), name, shared: Shared::default(), in_line: 0 }
    }

    /// Registers everybody.
    pub(crate) fn gather(&mut self, address: SocketAddr) -> Outcome {
        self.everybody(|team, agent, shared| {
            let mut client = Client::connect(address)?;
            let call = agent.intend(Wish::Register, shared);
            say(&mut client, team, agent, &call, shared)
        })
    }

    pub(crate) fn begin_round(&mut self) {
        self.in_line = self.agents.iter().map(|agent| agent.tickets.len()).sum();
        self.agents.iter_mut().for_each(Agent::begin_round);
    }

    /// Everybody works until the server is gone.
    pub(crate) fn work(&mut self, address: SocketAddr, seed: u64) -> Outcome {
        self.everybody(|team, agent, shared| {
            let mut random = StdRng::seed_from_u64(seed ^ number_of(&agent.name));
            match work(address, team, agent, shared, &mut random) {
                Err(Torment::Lost(_)) => Ok(()),
                other => other,
            }
        })
    }

    /// How many calls are not answered.
    pub(crate) fn pending(&self) -> usize {
        self.agents.iter().filter(|agent| agent.pending.is_some()).count()
    }

    /// Compares the server's state with the ledgers, has every call that was not answered repeated, then those that were,
    /// and compares again: now nothing may be in doubt. Answers how many calls were repeated.
    pub(crate) fn take_up(&mut self, address: SocketAddr) -> Outcome<usize> {
        let mut client = Client::connect(address)?;
        inspect::state(&mut client, self)?;
        let repeated = self.pending() + self.agents.iter().map(|agent| agent.recent.len()).sum::<usize>();
        self.everybody(|team, agent, shared| repeat(address, team, agent, shared))?;
        inspect::state(&mut client, self)?;
        self.everybody(|team, agent, shared| empty_inbox(address, team, agent, shared))?;
        inspect::messages(self)?;
        Ok(repeated)
    }

    /// Does `what` as every agent at the same time.
    fn everybody(&mut self, what: impl Fn(&str, &mut Agent, &Shared) -> Outcome + Sync) -> Outcome {
        let Self { name, agents, shared, .. } = self;
        let (name, shared, what) = (&*name, &*shared, &what);
        let ended: Vec<Outcome> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                agents.iter_mut().map(|agent| scope.spawn(move || what(name, agent, shared))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Outcome>| {
                thread.join().unwrap_or_else(|_| Err(Torment::broken("an agent panicked")))
            };
            threads.into_iter().map(join).collect()
        });
        let broken = |why| match why {
            Torment::Broken(why) => Torment::Broken(format!("team {name}: {why}")),
            other => other,
        };
        ended.into_iter().collect::<Outcome>().map_err(broken)
    }
}

fn number_of(name: &str) -> u64 {
    name.bytes().fold(0, |number, byte| number.wrapping_mul(31).wrapping_add(byte.into()))
}

fn work(address: SocketAddr, team: &str, agent: &mut Agent, shared: &Shared, random: &mut StdRng) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let call = agent.next(random, shared);
        say(&mut client, team, agent, &call, shared)?;
    }
}

fn say(client: &mut Client, team: &str, agent: &mut Agent, call: &Call, shared: &Shared) -> Outcome {
    let (tool, arguments) = call.wish.tool(team, &agent.name);
    let answer = client.call(tool, &arguments, Some((&call.id, call.id_by)))?;
    agent.acknowledge(answer, shared)
}

/// Says again what was not answered, then what was.
fn repeat(address: SocketAddr, team: &str, agent: &mut Agent, shared: &Shared) -> Outcome {
    let mut client = Client::connect(address)?;
    if let Some(mut call) = agent.pending.clone() {
        if let Wish::Acquire { wait_seconds, .. } = &mut call.wish {
            // Whoever has to come back anyway need not wait now.
            *wait_seconds = 0;
        }
        say(&mut client, team, agent, &call, shared)?;
    }
    for (call, first) in &agent.recent {
        let (tool, arguments) = call.wish.tool(team, &agent.name);
        let again = client.call(tool, &arguments, Some((&call.id, call.id_by)))?;
        if again != *first {
            return Err(Torment::broken(format!(
                "{}: {call:?} was repeated and answered with {}, at first with {}",
                agent.name, again.value, first.value
            )));
        }
    }
    Ok(())
}

fn empty_inbox(address: SocketAddr, team: &str, agent: &mut Agent, shared: &Shared) -> Outcome {
    let mut client = Client::connect(address)?;
    while agent.registered {
        let call = agent.intend(Wish::Read, shared);
        let (tool, arguments) = call.wish.tool(team, &agent.name);
        let answer = client.call(tool, &arguments, Some((&call.id, call.id_by)))?;
        let is_empty = answer.value["messages"].as_array().is_none_or(Vec::is_empty);
        agent.acknowledge(answer, shared)?;
        if is_empty {
            return Ok(());
        }
    }
    Ok(())
}
