//! What the tests share: a clock, a target that does as it is told, and a server that comes and goes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use switchboard_exchange::{Clock, Exchange, Options};
use switchboard_journal::MemoryJournal;
use switchboard_schedule::{
    Address, Delivery, Manners, Message, Missed, NodeId, Outcome, Overlap, Retry, ScheduleId, Schedules,
    Settings, Spec, Target, Targets, Timing,
};
use tokio::time::{Instant, sleep, sleep_until};

/// When every test begins, in milliseconds since 1970.
pub(crate) const BEGIN: i64 = 1_800_000_000_000;

/// The runtime's time.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(BEGIN).unwrap() + SignedDuration::try_from(self.0.elapsed()).unwrap()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let wait = deadline.duration_since(self.now()).max(SignedDuration::ZERO);
        sleep(wait.unsigned_abs()).boxed()
    }
}

/// What a target does with a delivery.
#[derive(Debug, Clone)]
pub(crate) enum Course {
    /// It takes it.
    Take,
    /// It takes it after a while.
    TakeAfter(Duration),
    /// It answers that.
    Say(Outcome),
    /// It never answers.
    Hang,
}

/// One delivery that reached the target.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) key: Arc<str>,
    pub(crate) to: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) due_ms: i64,
    pub(crate) at_ms: i64,
}

impl Arrival {
    pub(crate) fn late_ms(&self) -> i64 {
        self.at_ms - self.due_ms
    }
}

type Course1 = dyn Fn(&Delivery) -> Course + Send + Sync;

/// A target that notes what reaches it.
pub(crate) struct Post {
    clock: Arc<RuntimeClock>,
    manners: Manners,
    course: Box<Course1>,
    arrivals: Mutex<Vec<Arrival>>,
    /// Calls under way, and the most there ever were, to each destination and to all.
    places: Mutex<BTreeMap<Arc<str>, (usize, usize)>>,
}

impl Post {
    fn enter(&self, place: &Arc<str>) {
        let mut places = self.places.lock().unwrap();
        let (now, most) = places.entry(place.clone()).or_default();
        *now += 1;
        *most = (*most).max(*now);
    }

    fn leave(&self, place: &Arc<str>) {
        self.places.lock().unwrap().get_mut(place).unwrap().0 -= 1;
    }
}

/// A call that is under way until it is dropped.
struct Place<'a>(&'a Post, [Arc<str>; 2]);

impl<'a> Place<'a> {
    fn take(post: &'a Post, to: &Arc<str>) -> Self {
        let places = [to.clone(), Arc::from(ALL)];
        for place in &places {
            post.enter(place);
        }
        Self(post, places)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        for place in &self.1 {
            self.0.leave(place);
        }
    }
}

const ALL: &str = "";

/// The kind of the target, as the service sees it.
struct Kind(Arc<Post>);

pub(crate) const KIND: &str = "post";

impl Target for Kind {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn manners(&self) -> Manners {
        self.0.manners.clone()
    }

    fn check(&self, to: &str, _message: &Message) -> Result<(), String> {
        if to == "nobody" { Err("nobody is not there".to_owned()) } else { Ok(()) }
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        let post = &*self.0;
        async move {
            let _place = Place::take(post, &deliveries[0].address.to);
            let at_ms = post.clock.now().as_millisecond();
            let arrival = |delivery: &Delivery| Arrival {
                key: delivery.key.clone(),
                to: delivery.address.to.clone(),
                attempt: delivery.attempt,
                due_ms: delivery.due_ms,
                at_ms,
            };
            post.arrivals.lock().unwrap().extend(deliveries.iter().map(arrival));
            let mut outcomes = Vec::new();
            for delivery in &deliveries {
                outcomes.push(match (post.course)(delivery) {
                    Course::Take => Outcome::delivered(),
                    Course::Say(outcome) => outcome,
                    Course::Hang => std::future::pending().await,
                    Course::TakeAfter(delay) => {
                        sleep(delay).await;
                        Outcome::delivered()
                    }
                });
            }
            outcomes
        }
        .boxed()
    }
}

