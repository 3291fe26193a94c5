//! The client against a server that answers by script.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchboard_letta::{Agent, CallError, DeliveryError, Letta, Options, Timing};
use switchboard_outbound::fake::{FakeServer, Reply, Seen};
use tokio::sync::Notify;

const TOKEN: &str = "sk-let-very-secret";
const FAST: Timing = Timing {
    pauses: [Duration::from_millis(1), Duration::from_millis(2)],
    reply: Duration::from_secs(30),
    call: Duration::from_secs(10),
};

fn letta(server: &FakeServer) -> Letta {
    letta_at(&server.url("/"), FAST)
}

fn letta_at(base_url: &str, timing: Timing) -> Letta {
    Letta::new(Options {
        base_url: base_url.into(),
        api_key: Some(TOKEN.into()),
        project: Some("blue".into()),
        timing,
        ..Options::default()
    })
    .unwrap()
}

fn problem(status: u16, detail: &str) -> Reply {
    Reply::new(status).header("content-type", "application/json").body(json!({"detail": detail}).to_string())
}

fn agents(range: std::ops::Range<usize>) -> Reply {
    let agents: Vec<Value> =
        range.map(|n| json!({"id": format!("agent-{n}"), "name": n.to_string()})).collect();
    Reply::json(json!(agents).to_string())
}

async fn closed_port() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_delivery_is_one_post_as_the_contract_writes_it() {
    let reply = r#"{"messages":[{"message_type":"assistant_message","content":"Good morning"}]}"#;
    let server = FakeServer::always(Reply::json(reply)).await;
    let said = letta(&server).deliver("agent/1 ü", "Say \"hi\"\n", "schedule-93@2025").await.unwrap();
    assert_eq!(said.as_deref(), Some("Good morning"));

    let [seen] = &server.seen()[..] else { panic!("one request") };
    assert_eq!(seen.line(), "POST /v1/agents/agent%2F1%20%C3%BC/messages");
    assert_eq!(
        seen.body,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"Say \"hi\"\n"}]}]}"#
    );
    assert_eq!(seen.header("authorization"), Some("Bearer sk-let-very-secret"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("x-project"), Some("blue"));
    assert_eq!(seen.header("idempotency-key"), Some("schedule-93@2025"));
}

