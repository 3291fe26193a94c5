//! `kill -9`, again and again, on one data directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::server::Server;
use crate::team::Team;
use crate::{Outcome, Torment};

/// What is done to the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server.
    pub binary: PathBuf,
    /// How often it is killed under load.
    pub rounds: u32,
    /// Gives the same choices of the clients and the same moments. What meets what is up to the machine.
    pub seed: u64,
    /// What happens to the data directory between two lives of the server. Nothing, except where this harness is itself
    /// under test.
    pub meddle: fn(&Path),
}

/// How many projects there are, and how many agents in each.
const TEAMS: usize = 2;
const TEAM_SIZE: usize = 6;

/// What the server endured.
#[derive(Debug, Default)]
pub struct Report {
    rounds: u32,
    killed_while_starting: u32,
    acknowledged: u64,
    unanswered: usize,
    repeated: usize,
    answered_in: Vec<Duration>,
}

impl Report {
    /// The slowest start to a first answer.
    pub fn slowest_start(&self) -> Duration {
        self.answered_in.iter().max().copied().unwrap_or_default()
    }

    /// The start than which so many of a hundred were faster.
    pub fn start_at(&self, hundredth: usize) -> Duration {
        let mut times = self.answered_in.clone();
        times.sort_unstable();
        times.get(times.len() * hundredth / 100).copied().unwrap_or_default()
    }

    /// How many calls the server acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// How many calls were under way when the server died.
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        writeln!(
            f,
            "killed under load           {} times, while starting {}",
            self.rounds, self.killed_while_starting
        )?;
        writeln!(f, "calls acknowledged          {}, every one of them kept", self.acknowledged)?;
        writeln!(f, "calls under way when killed {}, each either done or not", self.unanswered)?;
        writeln!(f, "calls repeated              {}, none with a second effect", self.repeated)?;
        write!(
            f,
            "restart to first answer     median {:.0} ms, of 100 the slowest {:.0} ms, of all {:.0} ms (target: 1000 ms)",
            millis(self.start_at(50)),
            millis(self.start_at(99)),
            millis(self.slowest_start())
        )
    }
}

/// Kills the server in every round, and compares. The data is in a directory of its own.
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
        let mut server = Server::start(&options.binary, data)?;
        let mut teams: Vec<Team> =
            (0..TEAMS).map(|index| Team::new(format!("team{index}"), TEAM_SIZE)).collect();
        for team in &mut teams {
            team.gather(server.address)?;
        }
        for round in 0..options.rounds {
            let mut random = StdRng::seed_from_u64(options.seed.wrapping_add(u64::from(round) << 32));
            server = one_round(options, data, server, &mut teams, &mut random, &mut report)?;
            report.rounds += 1;
            progress(report.rounds);
        }
        Ok(())
    };
    let done = all_rounds();
    let round = report.rounds + 1;
    done.map(|()| report)
        .map_err(|why| Torment::broken(format!("{why}\nin round {round} with seed {}", options.seed)))
}

fn one_round(
    options: &Options,
    data: &Path,
    server: Server,
    teams: &mut [Team],
    random: &mut StdRng,
    report: &mut Report,
) -> Outcome<Server> {
    let before: u64 = teams.iter().map(|team| team.shared.answered()).sum();
    let address = server.address;
    let seeds: Vec<u64> = teams.iter().map(|_| random.random()).collect();
    let life = Duration::from_micros(random.random_range(2_000..400_000));
    std::thread::scope(|scope| {
        let working: Vec<_> = teams
            .iter_mut()
            .zip(seeds)
            .map(|(team, seed)| {
                team.begin_round();
                scope.spawn(move || team.work(address, seed))
            })
            .collect();
        std::thread::sleep(life);
        server.kill();
        working
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Torment::broken("a team panicked"))))
    })?;
    report.acknowledged += teams.iter().map(|team| team.shared.answered()).sum::<u64>() - before;
    report.unanswered += teams.iter().map(Team::pending).sum::<usize>();

    while random.random_ratio(1, 6) {
        let life = Duration::from_micros(random.random_range(0..80_000));
        Server::start_and_kill(&options.binary, data, &[], life)?;
        report.killed_while_starting += 1;
    }
    (options.meddle)(data);
    let server = Server::start(&options.binary, data)?;
    report.answered_in.push(server.answered_in);
    for team in teams {
        report.repeated += team.take_up(server.address)?;
    }
    Ok(server)
}