/// How the target of most tests is called: one at a time to each of many destinations, with short pauses.
pub(crate) fn manners() -> Manners {
    Manners {
        ordered: false,
        at_once: 16,
        per_group: 4,
        batch: 1,
        timeout: Duration::from_secs(10),
        retry: Retry { first_ms: 1_000, factor: 2, max_ms: 60_000, attempts: Some(4) },
    }
}

/// A data directory, a clock and a target: what outlives a server.
pub(crate) struct Stage {
    journal: Arc<MemoryJournal>,
    post: Arc<Post>,
    by_pass: bool,
    pub(crate) schedules: Schedules,
    lives: u32,
}

impl Stage {
    /// With a server that runs.
    pub(crate) async fn new(course: impl Fn(&Delivery) -> Course + Send + Sync + 'static) -> Self {
        Self::with(manners(), false, course).await
    }

    pub(crate) async fn with(
        manners: Manners,
        by_pass: bool,
        course: impl Fn(&Delivery) -> Course + Send + Sync + 'static,
    ) -> Self {
        let post = Arc::new(Post {
            clock: Arc::new(RuntimeClock(Instant::now())),
            manners,
            course: Box::new(course),
            arrivals: Mutex::default(),
            places: Mutex::default(),
        });
        let journal = Arc::new(MemoryJournal::new());
        let schedules = serve(&journal, &post, by_pass, 0).await;
        Self { journal, post, by_pass, schedules, lives: 0 }
    }

    /// Ends the server in good order, giving deliveries that long, and starts another on the same data `after` a while.
    pub(crate) async fn restart(&mut self, at_most: Duration, after: Duration) {
        self.schedules.stop(at_most).await;
        sleep(after).await;
        self.lives += 1;
        self.schedules = serve(&self.journal, &self.post, self.by_pass, self.lives).await;
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.post.clock.now().as_millisecond()
    }

    /// Lets time pass until `seconds` after the beginning.
    pub(crate) async fn until(&self, seconds: f64) {
        sleep_until(self.post.clock.0 + Duration::from_secs_f64(seconds)).await;
    }

    /// What has reached the target.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.post.arrivals.lock().unwrap().clone()
    }

    /// When what reached the target did, in seconds after the beginning.
    pub(crate) fn times(&self) -> Vec<f64> {
        self.arrivals().iter().map(|arrival| seconds(arrival.at_ms)).collect()
    }

    /// The most calls that were ever under way to `to`.
    pub(crate) fn most_at_once(&self, to: &str) -> usize {
        self.post.places.lock().unwrap().get(to).map_or(0, |(_, most)| *most)
    }

    /// The most calls that were ever under way.
    pub(crate) fn most_at_once_to_all(&self) -> usize {
        self.most_at_once(ALL)
    }

    pub(crate) async fn make(&self, spec: Spec) -> ScheduleId {
        self.schedules.create(spec, None).await.unwrap().id
    }
}

async fn serve(journal: &Arc<MemoryJournal>, post: &Arc<Post>, by_pass: bool, life: u32) -> Schedules {
    let targets = Targets::new([Arc::new(Kind(post.clone())) as Arc<dyn Target>]);
    let settings = Settings::of(&targets, if by_pass { &[KIND] } else { &[] });
    let exchange = Exchange::new(journal.clone(), post.clock.clone(), settings, Options::default());
    let schedules = Schedules::new(exchange, targets, NodeId(format!("life {life}").into()));
    schedules.start().await.unwrap();
    schedules
}

/// `at_ms` in seconds after the beginning.
pub(crate) fn seconds(at_ms: i64) -> f64 {
    f64::from(i32::try_from(at_ms - BEGIN).unwrap()) / 1_000.0
}

fn spec(to: &str, timing: Timing) -> Spec {
    Spec {
        name: "".into(),
        address: Address::new(KIND, to),
        message: Message::Text("wake up".into()),
        timing,
        value: "as written".into(),
        missed: Missed::Once,
        overlap: Overlap::Queue,
        max_repetitions: None,
        more: None,
    }
}

/// Due once, so many seconds after the beginning.
pub(crate) fn once(to: &str, seconds: i64) -> Spec {
    spec(to, Timing::once(BEGIN + seconds * 1_000))
}

/// Due every so many seconds from the beginning on.
pub(crate) fn every(to: &str, seconds: u64) -> Spec {
    spec(to, Timing::every(seconds * 1_000, BEGIN).unwrap())
}
