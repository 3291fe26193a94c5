//! Schedules over REST, in our words and in agtOS's.

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_bus::{Filter, Pattern};
use switchboard_server::Options;

use crate::support::{OWNER, SOON, Server, json_of};

impl Server {
    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        json_of(self.request(method, path).json(body).send().await.unwrap()).await
    }

    async fn json(&self, path: &str) -> (u16, Value) {
        json_of(self.get(path).await).await
    }

    /// The number of a new schedule that publishes hourly.
    async fn hourly(&self) -> u64 {
        let wish = json!({"name": "hourly", "target": {"kind": "topic", "to": "tick"}, "cron": "0 * * * *", "message": {"n": 1}});
        let (status, made) = self.send(Method::POST, "/api/schedules", &wish).await;
        assert_eq!(status, 201, "{made}");
        made["schedule"]["id"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn a_schedule_is_made_changed_and_ended() {
    let server = Server::start().await;
    let id = server.hourly().await;
    let path = format!("/api/schedules/{id}");

    let (status, seen) = server.json(&path).await;
    assert_eq!(status, 200);
    assert_eq!(seen["schedule"]["cron"], "0 * * * *");
    assert_eq!(seen["schedule"]["time_zone"], "UTC");
    assert_eq!(seen["schedule"]["status"], "active");
    assert_eq!(seen["upcoming"].as_array().unwrap().len(), 3, "{seen}");
    assert_eq!(seen["occurrences"], json!([]));

    let change = json!({"cron": "30 6 * * *", "time_zone": "Europe/Berlin", "overlap": "skip"});
    let (status, changed) = server.send(Method::PATCH, &path, &change).await;
    assert_eq!((status, &changed["schedule"]["time_zone"]), (200, &json!("Europe/Berlin")), "{changed}");
    assert_eq!(changed["schedule"]["name"], "hourly");
    assert!(changed["upcoming"][0]["local"].as_str().unwrap().contains("T06:30:00"), "{changed}");

    let (_, paused) = server.send(Method::POST, &format!("{path}/pause"), &Value::Null).await;
    assert_eq!(paused["schedule"]["status"], "paused");
    let (_, resumed) = server.send(Method::POST, &format!("{path}/resume"), &Value::Null).await;
    assert_eq!(resumed["schedule"]["status"], "active");

    let (_, cancelled) = server.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await;
    assert_eq!(cancelled, json!({"id": id, "status": "cancelled", "was_cancelled_before": false}));
    let (_, again) = server.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await;
    assert_eq!(again["was_cancelled_before"], true);
    let (status, ended) = server.send(Method::PATCH, &path, &json!({"name": "x"})).await;
    assert_eq!((status, &ended["error"]["code"]), (409, &json!("schedule_ended")));

    assert_eq!(server.json("/api/schedules").await.1["schedules"], json!([]));
    let (_, all) = server.json("/api/schedules?status=all").await;
    assert_eq!(all["schedules"][0]["id"], id);
    let (_, deleted) = server.send(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(deleted, json!({"id": id, "status": "deleted"}));
    let (status, gone) = server.json(&path).await;
    assert_eq!((status, &gone["error"]["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn what_is_run_by_hand_is_delivered_and_its_occurrence_told() {
    let server = Server::start().await;
    let id = server.hourly().await;
    let (status, ran) =
        server.send(Method::POST, &format!("/api/schedules/{id}/run?wait_seconds=10"), &Value::Null).await;
    assert_eq!(status, 200, "{ran}");
    assert_eq!((&ran["over"], &ran["occurrence"]["fate"]), (&json!(true), &json!("delivered")), "{ran}");

    let (_, seen) = server.json(&format!("/api/schedules/{id}")).await;
    assert_eq!(seen["occurrences"][0], ran["occurrence"]);
    // What is done by hand is no repetition.
    assert_eq!(seen["schedule"]["delivered"], 0);
    let (_, all) = server.json("/api/occurrences").await;
    assert_eq!(all["occurrences"], json!([ran["occurrence"]]));

    let metrics = server.get("/metrics").await.text().await.unwrap();
    let delivered = "schedule_deliveries_total{kind=\"topic\"} 1";
    assert!(metrics.lines().any(|line| line.ends_with(delivered)), "{metrics}");

    let ticks = Filter::any_of([Pattern::new("tick").unwrap()]).unwrap();
    let page = server.bus.latest(&ticks, 10.try_into().unwrap()).await.unwrap();
    let event: Value = serde_json::from_str(page.events[0].data.get()).unwrap();
    assert_eq!((&event["taskId"], &event["payload"]), (&json!(format!("task-{id}")), &json!({"n": 1})));
}

#[tokio::test]
async fn a_wish_that_cannot_be_fulfilled_is_refused_in_words() {
    let server = Server::start().await;
    let target = json!({"kind": "topic", "to": "tick"});
    for (wish, status, code, word) in [
        (json!({"target": target}), 400, "invalid_arguments", "exactly one of at"),
        (json!({"target": target, "cron": "61 * * * *"}), 400, "invalid_arguments", "no minute"),
        (json!({"target": target, "every": "5x"}), 400, "invalid_arguments", "no duration"),
        (
            json!({"target": target, "every": "5m", "time_zone": "Berlin"}),
            400,
            "invalid_arguments",
            "Europe/Berlin",
        ),
        (json!({"target": {"kind": "pigeon", "to": "x"}, "every": "5m"}), 400, "invalid_arguments", "pigeon"),
        (json!({"target": {"kind": "topic", "to": "a.*"}, "every": "5m"}), 400, "invalid_arguments", "topic"),
        (json!({"target": target, "cron": "0 0 30 2 *"}), 400, "never_due", "never"),
        (json!({"target": target, "every": "5m", "tempo": 1}), 400, "bad_json", "tempo"),
    ] {
        let (seen, answer) = server.send(Method::POST, "/api/schedules", &wish).await;
        assert_eq!((seen, &answer["error"]["code"]), (status, &json!(code)), "{wish}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{wish}: {message}");
    }
    for (path, status, word) in [
        ("/api/schedules?status=sleepy", 400, "'sleepy' is no status"),
        ("/api/schedules?limit=0", 400, "limit is 0"),
        ("/api/schedules/abc", 400, "'abc' is no number"),
        ("/api/schedules/999", 404, "999"),
    ] {
        let (seen, answer) = server.json(path).await;
        assert_eq!(seen, status, "{path}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(word), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_repeated_call_makes_one_schedule() {
    let server = Server::start().await;
    let wish = json!({"target": {"kind": "topic", "to": "tick"}, "every": "1h"});
    let mut ids = Vec::new();
    for _ in 0..2 {
        let request = server.request(Method::POST, "/api/schedules").header("idempotency-key", "once");
        let (_, made) = json_of(request.json(&wish).send().await.unwrap()).await;
        ids.push(made["schedule"]["id"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(server.json("/api/schedules").await.1["schedules"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn pages_of_schedules_follow_each_other() {
    let server = Server::start().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(server.hourly().await);
    }
    let (mut seen, mut path) = (Vec::new(), "/api/schedules?limit=2".to_owned());
    loop {
        let (_, page) = server.json(&path).await;
        seen.extend(
            page["schedules"].as_array().unwrap().iter().map(|schedule| schedule["id"].as_u64().unwrap()),
        );
        match page["next"].as_u64() {
            Some(next) => path = format!("/api/schedules?limit=2&after={next}"),
            None => break,
        }
    }
    made.sort_unstable();
    assert_eq!(seen, made);
}

#[tokio::test]
async fn a_preview_makes_nothing() {
    let server = Server::start().await;
    let wish = json!({"cron": "30 9 * * MON-FRI", "time_zone": "America/New_York", "count": 2});
    let (status, preview) = server.send(Method::POST, "/api/schedules/preview", &wish).await;
    assert_eq!((status, &preview["time_zone"]), (200, &json!("America/New_York")));
    assert_eq!(preview["upcoming"].as_array().unwrap().len(), 2);
    assert_eq!(server.json("/api/schedules").await.1["schedules"], json!([]));
}

#[tokio::test]
async fn an_import_is_tried_first_and_done_once() {
    let server = Server::start().await;
    let wish = |source: &str| {
        json!({"source": source, "target": {"kind": "topic", "to": "tick"}, "message": "x", "every": "1h",
               "next": "2999-01-01T00:00:00Z", "delivered": 4})
    };
    let unknown = json!({"source": "c", "target": {"kind": "pigeon", "to": "x"}, "message": "x", "every": "1h",
                         "next": "2999-01-01T00:00:00Z"});
    let body = |apply| json!({"schedules": [wish("a"), wish("b"), unknown], "apply": apply});
    let outcomes = |answer: &Value| -> Vec<String> {
        let all = answer["schedules"].as_array().unwrap().iter();
        all.map(|one| one["outcome"].as_str().unwrap().to_owned()).collect()
    };
    let (_, tried) = server.send(Method::POST, "/api/schedules/import", &body(false)).await;
    assert_eq!(outcomes(&tried), ["new", "new", "refused"], "{tried}");
    assert_eq!(server.json("/api/schedules").await.1["schedules"], json!([]));
    let (_, done) = server.send(Method::POST, "/api/schedules/import", &body(true)).await;
    assert_eq!(outcomes(&done), ["imported", "imported", "refused"]);
    let (_, again) = server.send(Method::POST, "/api/schedules/import", &body(true)).await;
    assert_eq!(outcomes(&again), ["imported_before", "imported_before", "refused"]);
    let (_, listed) = server.json("/api/schedules").await;
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2);
    assert_eq!(listed["schedules"][0]["delivered"], 4);
}

#[tokio::test]
async fn a_task_of_agtos_is_a_schedule_and_a_schedule_is_a_task() {
    let server = Server::start().await;
    let id = server.hourly().await;
    let task = json!({"name": "Morning", "scheduleType": "interval", "intervalMs": 3_600_000,
                      "eventTopic": "morning", "payload": {"a": 1}});
    let (status, made) = server.send(Method::POST, "/api/scheduler/tasks", &task).await;
    assert_eq!(status, 201, "{made}");
    let made = &made["task"];
    assert_eq!(made["schedule"], json!({"type": "interval", "intervalMs": 3_600_000}));
    assert_eq!(made["action"], json!({"eventTopic": "morning", "payload": {"a": 1}}));
    assert_eq!((&made["status"], &made["runCount"]), (&json!("active"), &json!(0)));
    assert!(made.get("lastRunAt").is_none() && made["nextRunAt"].is_i64() && made["createdAt"].is_i64());

    let (_, tasks) = server.json("/api/scheduler/tasks").await;
    assert_eq!(tasks["count"], 2);
    let ids: Vec<_> = tasks["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    assert!(ids.contains(&&json!(format!("task-{id}"))) && ids.contains(&&made["id"]));
    let (_, schedules) = server.json("/api/schedules").await;
    assert_eq!(schedules["schedules"].as_array().unwrap().len(), 2);

    let path = format!("/api/scheduler/tasks/{}", made["id"].as_str().unwrap());
    let (status, cancelled) = server.send(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((status, cancelled), (200, json!({"success": true, "taskId": made["id"]})));
}

#[tokio::test]
async fn agtos_is_refused_in_its_own_words() {
    let server = Server::start().await;
    let task = |fields: Value| {
        let mut task =
            json!({"name": "x", "scheduleType": "cron", "expression": "* * * * *", "eventTopic": "t"});
        let fields = fields.as_object().unwrap().clone();
        task.as_object_mut().unwrap().extend(fields);
        task
    };
    for (task, error) in [
        (task(json!({"name": ""})), "Missing or invalid field: name"),
        (task(json!({"eventTopic": 5})), "Missing or invalid field: eventTopic"),
        (task(json!({"scheduleType": "daily"})), "Missing or invalid field: scheduleType"),
        (task(json!({"expression": ""})), "Cron schedule requires an expression field"),
        (task(json!({"scheduleType": "once"})), "Once schedule requires an atTimestamp field"),
        (task(json!({"scheduleType": "interval"})), "Interval schedule requires an intervalMs field"),
        (task(json!({"expression": "* * *"})), "Invalid cron expression: * * *"),
        (json!([]), "Invalid JSON body"),
    ] {
        let (status, answer) = server.send(Method::POST, "/api/scheduler/tasks", &task).await;
        assert_eq!((status, answer), (400, json!({"error": error})), "{task}");
    }
    for (id, status, answer) in [
        ("task-none", 404, json!({"error": "Failed to cancel task", "message": "Task not found"})),
        ("task-999", 404, json!({"error": "Failed to cancel task", "message": "Task not found"})),
        ("a%20b", 400, json!({"error": "Invalid task ID format"})),
    ] {
        let path = format!("/api/scheduler/tasks/{id}");
        assert_eq!(server.send(Method::DELETE, &path, &Value::Null).await, (status, answer));
    }
}

#[tokio::test]
async fn a_bound_key_sees_no_schedules() {
    let server = Server::listening(Options::default(), switchboard_server::Listener::requiring_key).await;
    let grant = switchboard_access::Grant {
        projects: Some(["p".to_owned()].into()),
        ..switchboard_access::Grant::default()
    };
    let (_, bearer) = server.access.create("bound", grant, None).await.unwrap();
    for path in ["/api/schedules", "/api/occurrences", "/api/scheduler/tasks"] {
        let ask = |key: &str| server.request(Method::GET, path).bearer_auth(key).timeout(SOON).send();
        assert_eq!(ask(&bearer).await.unwrap().status().as_u16(), 403, "{path}");
        assert_eq!(ask(OWNER).await.unwrap().status().as_u16(), 200, "{path}");
    }
}

#[tokio::test]
async fn a_repetition_gets_the_first_answer_also_when_its_time_is_over() {
    let server = Server::start().await;
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(500);
    let wish = json!({"target": {"kind": "topic", "to": "tick"}, "at": at.to_string()});
    let make = |key: &'static str| {
        server.request(Method::POST, "/api/schedules").header("idempotency-key", key).json(&wish).send()
    };
    let (status, first) = json_of(make("first").await.unwrap()).await;
    assert_eq!(status, 201, "{first}");
    let path = format!("/api/schedules/{}", first["schedule"]["id"]);
    let delivered = async { while server.json(&path).await.1["schedule"]["status"] != "completed" {} };
    tokio::time::timeout(SOON, delivered).await.expect("it is delivered");

    let (status, again) = json_of(make("first").await.unwrap()).await;
    assert_eq!((status, &again["schedule"]["id"]), (201, &first["schedule"]["id"]), "{again}");
    assert_eq!(again["upcoming"], json!([]));
    let (status, refused) = json_of(make("second").await.unwrap()).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("is over"), "{refused}");
}
