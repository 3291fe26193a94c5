//! What is bounded, and what is said at the bound (rule 12 of the A2AMCP contract and our own).

use expect_test::expect;
use switchboard_coordination::{
    Acquire, Acquired, ChangeType, Name, Project, Register, Rejection, Scope, Settings, Text, Ttl,
};
use switchboard_exchange::{Decide, Machine as _, Timestamp};

use crate::script::check;

#[test]
fn names_have_1_to_1024_characters_and_texts_up_to_a_mebibyte() {
    assert!(Name::new("").is_err());
    assert!(Name::new("é".repeat(1_024)).is_ok());
    assert_eq!(
        Name::new("é".repeat(1_025)).unwrap_err().to_string(),
        "must be at most 1024 characters, has 1025"
    );
    assert!(Text::new("").is_ok());
    assert!(Text::new("x".repeat(1 << 20)).is_ok());
    assert_eq!(
        Text::new("é".repeat((1 << 19) + 1)).unwrap_err().to_string(),
        "must be at most 1048576 bytes, has 1048578"
    );
}

#[test]
fn a_time_to_live_is_1_second_to_7_days() {
    let seconds = [-1, 0, 1, 7 * 86_400, 7 * 86_400 + 1, i64::MAX];
    assert_eq!(
        seconds.map(|seconds| Ttl::from_seconds(seconds).is_ok()),
        [false, false, true, true, false, false]
    );
}

#[test]
fn an_inbox_holds_ten_thousand_messages() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s 9999x ada sends "x"
        2s ada asks bob x
        2s ada sends "x"
        2s ada asks bob x
        3s bob reads limit 1
        4s ada sends "x"
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (9999 times) ada: sent ada-1.009998 to 1 [message to bob]
            2s ada: asked ada-2.000000 [question to bob]
            2s ada: refused: the inbox of 'bob' is full (10000): wait until it reads its messages
            2s ada: refused: the inbox of 'bob' is full (10000): wait until it reads its messages
            3s bob: ada-1.000000 (to all, info) 'x' and 9999 more [1 read by bob]
            4s ada: sent ada-4.000000 to 1 [message to bob]
        "#]],
    );
}

#[test]
fn an_inbox_holds_sixty_four_mebibytes_of_text() {
    check(
        "
        0s ada registers
        0s bob registers
        1s 64x ada sends x*1048576
        2s ada sends x
        3s bob reads limit 1
        4s ada sends x*1048575
        5s ada sends x
        5s ada sends x
        6s bob takes
        7s ada sends x
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (64 times) ada: sent ada-1.000063 to 1 [message to bob]
            2s ada: refused: the inbox of 'bob' is full (67108864): wait until it reads its messages
            3s bob: ada-1.000000 (to all, info) '<1048576 bytes>' and 63 more [1 read by bob]
            4s ada: sent ada-4.000000 to 1 [message to bob]
            5s ada: sent ada-5.000000 to 1 [message to bob]
            5s ada: refused: the inbox of 'bob' is full (67108864): wait until it reads its messages
            6s bob: 65 items: ada-1.000001 (to all, info) '<1048576 bytes>' … ada-5.000000 (to all, info) 'x' [65 read by bob]
            7s ada: sent ada-7.000000 to 1 [message to bob]
        "#]],
    );
}

#[test]
fn answers_free_the_room_that_they_took() {
    check(
        "
        0s ada registers
        0s bob registers
        1s 64x ada asks bob ? type api
        2s bob takes
        3s bob answers ada-1.000000 x*1048576
        4s ada collects ada-1.000000
        5s 63x bob sends x*1048576
        6s bob sends x*1048575
        7s bob sends x
        7s bob sends x
        8s ada takes
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (64 times) ada: asked ada-1.000063 [question to bob]
            2s bob: 64 items: ada-1.000000 (api?) '?' … ada-1.000063 (api?) '?' [64 read by bob]
            3s bob: answered ada [question answered]
            4s ada: answer '<1048576 bytes>' of 3s [answer delivered]
            5s (63 times) bob: sent bob-5.000062 to 1 [message to ada]
            6s bob: sent bob-6.000000 to 1 [message to ada]
            7s bob: sent bob-7.000000 to 1 [message to ada]
            7s bob: refused: the inbox of 'ada' is full (67108864): wait until it reads its messages
            8s ada: 65 items: bob-5.000000 (to all, info) '<1048576 bytes>' … bob-7.000000 (to all, info) 'x' [65 read by ada]
        "#]],
    );
}

