//! What schedules call: targets that tell repetitions apart by their key, and do what the dice say.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use switchboard_schedule::{
    Delivery, Manners, Message, NodeId, OccurrenceId, Outcome, Retry, ScheduleId, Target, Targets,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::journal::Store;
use crate::schedules::books::Books;
use crate::trace::Trace;
use crate::world::lock;

/// The kind that is delivered by passes only.
pub const BY_PASS: &str = "prompt";

/// The kinds of targets of a run.
pub const KINDS: [&str; 4] = ["topic", "letter", "hook", BY_PASS];

/// How likely each behaviour is, from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moods {
    /// It does not take the delivery and says so.
    pub fail: f64,
    /// It takes the delivery and says that it did not.
    pub lie: f64,
    /// It never wants the delivery.
    pub refuse: f64,
    /// It does not answer.
    pub hang: f64,
    /// It answers late, perhaps after its time is up, or after the lease is over.
    pub slow: f64,
    /// It panics.
    pub panic: f64,
    /// It says nothing of some deliveries.
    pub silent: f64,
}

/// All targets of a run, whichever node calls them.
#[derive(Debug)]
pub struct Site {
    books: Arc<Mutex<Books>>,
    store: Mutex<Weak<Store>>,
    trace: Arc<Trace>,
    dice: Mutex<Dice>,
}

#[derive(Debug)]
struct Dice {
    rng: StdRng,
    moods: Moods,
}

impl Dice {
    fn roll(&mut self, rate: impl Fn(&Moods) -> f64) -> bool {
        let rate = rate(&self.moods);
        rate > 0.0 && self.rng.random_bool(rate)
    }
}

impl Site {
    /// Targets whose behaviour follows from `seed`.
    pub fn new(seed: u64, moods: Moods, books: Arc<Mutex<Books>>, trace: Arc<Trace>) -> Self {
        let dice = Dice { rng: StdRng::seed_from_u64(seed), moods };
        Self { books, store: Mutex::default(), trace, dice: Mutex::new(dice) }
    }

    /// Where broken rules are noted.
    pub fn report_to(&self, store: &Arc<Store>) {
        *lock(&self.store) = Arc::downgrade(store);
    }

    /// From now on every delivery succeeds at once.
    pub fn heal(&self) {
        lock(&self.dice).moods = Moods::default();
    }

    /// The kinds of targets there are, to be asked for their manners only.
    pub fn kinds() -> impl Iterator<Item = Arc<dyn Target>> {
        KINDS.into_iter().map(|kind| Arc::new(Kind(kind)) as Arc<dyn Target>)
    }

    /// The targets as `node` reaches them until it is `dead`.
    pub fn targets(self: &Arc<Self>, node: &NodeId, dead: &CancellationToken) -> Targets {
        Targets::new(KINDS.map(|kind| {
            let target = SimTarget { kind, site: self.clone(), node: node.clone(), dead: dead.clone() };
            Arc::new(target) as Arc<dyn Target>
        }))
    }

    fn broken(&self, rules: Vec<String>) {
        if let Some(store) = lock(&self.store).upgrade() {
            for rule in rules {
                store.note_broken(rule);
            }
        }
    }
}

/// What a kind of target is like.
pub fn manners(kind: &str) -> Manners {
    let retry = |attempts, factor| Retry { first_ms: 500, factor, max_ms: 20_000, attempts };
    let manners = |ordered, at_once, per_group, batch, timeout_s, retry| Manners {
        ordered,
        at_once,
        per_group,
        batch,
        timeout: Duration::from_secs(timeout_s),
        retry,
    };
    match kind {
        "topic" => manners(false, 4, 2, 3, 5, retry(Some(4), 2)),
        "letter" => manners(true, 3, 1, 1, 45, retry(Some(6), 2)),
        "hook" => manners(false, 2, 1, 1, 100, retry(None, 3)),
        _ => manners(true, 2, 1, 1, 20, retry(Some(3), 1)),
    }
}

/// A kind of target that nobody calls.
struct Kind(&'static str);

impl Target for Kind {
    fn kind(&self) -> &'static str {
        self.0
    }

    fn manners(&self) -> Manners {
        manners(self.0)
    }

    fn check(&self, _to: &str, _message: &Message) -> Result<(), String> {
        Ok(())
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        std::future::ready(deliveries.iter().map(|_| Outcome::delivered()).collect()).boxed()
    }
}

struct SimTarget {
    kind: &'static str,
    site: Arc<Site>,
    node: NodeId,
    dead: CancellationToken,
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy)]
enum Course {
    Answers,
    AnswersAfter(Duration),
    Hangs,
    Panics,
}

/// What becomes of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Takes,
    Fails,
    Lies,
    Refuses,
}

