//! Questions and answers (rule 8 of the A2AMCP contract).

use expect_test::expect;

use crate::script::check;

#[test]
fn an_answer_is_held_for_the_call_that_waits() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "which fields?" type interface waiting 30s
        2s bob takes
        3s bob answers ada-1.000000 "id, email" to ada
        4s ada takes
        5s ada collects ada-1.000000 stopping
        6s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 31s]
            2s bob: ada-1.000000 (interface? answer needed) 'which fields?' [1 read by bob]
            3s bob: answered ada [question answered]
            4s ada: none
            5s ada: answer 'id, email' of 3s [answer delivered]
            6s ada: none
        "#]],
    );
}

#[test]
fn an_answer_nobody_waits_for_goes_to_the_inbox() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        2s bob takes
        3s bob answers ada-1.000000 "!"
        4s ada takes
        5s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s bob: ada-1.000000 (help?) '?' [1 read by bob]
            3s bob: answered ada [question answered]
            4s ada: response-ada-1.000000 (answer to ada-1.000000) '!' [1 read by ada]
            5s ada: none
        "#]],
    );
}

#[test]
fn an_answer_after_the_wait_goes_to_the_inbox_and_the_question_stays() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 10s
        11s bob takes
        12s bob answers ada-1.000000 "late"
        13s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 11s]
            11s [wait ended]
            11s bob: ada-1.000000 (help? answer needed) '?' [1 read by bob]
            12s bob: answered ada [question answered]
            13s ada: response-ada-1.000000 (answer to ada-1.000000) 'late' [1 read by ada]
        "#]],
    );
}

#[test]
fn an_answer_that_was_held_goes_to_the_inbox_when_the_wait_ends() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 10s
        2s bob answers ada-1.000000 "!"
        11s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 11s]
            2s bob: answered ada [question answered]
            11s [wait ended]
            11s ada: response-ada-1.000000 (answer to ada-1.000000) '!' [1 read by ada]
        "#]],
    );
}

#[test]
fn a_late_answer_collected_by_its_handle_is_not_in_the_inbox_any_more() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 10s
        12s bob answers ada-1.000000 "late"
        13s ada collects ada-1.000000
        14s ada takes
        15s ada collects ada-1.000000
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 11s]
            11s [wait ended]
            12s bob: answered ada [question answered]
            13s ada: answer 'late' of 12s [answer delivered]
            14s ada: none
            15s ada: answer 'late' of 12s, again
        "#]],
    );
}

#[test]
fn a_late_answer_read_from_the_inbox_is_known_when_it_is_collected_by_its_handle() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        2s bob answers ada-1.000000 "!"
        3s ada takes
        4s ada collects ada-1.000000
        5s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s bob: answered ada [question answered]
            3s ada: response-ada-1.000000 (answer to ada-1.000000) '!' [1 read by ada]
            4s ada: answer '!' of 2s, again
            5s ada: none
        "#]],
    );
}

#[test]
fn waiting_on_with_the_handle_holds_the_answer_again() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 10s
        11s ada collects ada-1.000000 waiting 20s
        15s bob reads keep
        20s bob answers ada-1.000000 "!"
        21s ada takes
        22s ada collects ada-1.000000 stopping
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 11s]
            11s [wait ended]
            11s ada: pending at bob [awaited until 31s]
            15s bob: ada-1.000000 (help? answer needed) '?' and 0 more [1 delivered to bob]
            20s bob: answered ada [question answered]
            21s ada: none
            22s ada: answer '!' of 20s [answer delivered]
        "#]],
    );
}

#[test]
fn who_asks_for_an_answer_that_is_not_there_hears_how_far_the_question_is() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        2s ada collects ada-1.000000
        3s bob reads keep
        4s ada collects ada-1.000000
        5s bob reads
        6s ada collects ada-1.000000 stopping
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s ada: pending at bob
            3s bob: ada-1.000000 (help?) '?' and 0 more [1 delivered to bob]
            4s ada: pending at bob delivered 3s
            5s bob: ada-1.000000 (help?) '?' again and 0 more [1 read by bob]
            6s ada: pending at bob delivered 3s read 5s
        "#]],
    );
}

#[test]
fn who_stops_waiting_gets_the_answer_in_its_inbox() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 30s
        2s ada collects ada-1.000000 stopping
        3s bob answers ada-1.000000 "!"
        4s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 31s]
            2s ada: pending at bob [wait ended]
            3s bob: answered ada [question answered]
            4s ada: response-ada-1.000000 (answer to ada-1.000000) '!' [1 read by ada]
        "#]],
    );
}

#[test]
fn a_question_is_answered_once() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        2s bob answers ada-1.000000 "!"
        3s bob answers ada-1.000000 "!!"
        4s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s bob: answered ada [question answered]
            3s bob: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            4s ada: response-ada-1.000000 (answer to ada-1.000000) '!' [1 read by ada]
        "#]],
    );
}

#[test]
fn only_the_one_asked_answers_and_only_to_the_one_who_asked() {
    check(
        r#"
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada asks bob "?"
        1s ada sends "no question" to bob
        2s carl answers ada-1.000000 "!"
        2s ada answers ada-1.000000 "!"
        2s bob answers ada-1.000000 "!" to carl
        2s bob answers ada-1.000000 "!" to nobody
        2s bob answers bob-1.000000 "!"
        2s bob answers ada-1.000001 "!"
        2s bob answers nonsense "!"
        3s carl collects ada-1.000000
        3s ada collects ada-1.000001
        3s bob answers ada-1.000000 "!" to ada
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: asked ada-1.000000 [question to bob]
            1s ada: sent ada-1.000001 to 1 [message to bob]
            2s carl: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            2s ada: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            2s bob: refused: the question came from 'ada'
            2s bob: refused: agent 'nobody' is not registered in this project: list the agents to see who is
            2s bob: refused: question 'bob-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            2s bob: refused: question 'ada-1.000001' is not open for you to answer: it is unknown, was for another agent, or is answered
            2s bob: refused: question 'nonsense' is not open for you to answer: it is unknown, was for another agent, or is answered
            3s carl: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            3s ada: refused: question 'ada-1.000001' is not open for you to answer: it is unknown, was for another agent, or is answered
            3s bob: answered ada [question answered]
        "#]],
    );
}

