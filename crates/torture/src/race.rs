//! Several clients want one lock at the same instant.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Barrier;

use serde_json::json;

use crate::client::Client;
use crate::server::Server;
use crate::{Outcome, Torment};

/// How they ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// As clients of A2AMCP do: `announce_file_change`.
    Announce,
    /// As clients of our own toolset do: `lock_acquire`.
    Acquire,
}

impl Door {
    fn tool(self) -> &'static str {
        match self {
            Self::Announce => "announce_file_change",
            Self::Acquire => "lock_acquire",
        }
    }

    /// Wants `path` and answers whether it was granted.
    fn wants(self, client: &mut Client, session: &str, path: &str) -> Outcome<bool> {
        let arguments = match self {
            Self::Announce => json!({
                "project_id": "race", "session_name": session, "file_path": path, "change_type": "modify",
                "description": "race",
            }),
            Self::Acquire => json!({"project": "race", "session": session, "path": path}),
        };
        let answer = client.call(self.tool(), &arguments, None)?;
        match answer.refused.as_deref() {
            None => Ok(true),
            Some("conflict" | "locked") => Ok(false),
            Some(code) => Err(Torment::broken(format!("{session} was refused as {code}: {}", answer.value))),
        }
    }
}

/// Who won how often.
#[derive(Debug)]
pub struct Report {
    door: Door,
    clients: usize,
    /// How many won each round.
    winners: Vec<usize>,
    wins: Vec<usize>,
}

impl Report {
    /// In how many rounds there was not exactly one winner.
    pub fn unfair_rounds(&self) -> usize {
        self.winners.iter().filter(|winners| **winners != 1).count()
    }

    /// How many rounds there were.
    pub fn rounds(&self) -> usize {
        self.winners.len()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} clients, {} rounds, {} rounds without exactly one winner; rounds won by each client: {:?}",
            self.door.tool(),
            self.clients,
            self.rounds(),
            self.unfair_rounds(),
            self.wins
        )
    }
}

/// Lets `clients` race for a lock `rounds` times, each for a path that nobody has held before.
pub fn run(binary: &Path, door: Door, clients: usize, rounds: usize) -> Outcome<Report> {
    let data = tempfile::Builder::new().prefix("switchboard-race-").tempdir();
    let data = data.map_err(Torment::stuck("making a data directory"))?;
    let server = Server::start(binary, data.path())?;
    let start = Barrier::new(clients);
    let outcomes: Vec<Outcome<Vec<bool>>> = std::thread::scope(|scope| {
        let racing: Vec<_> = (0..clients)
            .map(|index| {
                let (start, address) = (&start, server.address);
                scope.spawn(move || race(address, door, index, rounds, start))
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Outcome<Vec<bool>>>| {
            thread.join().unwrap_or_else(|_| Err(Torment::broken("a client panicked")))
        };
        racing.into_iter().map(join).collect()
    });
    let won: Vec<Vec<bool>> = outcomes.into_iter().collect::<Outcome<_>>()?;
    holders_are_winners(server.address, &won, rounds)?;
    let count = |wins: &mut dyn Iterator<Item = bool>| wins.filter(|won| *won).count();
    Ok(Report {
        door,
        clients,
        winners: (0..rounds).map(|round| count(&mut won.iter().map(|rounds| rounds[round]))).collect(),
        wins: won.iter().map(|rounds| count(&mut rounds.iter().copied())).collect(),
    })
}

fn name(index: usize) -> String {
    format!("racer{index}")
}

fn path(round: usize) -> String {
    format!("src/round{round}.rs")
}

fn race(address: SocketAddr, door: Door, index: usize, rounds: usize, start: &Barrier) -> Outcome<Vec<bool>> {
    let session = name(index);
    let ready = || {
        let mut client = Client::connect(address)?;
        client.call("agent_register", &json!({"project": "race", "session": session}), None)?;
        Ok(client)
    };
    let mut client: Outcome<Client> = ready();
    let mut won = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // Whoever is out still comes to the start, else the others would wait there for ever.
        start.wait();
        if let Ok(racer) = &mut client {
            match door.wants(racer, &session, &path(round)) {
                Ok(granted) => won.push(granted),
                Err(out) => client = Err(out),
            }
        }
    }
    client.map(|_| won)
}

/// The server's own list names the winners as holders.
fn holders_are_winners(address: SocketAddr, won: &[Vec<bool>], rounds: usize) -> Outcome {
    let answer = Client::connect(address)?.call("lock_list", &json!({"project": "race"}), None)?;
    let held = answer.value["held"].as_array().map(Vec::as_slice).unwrap_or_default();
    for round in 0..rounds {
        let holders: Vec<&str> = held
            .iter()
            .filter(|lock| lock["path"] == path(round))
            .filter_map(|lock| lock["session"].as_str())
            .collect();
        let is_holder = |index: &usize| holders.contains(&&*name(*index));
        let winners: Vec<usize> = (0..won.len()).filter(|index| won[*index][round]).collect();
        if winners.len() == 1 && !(holders.len() == 1 && winners.iter().all(is_holder)) {
            return Err(Torment::broken(format!(
                "round {round}: {winners:?} was granted the lock, the server says that {holders:?} hold it"
            )));
        }
    }
    Ok(())
}
