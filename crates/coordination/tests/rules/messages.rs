//! Messages and their receipts (rules 8, 10 and 11 of the A2AMCP contract).

use expect_test::expect;

use crate::script::check;

#[test]
fn a_broadcast_reaches_everybody_but_its_sender() {
    check(
        r#"
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada sends "deploying" type warning
        2s ada takes
        2s bob takes
        2s carl takes
        2s carl takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: sent ada-1.000000 to 2 [message to bob | carl]
            2s ada: none
            2s bob: ada-1.000000 (to all, warning) 'deploying' [1 read by bob]
            2s carl: ada-1.000000 (to all, warning) 'deploying' [1 read by carl]
            2s carl: none
        "#]],
    );
}

#[test]
fn a_broadcast_to_nobody_is_no_message() {
    check(
        r#"
        0s ada registers
        1s ada sends "anybody?"
        2s messages
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: sent nothing to 0
            2s none
        "#]],
    );
}

#[test]
fn a_message_reaches_each_of_those_named_once_and_only_if_all_are_here() {
    check(
        r#"
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada sends "hi" to bob,bob
        2s ada sends "hi" to bob,nobody
        3s ada sends "hi" to bob,ada
        4s bob takes
        4s carl takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s ada: refused: agent 'nobody' is not registered in this project: list the agents to see who is
            3s ada: refused: an agent cannot send a message to itself
            4s bob: ada-1.000000 (info) 'hi' [1 read by bob]
            4s carl: none
        "#]],
    );
}

#[test]
fn an_inbox_is_first_in_first_out() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada sends "one"
        2s ada asks bob "two"
        3s ada sends "three"
        4s bob reads limit 2
        5s bob takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s ada: asked ada-2.000000 [question to bob]
            3s ada: sent ada-3.000000 to 1 [message to bob]
            4s bob: ada-1.000000 (to all, info) 'one' | ada-2.000000 (help?) 'two' and 1 more [2 read by bob]
            5s bob: ada-3.000000 (to all, info) 'three' [1 read by bob]
        "#]],
    );
}

#[test]
fn a_sender_sees_stored_delivered_and_read_with_their_times() {
    check(
        r#"
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada sends "hi"
        2s ada status
        3s bob reads keep
        4s ada status
        5s bob reads ack ada-1.000000
        6s carl takes
        7s ada status of ada-1.000000
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: sent ada-1.000000 to 2 [message to bob | carl]
            2s ada: ada-1.000000 stored 1s, bob, carl
            3s bob: ada-1.000000 (to all, info) 'hi' and 0 more [1 delivered to bob]
            4s ada: ada-1.000000 stored 1s, bob delivered 3s, carl
            5s bob: none and 0 more [1 read by bob]
            6s carl: ada-1.000000 (to all, info) 'hi' [1 read by carl]
            7s ada: ada-1.000000 stored 1s, bob delivered 3s read 5s, carl delivered 6s read 6s
        "#]],
    );
}

#[test]
fn a_sender_sees_when_its_question_was_answered_and_known() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        2s bob reads keep
        3s bob reads ack ada-1.000000
        4s bob answers ada-1.000000 "!"
        5s ada status
        6s ada takes
        7s ada status
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s bob: ada-1.000000 (help?) '?' and 0 more [1 delivered to bob]
            3s bob: none and 0 more [1 read by bob]
            4s bob: answered ada [question answered]
            5s ada: ada-1.000000 stored 1s, bob delivered 2s read 3s, question answered 4s
            6s ada: response-ada-1.000000 (answer to ada-1.000000) '!' [1 read by ada]
            7s ada: ada-1.000000 stored 1s, bob delivered 2s read 3s, question answered 4s known 6s
        "#]],
    );
}

#[test]
fn what_was_kept_is_handed_over_again_until_it_is_acknowledged() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada sends "one"
        2s ada sends "two"
        3s bob reads keep limit 1
        4s bob reads keep
        5s bob reads keep ack ada-1.000000,unknown
        6s bob reads
        7s bob reads
        8s ada status
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s ada: sent ada-2.000000 to 1 [message to bob]
            3s bob: ada-1.000000 (to all, info) 'one' and 1 more [1 delivered to bob]
            4s bob: ada-1.000000 (to all, info) 'one' again | ada-2.000000 (to all, info) 'two' and 0 more [1 delivered to bob]
            5s bob: ada-2.000000 (to all, info) 'two' again and 0 more [1 read by bob]
            6s bob: ada-2.000000 (to all, info) 'two' again and 0 more [1 read by bob]
            7s bob: none and 0 more
            8s ada: ada-2.000000 stored 2s, bob delivered 4s read 6s | ada-1.000000 stored 1s, bob delivered 3s read 5s
        "#]],
    );
}