#[test]
fn system_events_do_not_overfill_an_inbox() {
    check(
        "
        0s settings events
        0s ada registers
        1s bob registers
        2s 9998x bob announces src/a.rs
        3s bob announces src/a.rs
        3s bob announces src/a.rs
        4s ada reads limit 9999
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s bob: others ada [bob registered · ada told agent_joined 'Agent bob joined: ']
            2s (9998 times) bob: granted src/a.rs #1 [bob locks src/a.rs #1 · ada told file_change_announced 'Agent bob locked src/a.rs']
            3s bob: granted src/a.rs #1 [bob locks src/a.rs #1 · ada told file_change_announced 'Agent bob locked src/a.rs']
            3s bob: granted src/a.rs #1 [bob locks src/a.rs #1]
            4s ada: 9999 items: bob-1.000000 (event agent_joined) 'Agent bob joined: ' … bob-2.009997 (event file_change_announced) 'Agent bob locked src/a.rs' and 1 more [9999 read by ada]
        "#]],
    );
}

#[test]
fn an_agent_has_at_most_ten_thousand_todos() {
    check(
        "
        0s ada registers
        1s 10000x ada adds x
        2s ada adds x
        3s ada registers
        3s ada adds x
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s (10000 times) ada: added todo-1.009999 [todo of ada]
            2s ada: refused: the todo list of 'ada' is full (10000): register again to begin a new list
            3s ada: others none [ada registered]
            3s ada: added todo-3.000000 [todo of ada]
        "#]],
    );
}

#[test]
fn the_todos_of_an_agent_have_sixteen_mebibytes_of_text() {
    check(
        "
        0s ada registers
        1s 16x ada adds x*1048576
        2s ada adds x
        3s ada registers
        3s ada adds x
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s (16 times) ada: added todo-1.000015 [todo of ada]
            2s ada: refused: the todo list of 'ada' is full (16777216): register again to begin a new list
            3s ada: others none [ada registered]
            3s ada: added todo-3.000000 [todo of ada]
        "#]],
    );
}

/// Read and not answered, so that no inbox is full.
#[test]
fn the_mail_that_is_needed_has_at_most_256_mebibytes_of_text() {
    check(
        "
        0s settings heartbeat 48h
        0s ada registers
        0s bob registers
        1s 64x ada asks bob x*1048576 type api
        2s bob takes
        61s 64x ada asks bob x*1048576 type api
        62s bob takes
        121s 64x ada asks bob x*1048576 type api
        122s bob takes
        181s 64x ada asks bob x*1048576 type api
        182s bob takes
        183s ada asks bob x type api
        183s bob sends x
        184s bob answers ada-1.000000 done
        185s ada collects ada-1.000000
        186s bob sends x
        86460s bob sends x
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (64 times) ada: asked ada-1.000063 [question to bob]
            2s bob: 64 items: ada-1.000000 (api?) '<1048576 bytes>' … ada-1.000063 (api?) '<1048576 bytes>' [64 read by bob]
            61s (64 times) ada: asked ada-61.000063 [question to bob]
            62s bob: 64 items: ada-61.000000 (api?) '<1048576 bytes>' … ada-61.000063 (api?) '<1048576 bytes>' [64 read by bob]
            121s (64 times) ada: asked ada-121.000063 [question to bob]
            122s bob: 64 items: ada-121.000000 (api?) '<1048576 bytes>' … ada-121.000063 (api?) '<1048576 bytes>' [64 read by bob]
            181s (64 times) ada: asked ada-181.000063 [question to bob]
            182s bob: 64 items: ada-181.000000 (api?) '<1048576 bytes>' … ada-181.000063 (api?) '<1048576 bytes>' [64 read by bob]
            183s ada: refused: the project's mail is full (268435456): wait until agents read their messages and answer their questions
            183s bob: refused: the project's mail is full (268435456): wait until agents read their messages and answer their questions
            184s bob: answered ada [question answered]
            185s ada: answer 'done' of 184s [answer delivered]
            186s bob: sent bob-186.000000 to 1 [message to ada]
            86460s bob: sent bob-86460.000000 to 1 [message to ada · bob seen]
        "#]],
    );
}

