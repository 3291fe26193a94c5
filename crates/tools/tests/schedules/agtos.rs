//! agtOS's scheduler.

use serde_json::{Value, json};
use switchboard_exchange::Timestamp;

use crate::world::{Server, World, pass_time};

impl Server {
    async fn task(&self, tool: &str, arguments: Value) -> Value {
        let output = self.call(&format!("schedule.{tool}"), arguments).await;
        serde_json::from_str(&output.text).unwrap()
    }

    /// Makes a task that publishes on the topic `t`, and gives its number and when it runs first.
    async fn make(&self, name: &str, kind: &str, field: &str, value: Value) -> (Value, Timestamp) {
        let wish = json!({"name": name, "scheduleType": kind, field: value, "eventTopic": "t"});
        let made = self.task("create", wish).await;
        (made["taskId"].clone(), time_of(&made["nextRunAt"]))
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn time_of(milliseconds: &Value) -> Timestamp {
    Timestamp::from_millisecond(milliseconds.as_i64().unwrap()).unwrap()
}

/// An acceptance check of agtOS's contract.
#[tokio::test(start_paused = true)]
async fn check_13_a_cron_time_that_passes_while_down_is_skipped_and_a_once_is_made_up_for() {
    let world = World::at("2025-01-02T09:30:00Z");
    let server = world.start().await;
    let at = time("2025-01-02T10:45:00Z").as_millisecond();
    let (cron, first) = server.make("hourly", "cron", "expression", json!("0 * * * *")).await;
    let (once, _) = server.make("reminder", "once", "atTimestamp", json!(at)).await;
    assert_eq!(first, time("2025-01-02T10:00:00Z"));
    pass_time(60).await;
    assert_eq!(world.events(), ["2025-01-02T10:00:00Z hourly on t"]);
    server.stop().await;

    // From 10:30 to 12:20: two times of the one, and the only one of the other.
    pass_time(110).await;
    let server = world.start().await;
    pass_time(1).await;
    assert_eq!(world.events()[1..], ["2025-01-02T12:20:00Z reminder on t"]);
    let listed = server.task("list", json!({})).await;
    let [hourly, reminder] = &listed.as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!((&hourly["id"], &hourly["status"], &hourly["runCount"]), (&cron, &json!("active"), &json!(1)));
    assert_eq!(time_of(&hourly["nextRunAt"]), time("2025-01-02T13:00:00Z"));
    assert_eq!(
        (&reminder["id"], &reminder["status"], &reminder["runCount"], reminder.get("nextRunAt")),
        (&once, &json!("completed"), &json!(1), None)
    );

    // What was made up for is not made up for again, and the grid is the old one.
    server.stop().await;
    let server = world.start().await;
    assert_eq!(server.task("list", json!({})).await, listed);
    pass_time(60).await;
    assert_eq!(world.events()[2..], ["2025-01-02T13:00:00Z hourly on t"]);
    let listed = server.task("list", json!({"status": "active"})).await;
    assert_eq!((&listed[0]["id"], &listed[0]["runCount"]), (&cron, &json!(2)));
    let (newer, _) = server.make("newer", "cron", "expression", json!("@yearly")).await;
    assert!(![cron, once].contains(&newer));
}

/// At which times a task runs that is due at seven each morning in Berlin, from noon of `day` on.
async fn mornings_in_berlin(day: &str, mornings: u64) -> Vec<String> {
    let world = World::at(&format!("{day}T12:00:00Z")).in_zone("Europe/Berlin");
    let server = world.start().await;
    let (_, first) = server.make("wake", "cron", "expression", json!("0 7 * * *")).await;
    pass_time(24 * 60 * mornings).await;
    let events = world.events();
    assert_eq!(events[0], format!("{first} wake on t"), "it runs when it was said to");
    events
}

#[tokio::test(start_paused = true)]
async fn a_cron_expression_is_read_on_the_servers_clock() {
    assert_eq!(
        mornings_in_berlin("2025-03-28", 3).await,
        ["2025-03-29T06:00:00Z", "2025-03-30T05:00:00Z", "2025-03-31T05:00:00Z"]
            .map(|at| format!("{at} wake on t"))
    );
    assert_eq!(
        mornings_in_berlin("2025-10-24", 3).await,
        ["2025-10-25T05:00:00Z", "2025-10-26T06:00:00Z", "2025-10-27T06:00:00Z"]
            .map(|at| format!("{at} wake on t"))
    );
}