#[test]
fn acknowledging_and_reading_on_is_one_step() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s 4x ada sends "x"
        2s bob reads keep limit 2
        3s bob reads keep limit 2 ack ada-1.000000,ada-1.000001
        4s bob reads limit 1 ack ada-1.000002
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (4 times) ada: sent ada-1.000003 to 1 [message to bob]
            2s bob: ada-1.000000 (to all, info) 'x' | ada-1.000001 (to all, info) 'x' and 2 more [2 delivered to bob]
            3s bob: ada-1.000002 (to all, info) 'x' | ada-1.000003 (to all, info) 'x' and 0 more [2 read by bob · 2 delivered to bob]
            4s bob: ada-1.000003 (to all, info) 'x' again and 0 more [1 read by bob · 1 read by bob]
        "#]],
    );
}

#[test]
fn a_receipt_keeps_the_first_delivery() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada sends "hi"
        2s bob reads keep
        3s bob reads keep
        4s bob takes
        5s ada status
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s bob: ada-1.000000 (to all, info) 'hi' and 0 more [1 delivered to bob]
            3s bob: ada-1.000000 (to all, info) 'hi' again and 0 more
            4s bob: ada-1.000000 (to all, info) 'hi' again [1 read by bob]
            5s ada: ada-1.000000 stored 1s, bob delivered 2s read 4s
        "#]],
    );
}

#[test]
fn a_receipt_is_shown_to_the_sender_only() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada sends "hi"
        2s bob status
        2s bob status of ada-1.000000
        2s ada status of bob-1.000000
        2s ada status of nonsense
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s bob: none
            2s bob: refused: message 'ada-1.000000' is not one that you sent and that is still remembered
            2s ada: ada-1.000000 stored 1s, bob
            2s ada: refused: message 'nonsense' is not one that you sent and that is still remembered
        "#]],
    );
}

#[test]
fn unread_messages_outlive_a_restart() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada sends "one"
        2s ada asks bob "two"
        2s bob reads keep limit 1
        3s restart
        4s bob takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s ada: asked ada-2.000000 [question to bob]
            2s bob: ada-1.000000 (to all, info) 'one' and 1 more [1 delivered to bob]
            3s restarted
            4s bob: ada-1.000000 (to all, info) 'one' again | ada-2.000000 (help?) 'two' [2 read by bob]
        "#]],
    );
}

#[test]
fn the_messages_of_an_agent_that_left_are_gone_for_its_successor() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada sends "hi"
        2s bob unregisters
        3s bob registers
        4s bob takes
        5s ada status
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: sent ada-1.000000 to 1 [message to bob]
            2s bob: left with 0 todos: 0 completed, 0 pending, 0 in progress [bob left: Unregistered]
            3s bob: others ada [bob registered]
            4s bob: none
            5s ada: ada-1.000000 stored 1s, bob
        "#]],
    );
}

#[test]
fn receipts_of_the_newest_thousand_messages_are_kept() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s 1000x ada sends "early"
        2s bob takes
        3s ada sends "unread"
        4s 999x ada sends "late"
        5s bob reads keep limit 1
        5s bob reads ack ada-4.000000 limit 0
        6s messages limit 5000
        7s ada sends "one too many"
        8s messages limit 5000
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (1000 times) ada: sent ada-1.000999 to 1 [message to bob]
            2s bob: 1000 items: ada-1.000000 (to all, info) 'early' … ada-1.000999 (to all, info) 'early' [1000 read by bob]
            3s ada: sent ada-3.000000 to 1 [message to bob]
            4s (999 times) ada: sent ada-4.000998 to 1 [message to bob]
            5s bob: ada-3.000000 (to all, info) 'unread' and 999 more [1 delivered to bob]
            5s bob: none and 999 more [1 read by bob]
            6s 2000 items: ada-4.000998 stored 4s, bob … ada-1.000000 stored 1s, bob delivered 2s read 2s
            7s ada: sent ada-7.000000 to 1 [message to bob]
            8s 2000 items: ada-7.000000 stored 7s, bob … ada-1.000001 stored 1s, bob delivered 2s read 2s
        "#]],
    );
}