#[tokio::test]
async fn any_2xx_is_a_delivery_whatever_its_body() {
    for reply in [
        Reply::new(202),
        Reply::new(200).body("<html>"),
        Reply::new(200).body("half").cut(),
        Reply::json(r#"{"messages":7}"#),
    ] {
        let server = FakeServer::always(reply).await;
        assert_eq!(letta(&server).deliver("a", "p", "k").await, Ok(None));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn the_times_are_those_of_the_contract() {
    let timing = Timing::default();
    assert_eq!(timing.pauses.map(|pause| pause.as_secs()), [1, 2]);
    assert_eq!((timing.reply.as_secs(), timing.call.as_secs()), (300, 10));
}

/// An acceptance check of PromptYoSelf's contract, with the contract's times. Time stands still but for what is slept, so the
/// 90 s pass at once, and so would any shorter bound on a reply.
#[tokio::test]
async fn check_17_an_agent_may_think_for_90_seconds() {
    let go = Arc::new(Notify::new());
    let server = FakeServer::always(Reply::new(200).after(go.clone())).await;
    let letta = letta_at(&server.url(""), Timing::default());
    let delivery = tokio::spawn(async move { letta.deliver("a", "p", "k").await });
    server.wait_for(1).await;

    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(!delivery.is_finished());
    tokio::time::resume();
    go.notify_one();
    assert_eq!(delivery.await.unwrap(), Ok(None));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_passes_is_tried_three_times_with_the_same_key_and_growing_pauses() {
    let server =
        FakeServer::script(vec![Reply::new(500), Reply::hang_up(), Reply::new(200), Reply::new(500)]).await;
    let timing = Timing { pauses: [Duration::from_millis(30), Duration::from_millis(60)], ..FAST };
    let start = Instant::now();
    letta_at(&server.url(""), timing).deliver("a", "p", "k").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(90));
    let keys: Vec<_> =
        server.seen().iter().map(|seen| seen.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, vec![Some("k".to_owned()); 3]);
}

#[tokio::test]
async fn after_three_failures_the_last_is_told() {
    for status in [408, 409, 429, 500, 503] {
        let busy = problem(status, "busy").header("retry-after", "7");
        let server = FakeServer::always(busy).await;
        let error = letta(&server).deliver("a", "p", "k").await.unwrap_err();
        assert_eq!(error.to_string(), format!("HTTP {status}: busy"));
        let DeliveryError::Unavailable { attempts, retry_after, .. } = error else { panic!("{error:?}") };
        assert_eq!((attempts, retry_after), (3, Some(Duration::from_secs(7))));
        assert_eq!(server.seen().len(), 3);
    }
}

#[tokio::test]
async fn what_does_not_pass_is_tried_once() {
    for (reply, text) in [
        (problem(404, "Agent a not found"), "HTTP 404: Agent a not found"),
        (Reply::new(401).body("nope"), "HTTP 401: Unauthorized"),
        (
            Reply::new(303).header("location", "/login"),
            "HTTP 303: See Other, which leads nowhere this client follows",
        ),
        (Reply::new(302), "HTTP 302: Found, which leads nowhere this client follows"),
        (Reply::new(499), "HTTP 499: no reason given"),
    ] {
        let server = FakeServer::always(reply).await;
        let error = letta(&server).deliver("a", "p", "k").await.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(matches!(error, DeliveryError::Refused(_)), "{error:?}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn nobody_listening_passes() {
    let error = letta_at(&closed_port().await, FAST).deliver("a", "p", "k").await.unwrap_err();
    assert!(matches!(error, DeliveryError::Unavailable { attempts: 3, .. }), "{error:?}");
    assert!(error.to_string().ends_with("connection refused"), "{error}");
}

#[tokio::test]
async fn a_sent_prompt_without_a_reply_in_time_is_delivered_and_not_sent_again() {
    let server = FakeServer::always(Reply::silence()).await;
    let timing = Timing { reply: Duration::from_millis(60), ..FAST };
    assert_eq!(letta_at(&server.url(""), timing).deliver("a", "p", "k").await, Ok(None));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_prompt_that_never_left_is_not_delivered() {
    // TCP is completed by the machine, TLS by nobody.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let timing = Timing { reply: Duration::from_millis(60), ..FAST };
    let error = letta_at(&url, timing).deliver("a", "p", "k").await.unwrap_err();
    assert!(matches!(error, DeliveryError::Unavailable { attempts: 3, .. }), "{error:?}");
}

#[tokio::test]
async fn an_agent_that_thinks_long_gets_the_prompt_once() {
    let thought = Arc::new(Notify::new());
    let server = FakeServer::always(Reply::new(200).after(thought.clone())).await;
    let letta = letta(&server);
    let delivery = tokio::spawn(async move { letta.deliver("a", "p", "k").await });
    server.wait_for(1).await;
    thought.notify_one();
    assert_eq!(delivery.await.unwrap(), Ok(None));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_prompt_is_streamed_where_letta_cannot_take_it_otherwise() {
    let server = FakeServer::start(|_, seen| {
        if seen.target.ends_with("/stream") {
            Reply::new(200).header("content-type", "text/event-stream").body(
                "data: {\"message_type\":\"assistant_message\",\"content\":\"streamed\"}\n\ndata: [DONE]\n\n",
            )
        } else {
            Reply::new(500).body("KeyError: 'description' in ChatMLInnerMonologueWrapper")
        }
    })
    .await;
    let said = letta(&server).deliver("a", "p", "k").await.unwrap();
    assert_eq!(said.as_deref(), Some("streamed"));
    let seen = server.seen();
    assert_eq!(
        seen.iter().map(Seen::line).collect::<Vec<_>>(),
        ["POST /v1/agents/a/messages", "POST /v1/agents/a/messages/stream"]
    );
    assert_eq!(seen[0].body, seen[1].body);
}

#[tokio::test]
async fn a_prompt_that_is_streamed_stays_streamed_and_is_tried_three_times() {
    let server = FakeServer::start(|n, _| match n {
        0 => Reply::new(500).body("'description' ChatMLInnerMonologueWrapper"),
        _ => Reply::new(503),
    })
    .await;
    assert!(letta(&server).deliver("a", "p", "k").await.is_err());
    let lines: Vec<_> = server.seen().iter().map(Seen::line).collect();
    let stream = "POST /v1/agents/a/messages/stream";
    assert_eq!(lines, ["POST /v1/agents/a/messages", stream, stream, stream]);
}

#[tokio::test]
async fn redirects_keep_method_body_and_token_on_the_same_host() {
    for status in [301, 302, 307, 308] {
        let server = FakeServer::start(move |n, _| match n {
            0 => Reply::new(status).header("location", "/v1/elsewhere/"),
            _ => Reply::new(200),
        })
        .await;
        letta(&server).deliver("a", "p", "k").await.unwrap();
        let seen = server.seen();
        assert_eq!(seen[1].line(), "POST /v1/elsewhere/");
        assert_eq!(seen[0].body, seen[1].body);
        assert_eq!(seen[1].header("authorization"), Some("Bearer sk-let-very-secret"));
        assert_eq!(seen[1].header("idempotency-key"), Some("k"));
    }
}

#[tokio::test]
async fn the_token_stays_behind_when_a_redirect_leads_to_another_host() {
    let other = FakeServer::always(Reply::new(200)).await;
    let server = FakeServer::always(Reply::new(307).header("location", other.url("/x"))).await;
    letta(&server).deliver("a", "p", "k").await.unwrap();
    let [seen] = &other.seen()[..] else { panic!("one request") };
    assert_eq!((seen.header("authorization"), seen.header("x-project")), (None, None));
    assert!(seen.body.contains("\"p\""));
}

#[tokio::test]
async fn redirects_without_end_end() {
    let server = FakeServer::always(Reply::new(307).header("location", "/again")).await;
    let error = letta(&server).deliver("a", "p", "k").await.unwrap_err();
    assert!(error.to_string().starts_with("HTTP 307: "), "{error}");
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn agents_are_read_page_by_page() {
    let server = FakeServer::start(|_, seen| match seen.target.split("after=agent-").nth(1) {
        None => agents(0..50),
        Some("49") => agents(50..100),
        Some("99") => agents(100..120),
        Some(other) => Reply::new(500).body(other),
    })
    .await;
    let all = letta(&server).agents().await.unwrap();
    assert_eq!(all.len(), 120);
    assert_eq!(all[119].id, "agent-119");
    assert_eq!(
        server.seen().iter().map(Seen::line).collect::<Vec<_>>(),
        [
            "GET /v1/agents/?limit=50",
            "GET /v1/agents/?limit=50&after=agent-49",
            "GET /v1/agents/?limit=50&after=agent-99"
        ]
    );
    assert_eq!(server.seen()[0].header("authorization"), Some("Bearer sk-let-very-secret"));
    assert_eq!(server.seen()[0].header("content-type"), None);
}

#[tokio::test]
async fn an_agent_has_five_fields_and_some_may_be_missing() {
    let body = r#"[{"id":"a","name":"N","description":null,"created_at":"2025-01-01","updated_at":"2025-01-02","x":1},
        {"id":"b"}]"#;
    let server = FakeServer::always(Reply::json(body)).await;
    let all = letta(&server).agents().await.unwrap();
    let first = Agent {
        id: "a".into(),
        name: "N".into(),
        description: String::new(),
        created_at: Some("2025-01-01".into()),
        last_updated: Some("2025-01-02".into()),
    };
    assert_eq!(all[0], first);
    assert_eq!((all[1].name.as_str(), &all[1].created_at), ("", &None));
}

#[tokio::test]
async fn a_server_that_does_not_page_is_believed_once() {
    let server = FakeServer::always(agents(0..120)).await;
    assert_eq!(letta(&server).agents().await.unwrap().len(), 120);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn agents_without_end_are_refused() {
    let server = FakeServer::start(|n, _| agents(n * 50..n * 50 + 50)).await;
    let error = letta(&server).agents().await.unwrap_err();
    assert_eq!(error.to_string(), "Letta lists more than 1000 pages of agents");
    assert_eq!(server.seen().len(), 1_000);
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    let server = FakeServer::always(Reply::json("[".repeat(9 << 20))).await;
    let error = letta(&server).agents().await.unwrap_err();
    assert_eq!(error.to_string(), "the answer is longer than 8388608 bytes");
}

#[tokio::test]
async fn what_is_not_letta_is_told() {
    let server = FakeServer::always(Reply::new(200).body("<html>")).await;
    let error = letta(&server).agents().await.unwrap_err();
    assert_eq!(error.to_string(), "the answer is not a list of agents: is this a Letta server?");
}

#[tokio::test]
async fn a_call_without_an_answer_in_time_fails_after_one_attempt() {
    let server = FakeServer::always(Reply::silence()).await;
    let timing = Timing { call: Duration::from_millis(50), ..FAST };
    let error = letta_at(&server.url(""), timing).agents().await.unwrap_err();
    assert_eq!(error.to_string(), format!("no answer from {} within 50 ms", server.address));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn whether_an_agent_exists_is_in_the_status() {
    for (status, exists) in [(200, true), (404, false), (400, false), (422, false)] {
        let server = FakeServer::always(Reply::new(status)).await;
        assert_eq!(letta(&server).agent_exists("a b").await, Ok(exists));
        assert_eq!(server.seen()[0].line(), "GET /v1/agents/a%20b");
    }
    let server = FakeServer::always(problem(500, "broken")).await;
    let error = letta(&server).agent_exists("a").await.unwrap_err();
    assert_eq!(error, CallError::Status { status: 500, detail: "broken".into() });
}

#[tokio::test]
async fn the_list_is_searched_where_single_agents_cannot_be_asked_for() {
    for status in [405, 501] {
        let server =
            FakeServer::start(
                move |_, seen| {
                    if seen.target.contains('?') { agents(0..3) } else { Reply::new(status) }
                },
            )
            .await;
        assert_eq!(letta(&server).agent_exists("agent-2").await, Ok(true));
        assert_eq!(letta(&server).agent_exists("agent-3").await, Ok(false));
    }
}

#[tokio::test]
async fn what_cannot_be_an_id_is_not_asked_for() {
    let server = FakeServer::always(Reply::new(200)).await;
    let letta = letta(&server);
    for id in ["", ".", "..", "a\nb", &"x".repeat(257)] {
        assert_eq!(letta.agent_exists(id).await, Ok(false), "{id:?}");
        let error = letta.deliver(id, "p", "k").await.unwrap_err();
        assert!(error.is_ill_formed(), "{error:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_upload_is_a_put_with_the_description_only_if_there_is_one() {
    let server = FakeServer::always(Reply::json(r#"{"id":"tool-1","name":null,"source_code":"x"}"#)).await;
    let letta = letta(&server);
    let tool = letta.upload("def f(): pass", None).await.unwrap();
    assert_eq!((tool.id.as_str(), tool.name), ("tool-1", None));
    letta.upload("def f(): pass", Some("Does nothing")).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[0].line(), "PUT /v1/tools/");
    assert_eq!(seen[0].body, r#"{"source_code":"def f(): pass"}"#);
    assert_eq!(seen[1].body, r#"{"source_code":"def f(): pass","description":"Does nothing"}"#);

    assert_eq!(letta.upload("  ", None).await, Err(CallError::NoSource));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn no_error_and_no_debug_text_holds_the_token() {
    let echo = problem(401, &format!("bad key {TOKEN} given, {}{TOKEN}", "x".repeat(500)));
    let server = FakeServer::always(echo).await;
    let letta = letta(&server);
    let delivery = letta.deliver("a", "p", "k").await.unwrap_err();
    let upload = letta.upload("x", None).await.unwrap_err();
    let list = letta.agents().await.unwrap_err();
    let exists = letta.agent_exists("a").await.unwrap_err();
    let unreachable = letta_at(&closed_port().await, FAST).agents().await.unwrap_err();
    let options = Options { api_key: Some(TOKEN.into()), ..Options::default() };
    let all = format!(
        "{delivery} {delivery:?} {upload} {list} {exists} {exists:?} {unreachable:?} {letta:?} {options:?}"
    );
    assert!(!all.contains("secret") && !all.contains("sk-let"), "{all}");
    assert!(upload.to_string().starts_with("HTTP 401: bad key *** given"), "{upload}");
    assert!(upload.to_string().len() <= 512 + "HTTP 401: ".len());
}

#[tokio::test]
async fn without_a_secret_there_is_no_authorization() {
    let server = FakeServer::always(Reply::json("[]")).await;
    let none = Letta::new(Options {
        base_url: server.url("///"),
        api_key: Some(String::new()),
        server_password: Some(" ".into()),
        ..Options::default()
    })
    .unwrap();
    assert!(!none.has_secret());
    assert_eq!(none.base_url(), server.url(""));
    none.agents().await.unwrap();

    let password = Letta::new(Options {
        base_url: server.url("/sub/"),
        server_password: Some("pw\n".into()),
        ..Options::default()
    });
    password.unwrap().agents().await.unwrap();

    let seen = server.seen();
    assert_eq!((seen[0].header("authorization"), seen[0].header("x-project")), (None, None));
    assert_eq!(seen[1].header("authorization"), Some("Bearer pw"));
    assert_eq!(seen[1].line(), "GET /sub/v1/agents/?limit=50");
}

#[test]
fn options_that_cannot_work_are_refused_without_their_secrets() {
    for (options, text) in [
        (
            Options { base_url: "localhost:8283".into(), ..Options::default() },
            "LETTA_BASE_URL is not usable: the URL must begin with http:// or https://",
        ),
        (
            Options { base_url: "http://u:secret@letta".into(), ..Options::default() },
            "LETTA_BASE_URL is not usable: the URL must not hold a user or a password",
        ),
        (
            Options { base_url: "http://letta/?a=secret".into(), ..Options::default() },
            "LETTA_BASE_URL is not usable: it must not hold a query (?)",
        ),
        (
            Options { api_key: Some("secret\nx".into()), ..Options::default() },
            "LETTA_API_KEY or LETTA_SERVER_PASSWORD holds a character that a header field cannot",
        ),
        (
            Options { project: Some("a\nb".into()), ..Options::default() },
            "LETTA_PROJECT holds a character that a header field cannot",
        ),
    ] {
        assert_eq!(Letta::new(options).unwrap_err().to_string(), text);
    }
}

#[tokio::test]
async fn connections_are_shared_by_all_clones() {
    let server = FakeServer::always(Reply::json("[]")).await;
    let letta = letta(&server);
    for _ in 0..3 {
        letta.clone().agents().await.unwrap();
    }
    assert!(server.seen().iter().all(|seen| seen.connection == 0));
}
