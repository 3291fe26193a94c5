//! Who may write which files (rule 5 of the A2AMCP contract, leases, tokens, patterns and the check).

use expect_test::expect;

use crate::script::check;

#[test]
fn a_path_has_one_holder_until_it_is_given_back() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada announces src/a.ts because "Adding profile fields"
        2s bob announces src/a.ts
        3s bob releases src/a.ts
        4s ada releases src/a.ts
        5s ada releases src/a.ts
        6s bob announces src/a.ts
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            2s bob: refused: src/a.ts is taken by ada src/a.ts #1 'Adding profile fields' since 1s
            3s bob: refused: held by ada src/a.ts #1 'Adding profile fields' since 1s
            4s ada: released [ada loses src/a.ts #1: Released]
            5s ada: was not locked
            6s bob: granted src/a.ts #2 [bob locks src/a.ts #2]
        "#]],
    );
}

#[test]
fn however_it_is_written_a_path_is_the_same() {
    check(
        r"
        0s ada registers
        0s bob registers
        1s ada announces src/a.ts
        2s bob announces ./src//a.ts
        2s bob announces src\a.ts
        2s bob announces src/x/../a.ts
        2s bob announces src/A.ts
        3s ada releases .\src\.\a.ts
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            2s bob: refused: ./src//a.ts is taken by ada src/a.ts #1 since 1s
            2s bob: refused: src\a.ts is taken by ada src/a.ts #1 since 1s
            2s bob: refused: src/x/../a.ts is taken by ada src/a.ts #1 since 1s
            2s bob: granted src/A.ts #2 [bob locks src/A.ts #2]
            3s ada: released [ada loses src/a.ts #1: Released]
        "#]],
    );
}

#[test]
fn the_holder_asking_again_refreshes_its_lock_under_the_same_token() {
    check(
        r#"
        0s ada registers
        1s ada announces src/a.ts to create because "first"
        2s ada announces src/a.ts to delete because "second"
        3s locks
        3s changes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            2s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            3s held ada src/a.ts #1 Delete 'second' since 2s; waiting none
            3s ada src/a.ts Delete 'second' at 2s | ada src/a.ts Create 'first' at 1s
        "#]],
    );
}

#[test]
fn a_name_with_stars_is_announced_literally() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada announces src/**
        2s bob announces src/a.ts
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/** #1 [ada locks src/** #1]
            2s bob: granted src/a.ts #2 [bob locks src/a.ts #2]
        "#]],
    );
}

#[test]
fn locks_without_a_time_to_live_outlive_a_restart_and_completion() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada announces src/a.ts
        2s ada completes T
        3s restart
        4s bob announces src/a.ts
        60s ada beats
        60s bob beats
        120s bob announces src/a.ts
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            2s ada: done [T completed]
            3s restarted
            4s bob: refused: src/a.ts is taken by ada src/a.ts #1 since 1s
            60s ada: beat of 60s [ada seen]
            60s bob: beat of 60s [bob seen]
            120s bob: refused: src/a.ts is taken by ada src/a.ts #1 since 1s [bob seen]
        "#]],
    );
}

#[test]
fn a_lease_lapses_at_its_end() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires src/a.rs for 10s
        10.999999s bob acquires src/a.rs
        11s bob acquires src/a.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.rs #1 until 11s [ada locks src/a.rs #1 until 11s]
            10.999999s bob: refused: src/a.rs is taken by ada src/a.rs #1 since 1s until 11s
            11s [ada loses src/a.rs #1: Lapsed]
            11s bob: granted src/a.rs #2 [bob locks src/a.rs #2]
        "#]],
    );
}

#[test]
fn a_lapsed_lease_is_seen_by_the_next_call_without_a_sweep() {
    check(
        "
        0s asleep
        0s ada registers
        1s ada acquires src/a.rs for 10s
        10s somebody checks src/a.rs
        11s somebody checks src/a.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted src/a.rs #1 until 11s [ada locks src/a.rs #1 until 11s]
            10s may not: LockedByOther, ada src/a.rs #1 since 1s until 11s
            11s [ada loses src/a.rs #1: Lapsed]
            11s may: Free
        "#]],
    );
}

#[test]
fn a_renewed_lease_lasts_from_the_renewal_under_the_same_token() {
    check(
        "
        0s ada registers
        0s bob registers
        0s ada acquires src/a.rs for 10s
        9s ada renews src/a.rs for 10s
        10s bob acquires src/a.rs
        19s bob acquires src/a.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s ada: granted src/a.rs #1 until 10s [ada locks src/a.rs #1 until 10s]
            9s ada: renewed src/a.rs #1 until 19s [src/a.rs renewed until 19s]
            10s bob: refused: src/a.rs is taken by ada src/a.rs #1 since 0s until 19s
            19s [ada loses src/a.rs #1: Lapsed]
            19s bob: granted src/a.rs #2 [bob locks src/a.rs #2]
        "#]],
    );
}

#[test]
fn renewing_can_shorten_a_lease_or_make_it_endless() {
    check(
        "
        0s ada registers
        0s ada acquires a for 100s
        0s ada acquires b for 10s
        1s ada renews a for 5s
        1s ada renews b
        60s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s ada: granted a #1 until 100s [ada locks a #1 until 100s]
            0s ada: granted b #2 until 10s [ada locks b #2 until 10s]
            1s ada: renewed a #1 until 6s [a renewed until 6s]
            1s ada: renewed b #2 [b renewed]
            6s [ada loses a #1: Lapsed]
            60s held ada b #2 since 0s; waiting none
        "#]],
    );
}

#[test]
fn asking_again_without_a_time_to_live_makes_a_lease_endless() {
    check(
        "
        0s ada registers
        0s ada acquires a for 10s
        1s ada announces a
        30s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s ada: granted a #1 until 10s [ada locks a #1 until 10s]
            1s ada: granted a #1 [ada locks a #1]
            30s held ada a #1 since 1s; waiting none
        "#]],
    );
}

#[test]
fn only_the_holder_with_the_current_token_renews_or_releases() {
    check(
        "
        0s ada registers
        0s bob registers
        0s ada acquires a for 10s
        1s bob renews a for 10s
        1s bob releases a token 1
        10s ada acquires a for 10s
        11s ada renews a token 1
        11s ada releases a token 1
        12s ada renews a token 2 for 5s
        13s ada releases a token 2
        14s ada renews a
        14s ada releases a token 2
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s ada: granted a #1 until 10s [ada locks a #1 until 10s]
            1s bob: refused: held by ada a #1 since 0s until 10s
            1s bob: refused: held by ada a #1 since 0s until 10s
            10s [ada loses a #1: Lapsed]
            10s ada: granted a #2 until 20s [ada locks a #2 until 20s]
            11s ada: refused: token 1 of 'a' is not current: you hold it with token 2
            11s ada: refused: token 1 of 'a' is not current: you hold it with token 2
            12s ada: renewed a #2 until 17s [a renewed until 17s]
            13s ada: released [ada loses a #2: Released]
            14s ada: refused: 'a' is not locked
            14s ada: was not locked
        "#]],
    );
}

#[test]
fn each_new_grant_has_a_greater_token() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada announces a
        2s bob announces b
        3s ada releases a
        4s bob announces a
        5s bob unregisters
        6s restart
        7s ada announces a
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: granted b #2 [bob locks b #2]
            3s ada: released [ada loses a #1: Released]
            4s bob: granted a #3 [bob locks a #3]
            5s bob: left with 0 todos: 0 completed, 0 pending, 0 in progress [bob left: Unregistered]
            6s restarted
            7s ada: granted a #4 [ada locks a #4]
        "#]],
    );
}

#[test]
fn a_folder_keeps_others_from_its_files_and_a_file_from_its_folder() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires src/api/
        2s bob acquires src/api/v1/users.ts
        2s bob acquires src/api
        2s bob acquires src/apis.ts
        3s bob acquires src/
        4s ada releases src/api/**
        5s bob acquires src/web/index.ts
        6s ada acquires src/
        6s ada acquires src/web/
        6s ada acquires src/*/index.ts
        6s ada acquires src/web/*.js
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/api/** #1 [ada locks src/api/** #1]
            2s bob: refused: src/api/v1/users.ts is taken by ada src/api/** #1 since 1s
            2s bob: refused: src/api is taken by ada src/api/** #1 since 1s
            2s bob: granted src/apis.ts #2 [bob locks src/apis.ts #2]
            3s bob: refused: src/ is taken by ada src/api/** #1 since 1s
            4s ada: released [ada loses src/api/** #1: Released]
            5s bob: granted src/web/index.ts #3 [bob locks src/web/index.ts #3]
            6s ada: refused: src/ is taken by bob src/apis.ts #2 since 2s
            6s ada: refused: src/web/ is taken by bob src/web/index.ts #3 since 5s
            6s ada: refused: src/*/index.ts is taken by bob src/web/index.ts #3 since 5s
            6s ada: granted src/web/*.js #4 [ada locks src/web/*.js #4]
        "#]],
    );
}

#[test]
fn patterns_are_in_each_other_s_way_if_some_path_is_in_both() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires src/*/mod.rs
        2s bob acquires **/api/*.rs
        2s bob acquires src/*.rs
        2s bob acquires src/{api,web}/mod.rs
        2s bob acquires {docs,tests}/**
        3s locks
        3s locks within tests/a.md
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/*/mod.rs #1 [ada locks src/*/mod.rs #1]
            2s bob: refused: **/api/*.rs is taken by ada src/*/mod.rs #1 since 1s
            2s bob: granted src/*.rs #2 [bob locks src/*.rs #2]
            2s bob: refused: src/{api,web}/mod.rs is taken by ada src/*/mod.rs #1 since 1s
            2s bob: granted {doc,test}s/** #3 [bob locks {doc,test}s/** #3]
            3s held bob src/*.rs #2 since 2s | ada src/*/mod.rs #1 since 1s | bob {doc,test}s/** #3 since 2s; waiting none
            3s held bob {doc,test}s/** #3 since 2s; waiting none
        "#]],
    );
}

#[test]
fn a_pattern_is_the_same_however_it_is_written() {
    check(
        "
        0s ada registers
        1s ada acquires {b,./a}.rs
        2s ada acquires {a.rs,b.rs}
        3s ada releases {a,b}.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted {a,b}.rs #1 [ada locks {a,b}.rs #1]
            2s ada: granted {a,b}.rs #1 [ada locks {a,b}.rs #1]
            3s ada: released [ada loses {a,b}.rs #1: Released]
        "#]],
    );
}

#[test]
fn nobody_is_in_its_own_way() {
    check(
        "
        0s ada registers
        1s ada acquires src/
        2s ada acquires src/a.rs
        3s ada acquires **/*.rs
        4s ada releases src/
        5s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted src/** #1 [ada locks src/** #1]
            2s ada: granted src/a.rs #2 [ada locks src/a.rs #2]
            3s ada: granted **/*.rs #3 [ada locks **/*.rs #3]
            4s ada: released [ada loses src/** #1: Released]
            5s held ada src/a.rs #2 since 2s | ada **/*.rs #3 since 3s; waiting none
        "#]],
    );
}