#[test]
fn receipts_are_kept_for_sixteen_mebibytes_of_text() {
    check(
        "
        0s ada registers
        0s bob registers
        1s 33x ada sends x*1048576
        2s bob takes
        3s messages limit 100
        4s 17x ada sends x*1048576
        5s bob takes
        6s ada sends x
        7s messages limit 100
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (33 times) ada: sent ada-1.000032 to 1 [message to bob]
            2s bob: 33 items: ada-1.000000 (to all, info) '<1048576 bytes>' … ada-1.000032 (to all, info) '<1048576 bytes>' [33 read by bob]
            3s 33 items: ada-1.000032 stored 1s, bob delivered 2s read 2s … ada-1.000000 stored 1s, bob delivered 2s read 2s
            4s (17 times) ada: sent ada-4.000016 to 1 [message to bob]
            5s bob: 17 items: ada-4.000000 (to all, info) '<1048576 bytes>' … ada-4.000016 (to all, info) '<1048576 bytes>' [17 read by bob]
            6s ada: sent ada-6.000000 to 1 [message to bob]
            7s 34 items: ada-6.000000 stored 6s, bob … ada-1.000017 stored 1s, bob delivered 2s read 2s
        "#]],
    );
}

#[test]
fn a_notice_is_shortened_to_what_a_text_holds() {
    check(
        "
        0s settings events
        0s ada registers
        1s bob registers
        2s bob adds x*1048576
        3s bob marks todo-2.000000 completed
        4s ada takes
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s bob: others ada [bob registered · ada told agent_joined 'Agent bob joined: ']
            2s bob: added todo-2.000000 [todo of bob]
            3s bob: updated todo-2.000000 [todo-2.000000 Completed · ada told todo_completed '<1048576 bytes>']
            4s ada: bob-1.000000 (event agent_joined) 'Agent bob joined: ' | bob-3.000000 (event todo_completed) '<1048576 bytes>' [2 read by ada]
        "#]],
    );
}

/// Not a story, as five thousand lines would take long to compare.
#[test]
fn a_circle_of_five_thousand_is_found_and_named() {
    const AGENTS: usize = 5_000;
    let mut project = Project::new();
    project.configure(&Settings::default());
    let name = |index: usize| Name::new(format!("a{index}")).unwrap();
    let acquire = |index: usize, file: usize| Acquire {
        session: name(index),
        scope: Scope::parse(&format!("f{file}")).unwrap(),
        path: Name::new(format!("f{file}")).unwrap(),
        change_type: ChangeType::Modify,
        description: Text::default(),
        ttl: None,
        wait: true,
    };
    let send = |project: &mut Project, command: &Acquire| -> Result<Acquired, Rejection> {
        let decision = project.decide(Timestamp::UNIX_EPOCH, command)?;
        decision.events.iter().for_each(|event| project.apply(event));
        Ok(decision.reply)
    };
    for index in 0..AGENTS {
        let (task_id, branch, description) = (name(index), Text::default(), Text::default());
        let register = Register { session: name(index), task_id, branch, description };
        let decision = project.decide(Timestamp::UNIX_EPOCH, &register).unwrap();
        decision.events.iter().for_each(|event| project.apply(event));
        assert!(matches!(send(&mut project, &acquire(index, index)), Ok(Acquired::Granted(_))));
    }
    for index in 0..AGENTS - 1 {
        assert!(matches!(send(&mut project, &acquire(index, index + 1)), Ok(Acquired::Waiting(_))));
    }
    match send(&mut project, &acquire(AGENTS - 1, 0)) {
        Err(Rejection::Deadlock { circle }) => assert_eq!(circle.len(), AGENTS),
        outcome => panic!("{outcome:?}"),
    }
}
