//! Signs of life (rule 4) and how often they are wanted (rule 7).

use expect_test::expect;

use crate::script::check;

#[test]
fn a_silent_agent_expires_with_all_it_held() {
    check(
        "
        0s ada registers
        0s ada announces src/a.rs
        60s bob registers
        61s bob acquires src/a.rs waiting
        121s agents
        121s locks
        121s ada beats
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            60s bob: others ada [bob registered]
            61s bob: waits ticket-61.000000 for src/a.rs, place 1, held by ada src/a.rs [bob lines up for src/a.rs]
            120s [ada left: Expired]
            120s [bob locks src/a.rs #2 claim by 180s]
            121s bob t Active since 60s
            121s held bob src/a.rs #2 since 120s; waiting none
            121s ada: refused: agent 'ada' is not registered: register it first
        "#]],
    );
}

#[test]
fn expiry_shows_at_the_next_call_without_a_sweep() {
    check(
        "
        0s asleep
        0s ada registers
        0s ada announces src/a.rs
        119s somebody checks src/a.rs
        120s somebody checks src/a.rs
        120s agents
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            119s may not: LockedByOther, ada src/a.rs #1 since 0s
            120s [ada left: Expired]
            120s may: Free
            120s none
        "#]],
    );
}

#[test]
fn a_heartbeat_at_the_last_moment_counts() {
    check(
        "
        0s ada registers
        119s ada beats
        238s agents
        239s agents
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            119s ada: beat of 119s [ada seen]
            238s ada t Active since 0s
            239s [ada left: Expired]
            239s none
        "#]],
    );
}

#[test]
fn any_call_in_its_name_is_a_sign_of_life() {
    check(
        r#"
        0s ada registers
        100s ada todos
        200s ada checks src/a.rs
        300s ada takes
        400s ada renews nothing
        500s ada completes T
        600s agents
        700s agents
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            100s ada: none [ada seen]
            200s ada: may: Free [ada seen]
            300s ada: none [ada seen]
            400s ada: refused: 'nothing' is not locked [ada seen]
            500s ada: done [T completed · ada seen]
            600s ada t Completed since 0s
            620s [ada left: Expired]
            700s none
        "#]],
    );
}

#[test]
fn calls_about_an_agent_are_no_sign_of_its_life() {
    check(
        r#"
        0s ada registers
        60s bob registers
        90s bob asks ada "?"
        100s todos
        110s agents
        125s agents
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            60s bob: others ada [bob registered]
            90s bob: asked bob-90.000000 [question to ada]
            100s ada: none | bob: none
            110s ada t Active since 0s | bob t Active since 60s
            120s [ada left: Expired]
            125s bob t Active since 60s
        "#]],
    );
}

#[test]
fn ending_a_wait_for_an_asker_is_no_sign_of_its_life() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?" waiting 30s
        60s bob beats
        100s ada collects ada-1.000000 stopping
        121s agents
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob awaited until 31s]
            31s [wait ended]
            60s bob: beat of 60s [bob seen]
            100s ada: pending at bob
            121s [ada left: Expired]
            121s bob t Active since 0s
        "#]],
    );
}

#[test]
fn a_sign_of_life_is_journalled_once_in_a_quarter_of_the_time_out() {
    check(
        "
        0s ada registers
        10s ada beats
        20s ada beats
        30s ada beats
        31s ada beats
        40s ada todos
        61s ada todos
        62s ada todos
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            10s ada: beat of 10s
            20s ada: beat of 20s
            30s ada: beat of 30s
            31s ada: beat of 30s [ada seen]
            40s ada: none
            61s ada: none
            62s ada: none [ada seen]
        "#]],
    );
}

#[test]
fn after_a_restart_every_agent_has_a_full_new_period() {
    check(
        "
        0s ada registers
        60s bob registers
        119s restart
        238s agents
        239s agents
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            60s bob: others ada [bob registered]
            119s restarted
            238s ada t Active since 0s | bob t Active since 60s
            239s [ada left: Expired · bob left: Expired]
            239s none
        "#]],
    );
}

#[test]
fn a_machine_built_again_keeps_what_it_saw_and_when_it_expires() {
    check(
        "
        0s ada registers
        0s bob registers
        25s ada beats
        100s rebuild
        120s agents
        145s agents
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            25s ada: beat of 25s
            100s rebuilt
            120s [bob left: Expired]
            120s ada t Active since 0s
            145s [ada left: Expired]
            145s none
        "#]],
    );
}

#[test]
fn where_other_nodes_serve_the_project_they_are_given_time_to_tell() {
    check(
        "
        0s settings shared
        0s ada registers
        149s agents
        150s agents
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            149s ada t Active since 0s
            150s [ada left: Expired]
            150s none
        "#]],
    );
}

