//! `kill -9`, again and again, while wake-up calls are due all the time.
//!
//! Checked: every schedule that was acknowledged is there, every due time of it reached the receiver, under one key however
//! often it was tried, and the history has one record of it. A cancellation that was acknowledged holds.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::client::Client;
use crate::kill::Options;
use crate::planner::Planner;
use crate::receiver::{Received, Receiver};
use crate::server::Server;
use crate::{Outcome, Torment};

/// How many clients make schedules.
const PLANNERS: usize = 4;

/// What the server endured.
#[derive(Debug, Default)]
pub struct Report {
    rounds: u32,
    killed_while_starting: u32,
    acknowledged: u64,
    unanswered: usize,
    repeated: usize,
    due: u64,
    cancelled: u64,
    received: Received,
    answered_in: Vec<Duration>,
}

impl Report {
    /// How many calls the server acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// How many calls were under way when the server died.
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// How many due times were checked.
    pub fn due(&self) -> u64 {
        self.due
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut starts = self.answered_in.clone();
        starts.sort_unstable();
        let start = |at: usize| starts.get(at).copied().unwrap_or_default().as_millis();
        writeln!(
            f,
            "killed under load           {} times, while starting {}",
            self.rounds, self.killed_while_starting
        )?;
        writeln!(f, "calls acknowledged          {}, every one of them kept", self.acknowledged)?;
        writeln!(
            f,
            "calls under way when killed {}, {} of them repeated, none with a second effect",
            self.unanswered, self.repeated
        )?;
        writeln!(f, "due times                   {}, each with one record, all delivered", self.due)?;
        writeln!(f, "cancelled in time           {}, none of them delivered", self.cancelled)?;
        writeln!(
            f,
            "calls of the receiver       {} keys, {} repeated, {} refused",
            self.received.taken, self.received.repeated, self.received.refused
        )?;
        write!(
            f,
            "restart to first answer     median {} ms, of all the slowest {} ms",
            start(starts.len() / 2),
            start(starts.len().saturating_sub(1))
        )
    }
}

/// Kills the server in every round, and compares at the end and on the way. The data is in a directory of its own.
///
/// # Errors
/// What the server broke, with the seed, the round and the data directory, which is then kept.
pub fn run(options: &Options, progress: impl FnMut(u32)) -> Outcome<Report> {
    let data = tempfile::Builder::new().prefix("switchboard-kill-").tempdir();
    let data = data.map_err(Torment::stuck("making a data directory"))?;
    run_in(data.path(), options, progress)
        .map_err(|why| Torment::broken(format!("{why}\nthe data is in {}", data.keep().display())))
}

/// The same, on the data directory `data`, which is the caller's to keep or not.
pub fn run_in(data: &Path, options: &Options, mut progress: impl FnMut(u32)) -> Outcome<Report> {
    let mut report = Report::default();
    let mut all_rounds = || -> Outcome {
        let receiver = Receiver::start()?;
        let host = receiver.address.to_string();
        let allowed = ["--webhook-host", host.as_str()];
        let start = || Server::start_with(&options.binary, data, &allowed);
        let mut planners: Vec<_> =
            (0..PLANNERS).map(|index| Planner::new(format!("planner{index}"))).collect();
        let mut server = start()?;
        for round in 0..options.rounds {
            let mut random = StdRng::seed_from_u64(options.seed.wrapping_add(u64::from(round) << 32));
            work_and_kill(server, &receiver, &mut planners, &mut random)?;
            report.unanswered += planners.iter().filter(|planner| planner.is_pending()).count();
            while random.random_ratio(1, 6) {
                let life = Duration::from_micros(random.random_range(0..80_000));
                Server::start_and_kill(&options.binary, data, &allowed, life)?;
                report.killed_while_starting += 1;
            }
            (options.meddle)(data);
            server = start()?;
            report.answered_in.push(server.answered_in);
            for planner in &mut planners {
                report.repeated += planner.take_up(server.address)?;
                planner.inspect(server.address, &receiver)?;
            }
            report.rounds += 1;
            progress(report.rounds);
        }
        for planner in &mut planners {
            planner.settle(server.address, &receiver)?;
        }
        nothing_was_made_twice(server.address)?;
        let sum = |count: fn(&Planner) -> u64| planners.iter().map(count).sum();
        report.acknowledged = sum(|planner| planner.acknowledged);
        report.due = sum(|planner| planner.due);
        report.cancelled = sum(|planner| planner.cancelled);
        report.received = receiver.received();
        Ok(())
    };
    let done = all_rounds();
    let round = report.rounds + 1;
    done.map(|()| report)
        .map_err(|why| Torment::broken(format!("{why}\nin round {round} with seed {}", options.seed)))
}

/// Every call that makes a schedule gives it a name of its own.
fn nothing_was_made_twice(server: SocketAddr) -> Outcome {
    let mut client = Client::connect(server)?;
    let mut names = HashSet::new();
    let mut after = Value::Null;
    loop {
        let mut arguments = json!({"status": "all", "limit": 1_000});
        if !after.is_null() {
            arguments["after"] = after;
        }
        let page = client.call("schedule_list", &arguments, None)?.value;
        for schedule in page["schedules"].as_array().into_iter().flatten() {
            if !names.insert(schedule["name"].to_string()) {
                return Err(Torment::broken(format!("a schedule was made twice: {schedule}")));
            }
        }
        after = page["next"].clone();
        if after.is_null() {
            return Ok(());
        }
    }
}

fn work_and_kill(
    server: Server,
    receiver: &Receiver,
    planners: &mut [Planner],
    random: &mut StdRng,
) -> Outcome {
    let address = server.address;
    let life = Duration::from_micros(random.random_range(2_000..400_000));
    std::thread::scope(|scope| {
        let working: Vec<_> = planners
            .iter_mut()
            .map(|planner| {
                let seed = random.random();
                scope.spawn(move || planner.work(address, receiver, seed))
            })
            .collect();
        std::thread::sleep(life);
        server.kill();
        working.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Torment::broken("a client panicked")))
        })
    })
}