#[test]
fn receipts_are_not_kept_for_longer_than_a_day() {
    check(
        r#"
        0s settings heartbeat 48h
        0s ada registers
        0s bob registers
        1s 2000x ada sends "old"
        2s bob takes
        24h ada sends "newer"
        25h messages limit 5000
        25h ada sends "newest"
        25h messages limit 5000
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (2000 times) ada: sent ada-1.001999 to 1 [message to bob]
            2s bob: 2000 items: ada-1.000000 (to all, info) 'old' … ada-1.001999 (to all, info) 'old' [2000 read by bob]
            24h ada: sent ada-86400.000000 to 1 [message to bob · ada seen]
            25h 1001 items: ada-86400.000000 stored 24h, bob … ada-1.001000 stored 1s, bob delivered 2s read 2s
            25h ada: sent ada-90000.000000 to 1 [message to bob]
            25h 1002 items: ada-90000.000000 stored 25h, bob … ada-1.001000 stored 1s, bob delivered 2s read 2s
        "#]],
    );
}

#[test]
fn an_answer_that_was_seen_but_not_acknowledged_is_kept_however_many_come_after() {
    check(
        r#"
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada asks bob "?"
        2s bob takes
        3s bob answers ada-1.000000 "!"
        4s ada reads keep
        5s 2000x bob sends "x" to carl
        6s carl takes
        7s 1001x bob sends "x" to carl
        8s messages limit 5000
        9s ada reads
        10s carl takes
        11s 1000x bob sends "x" to carl
        12s ada status
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s bob: ada-1.000000 (help?) '?' [1 read by bob]
            3s bob: answered ada [question answered]
            4s ada: response-ada-1.000000 (answer to ada-1.000000) '!' and 0 more [1 delivered to ada]
            5s (2000 times) bob: sent bob-5.001999 to 1 [message to carl]
            6s carl: 2000 items: bob-5.000000 (info) 'x' … bob-5.001999 (info) 'x' [2000 read by carl]
            7s (1001 times) bob: sent bob-7.001000 to 1 [message to carl]
            8s 2002 items: bob-7.001000 stored 7s, carl … ada-1.000000 stored 1s, bob delivered 2s read 2s, question answered 3s known 4s
            9s ada: response-ada-1.000000 (answer to ada-1.000000) '!' again and 0 more [1 read by ada]
            10s carl: 1001 items: bob-7.000000 (info) 'x' … bob-7.001000 (info) 'x' [1001 read by carl]
            11s (1000 times) bob: sent bob-11.000999 to 1 [message to carl]
            12s ada: ada-1.000000 stored 1s, bob delivered 2s read 2s, question answered 3s known 4s
        "#]],
    );
}

#[test]
fn a_question_that_nobody_answers_is_forgotten_after_a_day() {
    check(
        r#"
        0s settings heartbeat 72h
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada asks bob "?"
        2s bob takes
        23h 2001x bob sends "x" to carl
        23h ada status
        25h 1001x bob sends "x" to carl
        25h ada status
        25h ada collects ada-1.000000
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s bob: ada-1.000000 (help?) '?' [1 read by bob]
            23h (2001 times) bob: sent bob-82800.002000 to 1 [message to carl]
            23h ada: ada-1.000000 stored 1s, bob delivered 2s read 2s, question [ada seen]
            25h (1001 times) bob: sent bob-90000.001000 to 1 [message to carl]
            25h ada: none
            25h ada: refused: question 'ada-1.000000' is not open for you to answer: it is unknown, was for another agent, or is answered
        "#]],
    );
}

#[test]
fn one_who_is_no_agent_posts_once_however_often_it_repeats_that() {
    check(
        r#"
        0s ada registers
        1s schedule-93 posts "standup" to ada
        2s schedule-93 posts "standup" to ada
        3s ada takes
        4s schedule-93 posts "standup" to ada
        5s schedule-94 posts "standup" to bob
        6s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s posted schedule-93-1.000000 [message to ada]
            2s posted schedule-93-1.000000
            3s ada: schedule-93-1.000000 (schedule) 'standup' [1 read by ada]
            4s posted schedule-93-1.000000
            5s refused: agent 'bob' is not registered in this project: list the agents to see who is
            6s ada: none
        "#]],
    );
}
