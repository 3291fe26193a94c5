//! The machine alone: decide and apply, no journal, no network.

use std::hint::black_box;
use std::time::Instant;

use jiff::Timestamp;
use switchboard_coordination::{
    Acquire, AddTodo, ChangeType, FilePath, ListAgents, Name, Priority, Project, Register, ReleaseLock,
    Scope, SendMessage, TakeMessages, Text,
};
use switchboard_exchange::{Decide, Machine as _};

use crate::Pace;
use crate::report::{heading, rate, target};

const AGENTS: usize = 8;

pub(crate) fn run(pace: Pace) {
    heading("The machine alone: decide and apply, the same mix, one thread");
    let mut best = 0.0_f64;
    for _ in 0..pace.rounds {
        best = best.max(once(pace));
    }
    target("operations", &rate(best), ">= 1,000,000/s", best >= 1_000_000.0);
}

fn once(pace: Pace) -> f64 {
    let mut project = Project::new();
    let now = Timestamp::UNIX_EPOCH;
    let agents: Vec<Agent> = (0..AGENTS).map(Agent::new).collect();
    for agent in &agents {
        operate(&mut project, now, agent.register());
    }
    let began = Instant::now();
    let mut operations: u32 = 0;
    while began.elapsed() < pace.measure {
        for agent in &agents {
            operate(&mut project, now, agent.register());
            operate(&mut project, now, agent.announce());
            operate(&mut project, now, agent.release());
            operate(&mut project, now, agent.todo());
            operate(&mut project, now, ListAgents);
            operate(&mut project, now, agent.send());
            operate(&mut project, now, TakeMessages { session: agent.session.clone() });
            operations += 7;
        }
    }
    f64::from(operations) / began.elapsed().as_secs_f64()
}

fn operate<C>(project: &mut Project, now: Timestamp, command: C)
where
    Project: Decide<C>,
{
    let decision = project.decide(now, &command).expect("the mix breaks no rule");
    for event in &decision.events {
        project.apply(event);
    }
    if let Some(event) = project.observe(now, &command, true) {
        project.apply(&event);
    }
    black_box(decision.reply);
}

struct Agent {
    session: Name,
    neighbour: Name,
    path: Name,
    text: Text,
}

impl Agent {
    fn new(index: usize) -> Self {
        let name = |text: String| Name::new(text).expect("a short name");
        Self {
            session: name(format!("task-{index:03}")),
            neighbour: name(format!("task-{:03}", (index + 1) % AGENTS)),
            path: name(format!("src/module_{index}/file.rs")),
            text: Text::new("Write the next part").expect("a short text"),
        }
    }

    fn register(&self) -> Register {
        Register {
            session: self.session.clone(),
            task_id: self.session.clone(),
            branch: self.text.clone(),
            description: self.text.clone(),
        }
    }

    fn scope(&self) -> Scope {
        Scope::literal(FilePath::parse(self.path.as_str()).expect("a plain path"))
    }

    fn announce(&self) -> Acquire {
        Acquire {
            session: self.session.clone(),
            scope: self.scope(),
            path: self.path.clone(),
            change_type: ChangeType::Modify,
            description: self.text.clone(),
            ttl: None,
            wait: false,
        }
    }

    fn release(&self) -> ReleaseLock {
        ReleaseLock { session: self.session.clone(), scope: self.scope(), token: None }
    }

    fn todo(&self) -> AddTodo {
        AddTodo { session: self.session.clone(), text: self.text.clone(), priority: Priority::Medium }
    }

    fn send(&self) -> SendMessage {
        SendMessage {
            session: self.session.clone(),
            to: Some(vec![self.neighbour.clone()]),
            message_type: self.session.clone(),
            content: self.text.clone(),
        }
    }
}