/// Calls that are under way; those that are given up end too.
struct Calls<'a> {
    site: &'a Site,
    numbers: Vec<u64>,
}

impl Drop for Calls<'_> {
    fn drop(&mut self) {
        let mut books = lock(&self.site.books);
        for number in self.numbers.drain(..) {
            books.end(number, None);
        }
    }
}

impl Target for SimTarget {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn manners(&self) -> Manners {
        manners(self.kind)
    }

    fn check(&self, _to: &str, _message: &Message) -> Result<(), String> {
        Ok(())
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        self.call(deliveries).boxed()
    }
}

impl SimTarget {
    async fn call(&self, deliveries: Vec<Delivery>) -> Vec<Outcome> {
        self.alive().await;
        let mut calls = self.begin(&deliveries);
        let course = self.course();
        let moods: Vec<Mood> = deliveries.iter().map(|_| self.mood()).collect();
        let first = &deliveries[0];
        self.site.trace.note(format_args!(
            "{} calls {} for {} and {} more, attempt {}: {course:?}, {moods:?}",
            self.node.0,
            first.address,
            first.key,
            deliveries.len() - 1,
            first.attempt
        ));
        // Taken at once or after a while, whatever becomes of the answer.
        let at_once = lock(&self.site.dice).rng.random_bool(0.5);
        if at_once {
            self.take(&deliveries, &moods);
        }
        match course {
            Course::Answers => {}
            Course::AnswersAfter(delay) => sleep(delay).await,
            Course::Hangs => std::future::pending().await,
            Course::Panics => std::panic::resume_unwind(Box::new("simulated: a target panics")),
        }
        self.alive().await;
        if !at_once {
            self.take(&deliveries, &moods);
        }
        let said = if lock(&self.site.dice).roll(|moods| moods.silent) { 0 } else { deliveries.len() };
        let mut books = lock(&self.site.books);
        for ((delivery, mood), number) in deliveries.iter().zip(&moods).zip(calls.numbers.drain(..)) {
            let told = (*mood == Mood::Takes && said > 0).then(|| occurrence(delivery));
            books.end(number, told);
        }
        moods.iter().take(said).map(|mood| self.say(*mood)).collect()
    }

    /// Nothing a node does after its crash reaches anybody.
    async fn alive(&self) {
        if self.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    fn begin(&self, deliveries: &[Delivery]) -> Calls<'_> {
        let mut calls = Calls { site: &self.site, numbers: Vec::new() };
        for delivery in deliveries {
            let (key, address) = (&delivery.key, &delivery.address);
            let (number, broken) = lock(&self.site.books).begin(
                &self.node,
                key,
                occurrence(delivery),
                delivery.attempt,
                address,
            );
            calls.numbers.push(number);
            self.site.broken(broken);
        }
        calls
    }

    fn course(&self) -> Course {
        let mut dice = lock(&self.site.dice);
        if dice.roll(|moods| moods.hang) {
            Course::Hangs
        } else if dice.roll(|moods| moods.slow) {
            let longest = if dice.rng.random_bool(0.3) { 90_000 } else { 4_000 };
            Course::AnswersAfter(Duration::from_millis(dice.rng.random_range(1..longest)))
        } else if dice.roll(|moods| moods.panic) {
            Course::Panics
        } else {
            Course::Answers
        }
    }

    fn mood(&self) -> Mood {
        let mut dice = lock(&self.site.dice);
        if dice.roll(|moods| moods.fail) {
            Mood::Fails
        } else if dice.roll(|moods| moods.lie) {
            Mood::Lies
        } else if dice.roll(|moods| moods.refuse) {
            Mood::Refuses
        } else {
            Mood::Takes
        }
    }

    fn take(&self, deliveries: &[Delivery], moods: &[Mood]) {
        let mut books = lock(&self.site.books);
        for (delivery, mood) in deliveries.iter().zip(moods) {
            if matches!(mood, Mood::Takes | Mood::Lies) {
                books.accept(&delivery.key);
            }
        }
    }

    fn say(&self, mood: Mood) -> Outcome {
        match mood {
            Mood::Takes => Outcome::Delivered { reply: Some("thanks".to_owned()) },
            Mood::Refuses => Outcome::refused("simulated: no such thing"),
            Mood::Fails | Mood::Lies => {
                let mut dice = lock(&self.site.dice);
                let retry_after = dice.rng.random_bool(0.2).then(|| Duration::from_secs(3));
                Outcome::Failed { error: "simulated: not now".to_owned(), permanent: false, retry_after }
            }
        }
    }
}

fn occurrence(delivery: &Delivery) -> OccurrenceId {
    OccurrenceId { due_ms: delivery.due_ms, schedule: ScheduleId::new(delivery.schedule) }
}