#[test]
fn the_time_out_is_a_setting() {
    check(
        "
        0s settings heartbeat 2s
        0s ada registers
        0s bob registers
        0s ada announces src/a.rs
        1s bob beats
        2s bob announces src/a.rs
        2s ada beats
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            1s bob: beat of 1s [bob seen]
            2s [ada left: Expired]
            2s bob: granted src/a.rs #2 [bob locks src/a.rs #2 · bob seen]
            2s ada: refused: agent 'ada' is not registered: register it first
        "#]],
    );
}

#[test]
fn an_early_heartbeat_answers_with_the_one_that_counts() {
    check(
        "
        0s ada registers
        1s ada beats
        1s ada beats
        10.999999s ada beats
        11s ada beats
        12s ada beats
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: beat of 1s
            1s ada: beat of 1s
            10.999999s ada: beat of 1s
            11s ada: beat of 11s
            12s ada: beat of 11s
        "#]],
    );
}

#[test]
fn strict_limits_refuse_early_heartbeats() {
    check(
        "
        0s settings strict
        0s ada registers
        1s ada beats
        1s ada beats
        5.5s ada beats
        11s ada beats
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: beat of 1s
            1s ada: refused: min 10 seconds between heartbeats: call again in 10 s
            5.5s ada: refused: min 10 seconds between heartbeats: call again in 6 s
            11s ada: beat of 11s
        "#]],
    );
}

#[test]
fn a_refused_heartbeat_is_a_sign_of_life_all_the_same() {
    check(
        "
        0s settings strict
        0s settings heartbeat 12s
        0s ada registers
        5s ada beats
        14s ada beats
        18s agents
        26s agents
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            5s ada: beat of 5s [ada seen]
            14s ada: refused: min 10 seconds between heartbeats: call again in 1 s [ada seen]
            18s ada t Active since 0s
            26s [ada left: Expired]
            26s none
        "#]],
    );
}

#[test]
fn looks_for_messages_over_the_limit_are_served() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s 15x ada takes
        1s bob sends "hello"
        2s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (15 times) ada: none
            1s bob: sent bob-1.000000 to 1 [message to ada]
            2s ada: bob-1.000000 (to all, info) 'hello' [1 read by ada]
        "#]],
    );
}

#[test]
fn strict_limits_refuse_the_eleventh_look_for_messages_and_leave_them_there() {
    check(
        r#"
        0s settings strict
        0s ada registers
        0s bob registers
        1s ada takes
        2s 9x ada takes
        3s bob sends "hello"
        4s ada takes
        4s ada reads keep
        60.5s ada takes
        61s ada takes
        61s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: none
            2s (9 times) ada: none
            3s bob: sent bob-3.000000 to 1 [message to ada]
            4s ada: refused: max 10 message checks per minute: call again in 57 s
            4s ada: bob-3.000000 (to all, info) 'hello' and 0 more [1 delivered to ada]
            60.5s ada: refused: max 10 message checks per minute: call again in 1 s [ada seen]
            61s ada: bob-3.000000 (to all, info) 'hello' again [1 read by ada]
            61s ada: refused: max 10 message checks per minute: call again in 1 s
        "#]],
    );
}

#[test]
fn the_hundred_and_first_question_in_a_minute_is_refused_until_one_is_a_minute_old() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada asks bob "?"
        2s 99x ada asks bob "?"
        10s ada asks bob "?"
        10s bob asks ada "?"
        60.999999s ada asks bob "?"
        61s ada asks bob "?"
        61s ada asks bob "?"
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: asked ada-1.000000 [question to bob]
            2s (99 times) ada: asked ada-2.000098 [question to bob]
            10s ada: refused: max 100 queries per minute: call again in 51 s
            10s bob: asked bob-10.000000 [question to ada]
            60.999999s ada: refused: max 100 queries per minute: call again in 1 s [ada seen]
            61s ada: asked ada-61.000000 [question to bob]
            61s ada: refused: max 100 queries per minute: call again in 1 s
        "#]],
    );
}

#[test]
fn the_limit_of_questions_outlives_a_restart_and_registering_again() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s 100x ada asks bob "?"
        2s restart
        2s ada asks bob "?"
        3s ada registers
        3s ada asks bob "?"
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (100 times) ada: asked ada-1.000099 [question to bob]
            2s restarted
            2s ada: refused: max 100 queries per minute: call again in 59 s
            3s ada: others bob [ada registered]
            3s ada: refused: max 100 queries per minute: call again in 58 s
        "#]],
    );
}

#[test]
fn refused_questions_do_not_count() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s 100x ada asks bob "?"
        30s 50x ada asks bob "?"
        61s ada asks bob "?"
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s (100 times) ada: asked ada-1.000099 [question to bob]
            30s (50 times) ada: refused: max 100 queries per minute: call again in 31 s
            61s ada: asked ada-61.000000 [question to bob · ada seen]
        "#]],
    );
}