#[test]
fn the_check_says_who_holds_a_path_and_why_not_to_write() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires src/ for 10s
        2s ada checks src/a.rs
        2s ada checks src/a.rs token 1
        2s bob checks src/a.rs
        2s bob checks src/a.rs token 1
        2s somebody checks ./src/a.rs
        2s bob checks docs/a.md
        2s bob checks docs/a.md must-hold
        2s bob checks docs/a.md token 7
        2s stranger checks src/a.rs
        2s stranger checks docs/a.md
        11s ada acquires src/
        12s ada checks src/a.rs token 1
        12s ada checks src/a.rs token 2
        12s ada checks src/a.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/** #1 until 11s [ada locks src/** #1 until 11s]
            2s ada: may: Yours, ada src/** #1 since 1s until 11s
            2s ada: may: Yours, ada src/** #1 since 1s until 11s
            2s bob: may not: LockedByOther, ada src/** #1 since 1s until 11s
            2s bob: may not: LockedByOther, ada src/** #1 since 1s until 11s
            2s may not: LockedByOther, ada src/** #1 since 1s until 11s
            2s bob: may: Free
            2s bob: may not: Free
            2s bob: may not: StaleToken
            2s stranger: may not: LockedByOther, ada src/** #1 since 1s until 11s
            2s stranger: may: Free
            11s [ada loses src/** #1: Lapsed]
            11s ada: granted src/** #2 [ada locks src/** #2]
            12s ada: may not: StaleToken, ada src/** #2 since 11s
            12s ada: may: Yours, ada src/** #2 since 11s
            12s ada: may: Yours, ada src/** #2 since 11s
        "#]],
    );
}

#[test]
fn any_of_the_holder_s_tokens_for_a_path_will_do() {
    check(
        "
        0s ada registers
        1s ada acquires src/
        1s ada acquires src/a.rs
        2s ada checks src/a.rs token 1
        2s ada checks src/a.rs token 2
        2s ada checks src/a.rs token 3
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted src/** #1 [ada locks src/** #1]
            1s ada: granted src/a.rs #2 [ada locks src/a.rs #2]
            2s ada: may: Yours, ada src/a.rs #2 since 1s
            2s ada: may: Yours, ada src/a.rs #2 since 1s
            2s ada: may not: StaleToken, ada src/a.rs #2 since 1s
        "#]],
    );
}

#[test]
fn a_place_in_line_keeps_nobody_from_writing_what_is_free() {
    check(
        "
        0s asleep
        0s ada registers
        0s bob registers
        1s ada acquires src/a.rs
        2s bob acquires src/ waiting
        3s ada checks src/b.rs
        3s somebody checks src/b.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/**, place 1, held by ada src/a.rs [bob lines up for src/**]
            3s ada: may: Free
            3s may: Free
        "#]],
    );
}