#[test]
fn nobody_asks_itself_or_somebody_who_is_not_here() {
    check(
        r#"
        0s ada registers
        1s ada asks ada "?"
        1s ada asks bob "?"
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: refused: an agent cannot send a message to itself
            1s ada: refused: agent 'bob' is not registered in this project: list the agents to see who is
        "#]],
    );
}

#[test]
fn a_question_ends_when_the_one_asked_leaves() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 60s
        2s bob unregisters
        3s ada collects ada-1.000000 stopping
        4s bob registers
        5s bob answers ada-1.000000 "!"
        70s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 61s]
            2s bob: left with 0 todos: 0 completed, 0 pending, 0 in progress [bob left: Unregistered]
            3s ada: refused: agent 'bob' is not registered in this project: list the agents to see who is
            4s bob: others ada [bob registered]
            5s bob: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            70s ada: none [ada seen]
        "#]],
    );
}

#[test]
fn a_question_ends_when_the_one_asked_expires() {
    check(
        r#"
        0s bob registers
        60s ada registers
        61s ada asks bob "?" waiting 600s
        120s ada collects ada-61.000000 stopping
        "#,
        &expect![[r#"
            0s bob: others none [bob registered]
            60s ada: others bob [ada registered]
            61s ada: asked ada-61.000000 [question to bob awaited until 661s]
            120s [bob left: Expired]
            120s ada: refused: agent 'bob' is not registered in this project: list the agents to see who is
        "#]],
    );
}

#[test]
fn a_question_ends_when_its_asker_leaves() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 60s
        2s ada unregisters
        3s ada registers
        4s bob takes
        5s bob answers ada-1.000000 "!"
        6s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 61s]
            2s ada: left with 0 todos: 0 completed, 0 pending, 0 in progress [ada left: Unregistered]
            3s ada: others bob [ada registered]
            4s bob: ada-1.000000 (help? answer needed) '?' [1 read by bob]
            5s bob: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
            6s ada: none
        "#]],
    );
}

#[test]
fn an_answer_stays_when_the_one_asked_leaves_after_giving_it() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 60s
        2s ada asks bob "and?"
        3s bob answers ada-1.000000 "!"
        3s bob answers ada-2.000000 "so"
        4s bob unregisters
        5s ada collects ada-1.000000 stopping
        6s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 61s]
            2s ada: asked ada-2.000000 [question to bob]
            3s bob: answered ada [question answered]
            3s bob: answered ada [question answered]
            4s bob: left with 0 todos: 0 completed, 0 pending, 0 in progress [bob left: Unregistered]
            5s ada: answer '!' of 3s [answer delivered]
            6s ada: response-ada-2.000000 (answer to ada-2.000000) 'so' [1 read by ada]
        "#]],
    );
}

#[test]
fn an_answer_held_for_an_asker_that_left_is_not_for_its_successor() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 30s
        2s bob answers ada-1.000000 "!"
        3s ada unregisters
        4s ada registers
        40s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 31s]
            2s bob: answered ada [question answered]
            3s ada: left with 0 todos: 0 completed, 0 pending, 0 in progress [ada left: Unregistered]
            4s ada: others bob [ada registered]
            40s ada: none [ada seen]
        "#]],
    );
}

#[test]
fn waits_end_with_the_process_and_answers_go_to_the_inbox() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "one" waiting 60s
        2s ada asks bob "two" waiting 60s
        3s bob answers ada-1.000000 "!"
        4s restart
        5s bob answers ada-2.000000 "!!"
        6s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 61s]
            2s ada: asked ada-2.000000 [question to bob awaited until 62s]
            3s bob: answered ada [question answered]
            4s restarted [wait ended · wait ended]
            5s bob: answered ada [question answered]
            6s ada: response-ada-1.000000 (answer to ada-1.000000) '!' | response-ada-2.000000 (answer to ada-2.000000) '!!' [2 read by ada]
        "#]],
    );
}

#[test]
fn a_question_can_be_answered_for_a_day() {
    check(
        r#"
        0s settings heartbeat 72h
        0s ada registers
        0s bob registers
        0s ada asks bob "one"
        0s ada asks bob "two"
        24h bob answers ada-0.000001 "!"
        86401s bob answers ada-0.000002 "!"
        86401s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s ada: asked ada-0.000001 [question to bob]
            0s ada: asked ada-0.000002 [question to bob]
            24h bob: answered ada [question answered · bob seen]
            86401s bob: refused: question 'ada-0.000002' is not open for you to answer: it is unknown, was for another agent, or is answered
            86401s ada: response-ada-0.000001 (answer to ada-0.000001) '!' [1 read by ada · ada seen]
        "#]],
    );
}

#[test]
fn an_unread_question_stays_in_the_inbox_for_longer_than_a_day() {
    check(
        r#"
        0s settings heartbeat 72h
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        48h bob takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            48h bob: ada-1.000000 (help?) '?' [1 read by bob · bob seen]
        "#]],
    );
}
