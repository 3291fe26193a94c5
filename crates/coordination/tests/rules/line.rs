//! The line for locks.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_released_lock_passes_to_who_waited_longest() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires src/a.rs
        2s bob acquires src/a.rs for 30s waiting
        3s carl acquires src/a.rs waiting
        4s locks
        5s ada releases src/a.rs
        6s bob claims ticket-2.000000
        7s bob claims ticket-2.000000
        8s bob releases src/a.rs
        9s carl claims ticket-3.000000
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/a.rs, place 1, held by ada src/a.rs [bob lines up for src/a.rs]
            3s carl: waits ticket-3.000000 for src/a.rs, place 2, held by ada src/a.rs [carl lines up for src/a.rs]
            4s held ada src/a.rs #1 since 1s; waiting bob src/a.rs in line since 2s | carl src/a.rs in line since 3s
            5s ada: released [ada loses src/a.rs #1: Released]
            5s [bob locks src/a.rs #2 until 35s claim by 65s]
            6s bob: granted src/a.rs #2 until 35s [src/a.rs claimed]
            7s bob: granted src/a.rs #2 until 35s
            8s bob: released [bob loses src/a.rs #2: Released]
            8s [carl locks src/a.rs #3 claim by 68s]
            9s carl: granted src/a.rs #3 [src/a.rs claimed]
        "#]],
    );
}

#[test]
fn a_lapsed_lock_passes_to_who_waited_longest() {
    check(
        "
        0s ada registers
        0s bob registers
        0s ada acquires src/a.rs for 10s
        1s bob acquires src/a.rs for 10s waiting
        10s bob claims ticket-1.000000
        20s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s ada: granted src/a.rs #1 until 10s [ada locks src/a.rs #1 until 10s]
            1s bob: waits ticket-1.000000 for src/a.rs, place 1, held by ada src/a.rs [bob lines up for src/a.rs]
            10s [ada loses src/a.rs #1: Lapsed]
            10s bob: waits ticket-1.000000 for src/a.rs, place 1, held by none
            10s [bob locks src/a.rs #2 until 20s claim by 70s]
            20s [bob loses src/a.rs #2: Lapsed]
            20s held none; waiting none
        "#]],
    );
}

#[test]
fn the_lock_of_an_agent_that_left_passes_on() {
    check(
        "
        0s ada registers
        0s bob registers
        0s ada acquires src/a.rs
        1s bob acquires src/a.rs waiting
        2s ada unregisters
        3s bob claims ticket-1.000000
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            1s bob: waits ticket-1.000000 for src/a.rs, place 1, held by ada src/a.rs [bob lines up for src/a.rs]
            2s ada: left with 0 todos: 0 completed, 0 pending, 0 in progress [ada left: Unregistered]
            2s [bob locks src/a.rs #2 claim by 62s]
            3s bob: granted src/a.rs #2 [src/a.rs claimed]
        "#]],
    );
}

#[test]
fn asking_again_keeps_the_place() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires a
        2s bob acquires a waiting
        3s carl acquires a waiting
        4s bob acquires a waiting
        5s bob claims ticket-2.000000
        5s carl claims ticket-3.000000
        6s ada releases a
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s carl: waits ticket-3.000000 for a, place 2, held by ada a [carl lines up for a]
            4s bob: waits ticket-2.000000 for a, place 1, held by ada a
            5s bob: waits ticket-2.000000 for a, place 1, held by ada a
            5s carl: waits ticket-3.000000 for a, place 2, held by ada a
            6s ada: released [ada loses a #1: Released]
            6s [bob locks a #2 claim by 66s]
        "#]],
    );
}

#[test]
fn nobody_overtakes_also_where_the_file_itself_is_free() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires src/a.rs
        2s bob acquires src/ waiting
        3s carl acquires src/b.rs
        4s carl acquires src/b.rs waiting
        5s ada releases src/a.rs
        6s bob releases src/
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/**, place 1, held by ada src/a.rs [bob lines up for src/**]
            3s carl: refused: src/b.rs is taken by bob src/** in line since 2s
            4s carl: waits ticket-4.000000 for src/b.rs, place 2, held by none [carl lines up for src/b.rs]
            5s ada: released [ada loses src/a.rs #1: Released]
            5s [bob locks src/** #2 claim by 65s]
            6s bob: released [bob loses src/** #2: Released]
            6s [carl locks src/b.rs #3 claim by 66s]
        "#]],
    );
}

#[test]
fn those_who_want_other_files_are_not_in_the_way() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        0s dora registers
        1s ada acquires a
        2s bob acquires a waiting
        3s carl acquires b
        4s dora acquires b waiting
        5s carl releases b
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            0s dora: others ada | bob | carl [dora registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s carl: granted b #2 [carl locks b #2]
            4s dora: waits ticket-4.000000 for b, place 1, held by carl b [dora lines up for b]
            5s carl: released [carl loses b #2: Released]
            5s [dora locks b #3 claim by 65s]
        "#]],
    );
}

#[test]
fn all_who_can_be_served_are_served_at_once() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        0s dora registers
        1s ada acquires src/
        2s bob acquires src/a.rs waiting
        3s carl acquires src/b.rs waiting
        4s dora acquires src/*.rs waiting
        5s ada releases src/
        6s bob releases src/a.rs
        7s carl releases src/b.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            0s dora: others ada | bob | carl [dora registered]
            1s ada: granted src/** #1 [ada locks src/** #1]
            2s bob: waits ticket-2.000000 for src/a.rs, place 1, held by ada src/** [bob lines up for src/a.rs]
            3s carl: waits ticket-3.000000 for src/b.rs, place 1, held by ada src/** [carl lines up for src/b.rs]
            4s dora: waits ticket-4.000000 for src/*.rs, place 3, held by ada src/** [dora lines up for src/*.rs]
            5s ada: released [ada loses src/** #1: Released]
            5s [bob locks src/a.rs #2 claim by 65s · carl locks src/b.rs #3 claim by 65s]
            6s bob: released [bob loses src/a.rs #2: Released]
            7s carl: released [carl loses src/b.rs #3: Released]
            7s [dora locks src/*.rs #4 claim by 67s]
        "#]],
    );
}

#[test]
fn nobody_takes_a_free_file_from_the_first_in_line() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires a
        2s bob acquires a waiting
        3s ada releases a
        and carl acquires a
        and carl acquires a waiting
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s ada: released [ada loses a #1: Released]
            3s carl: refused: a is taken by bob a in line since 2s
            3s carl: waits ticket-3.000000 for a, place 2, held by none [carl lines up for a]
            3s [bob locks a #2 claim by 63s]
        "#]],
    );
}

#[test]
fn a_grant_that_is_not_claimed_passes_on() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires a
        2s bob acquires a waiting
        3s carl acquires a waiting
        4s ada releases a
        63.999999s bob reads keep
        64s bob reads keep
        65s bob claims ticket-2.000000
        66s carl claims ticket-3.000000
        90s bob beats
        90s carl beats
        180s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s carl: waits ticket-3.000000 for a, place 2, held by ada a [carl lines up for a]
            4s ada: released [ada loses a #1: Released]
            4s [bob locks a #2 claim by 64s]
            63.999999s bob: ticket-2.000000 (a is yours by ticket-2.000000 as #2 claim by 64s) '' and 0 more [bob seen]
            64s [bob loses a #2: Unclaimed]
            64s bob: none and 0 more
            64s [carl locks a #3 claim by 124s]
            65s bob: refused: 'ticket-2.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
            66s carl: granted a #3 [a claimed · carl seen]
            90s bob: beat of 90s
            90s carl: beat of 90s
            124s [ada left: Expired]
            180s held carl a #3 since 64s; waiting none
        "#]],
    );
}

#[test]
fn asking_for_it_again_or_renewing_claims_a_grant() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires a
        1s ada acquires b
        2s bob acquires a waiting
        2s bob acquires b waiting
        3s ada releases a
        3s ada releases b
        4s bob reads keep
        5s bob acquires a
        6s bob renews b
        7s bob takes
        80s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            1s ada: granted b #2 [ada locks b #2]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            2s bob: waits ticket-2.000001 for b, place 1, held by ada b [bob lines up for b]
            3s ada: released [ada loses a #1: Released]
            3s [bob locks a #3 claim by 63s]
            3s ada: released [ada loses b #2: Released]
            3s [bob locks b #4 claim by 63s]
            4s bob: ticket-2.000000 (a is yours by ticket-2.000000 as #3 claim by 63s) '' | ticket-2.000001 (b is yours by ticket-2.000001 as #4 claim by 63s) '' and 0 more
            5s bob: granted a #3 [bob locks a #3]
            6s bob: renewed b #4 [b renewed]
            7s bob: none
            80s held bob a #3 since 5s | bob b #4 since 3s; waiting none
        "#]],
    );
}

#[test]
fn who_was_served_hears_of_it_until_it_comes() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires a
        2s bob acquires a waiting
        3s ada releases a
        4s bob reads keep
        5s bob claims ticket-2.000000
        6s bob reads keep
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s ada: released [ada loses a #1: Released]
            3s [bob locks a #2 claim by 63s]
            4s bob: ticket-2.000000 (a is yours by ticket-2.000000 as #2 claim by 63s) '' and 0 more
            5s bob: granted a #2 [a claimed]
            6s bob: none and 0 more
        "#]],
    );
}

#[test]
fn who_gives_up_lets_the_next_pass() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires src/a.rs
        2s bob acquires src/ waiting
        3s carl acquires src/b.rs waiting
        4s carl leaves ticket-2.000000
        5s bob leaves ticket-2.000000
        6s bob leaves ticket-2.000000
        6s bob claims ticket-2.000000
        6s bob claims nonsense
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/**, place 1, held by ada src/a.rs [bob lines up for src/**]
            3s carl: waits ticket-3.000000 for src/b.rs, place 2, held by none [carl lines up for src/b.rs]
            4s carl: refused: 'ticket-2.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
            5s bob: left the line [ticket-2.000000 given up]
            5s [carl locks src/b.rs #2 claim by 65s]
            6s bob: refused: 'ticket-2.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
            6s bob: refused: 'ticket-2.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
            6s bob: refused: 'nonsense' is no place in a line: it was given up, or its lock was not claimed in time; ask again
        "#]],
    );
}

#[test]
fn who_gives_up_after_being_served_gives_the_unclaimed_lock_back() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires src/a.rs
        2s bob acquires src/a.rs waiting
        3s carl acquires src/a.rs waiting
        4s ada releases src/a.rs
        5s carl leaves ticket-2.000000
        6s bob leaves ticket-2.000000
        7s bob leaves ticket-2.000000
        8s carl claims ticket-3.000000
        9s carl leaves ticket-3.000000
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/a.rs, place 1, held by ada src/a.rs [bob lines up for src/a.rs]
            3s carl: waits ticket-3.000000 for src/a.rs, place 2, held by ada src/a.rs [carl lines up for src/a.rs]
            4s ada: released [ada loses src/a.rs #1: Released]
            4s [bob locks src/a.rs #2 claim by 64s]
            5s carl: refused: 'ticket-2.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
            6s bob: left the line [bob loses src/a.rs #2: Unclaimed]
            6s [carl locks src/a.rs #3 claim by 66s]
            7s bob: refused: 'ticket-2.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
            8s carl: granted src/a.rs #3 [src/a.rs claimed]
            9s carl: refused: 'ticket-3.000000' is no place in a line: it was given up, or its lock was not claimed in time; ask again
        "#]],
    );
}

#[test]
fn the_places_of_an_agent_that_left_are_gone() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires src/a.rs
        2s bob acquires src/ waiting
        3s carl acquires src/b.rs waiting
        4s bob unregisters
        5s ada releases src/a.rs
        6s locks
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/**, place 1, held by ada src/a.rs [bob lines up for src/**]
            3s carl: waits ticket-3.000000 for src/b.rs, place 2, held by none [carl lines up for src/b.rs]
            4s bob: left with 0 todos: 0 completed, 0 pending, 0 in progress [bob left: Unregistered]
            4s [carl locks src/b.rs #2 claim by 64s]
            5s ada: released [ada loses src/a.rs #1: Released]
            6s held carl src/b.rs #2 since 4s; waiting none
        "#]],
    );
}

#[test]
fn a_place_in_line_outlives_a_restart() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires a
        2s bob acquires a for 30s waiting
        3s restart
        4s ada releases a
        5s bob claims ticket-2.000000
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s restarted
            4s ada: released [ada loses a #1: Released]
            4s [bob locks a #2 until 34s claim by 64s]
            5s bob: granted a #2 until 34s [a claimed]
        "#]],
    );
}

#[test]
fn who_is_next_is_served_also_if_the_restart_came_between() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires a
        2s bob acquires a waiting
        3s ada releases a
        and restart
        5s bob claims ticket-2.000000
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s ada: released [ada loses a #1: Released]
            3s restarted
            3s [bob locks a #2 claim by 63s]
            5s bob: granted a #2 [a claimed]
        "#]],
    );
}

#[test]
fn two_who_would_wait_for_each_other_are_told() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires a
        1s bob acquires b
        2s ada acquires b waiting
        3s bob acquires a waiting
        4s bob acquires a
        5s bob releases b
        6s ada releases b
        6s bob acquires a waiting
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            1s bob: granted b #2 [bob locks b #2]
            2s ada: waits ticket-2.000000 for b, place 1, held by bob b [ada lines up for b]
            3s bob: refused: waiting would never end: 'bob' waits for 'a' of 'ada', 'ada' waits for 'b' of 'bob'
            4s bob: refused: a is taken by ada a #1 since 1s
            5s bob: released [bob loses b #2: Released]
            5s [ada locks b #3 claim by 65s]
            6s ada: released [ada loses b #3: Released]
            6s bob: waits ticket-6.000000 for a, place 1, held by ada a [bob lines up for a]
        "#]],
    );
}

#[test]
fn a_circle_of_three_is_named() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires a
        1s bob acquires b
        1s carl acquires c
        2s ada acquires b waiting
        3s bob acquires c waiting
        4s carl acquires a waiting
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted a #1 [ada locks a #1]
            1s bob: granted b #2 [bob locks b #2]
            1s carl: granted c #3 [carl locks c #3]
            2s ada: waits ticket-2.000000 for b, place 1, held by bob b [ada lines up for b]
            3s bob: waits ticket-3.000000 for c, place 1, held by carl c [bob lines up for c]
            4s carl: refused: waiting would never end: 'carl' waits for 'a' of 'ada', 'ada' waits for 'b' of 'bob', 'bob' waits for 'c' of 'carl'
        "#]],
    );
}

#[test]
fn a_circle_through_a_place_in_line_is_named() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s ada acquires a
        1s carl acquires c
        2s bob acquires {a,b} waiting
        3s carl acquires b waiting
        4s ada acquires c waiting
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s ada: granted a #1 [ada locks a #1]
            1s carl: granted c #2 [carl locks c #2]
            2s bob: waits ticket-2.000000 for {a,b}, place 1, held by ada a [bob lines up for {a,b}]
            3s carl: waits ticket-3.000000 for b, place 2, held by none [carl lines up for b]
            4s ada: refused: waiting would never end: 'ada' waits for 'c' of 'carl', 'carl' waits for 'b' of 'bob', 'bob' waits for '{a,b}' of 'ada'
        "#]],
    );
}

#[test]
fn who_holds_a_part_and_wants_more_behind_who_wants_it_all_is_told() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires src/a.rs
        2s bob acquires src/ waiting
        3s ada acquires src/b.rs waiting
        4s ada acquires src/b.rs
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/**, place 1, held by ada src/a.rs [bob lines up for src/**]
            3s ada: refused: waiting would never end: 'ada' waits for 'src/b.rs' of 'bob', 'bob' waits for 'src/**' of 'ada'
            4s ada: refused: src/b.rs is taken by bob src/** in line since 2s
        "#]],
    );
}

#[test]
fn a_long_wait_that_is_no_circle_is_allowed() {
    check(
        "
        0s ada registers
        0s bob registers
        0s carl registers
        1s bob acquires b
        1s carl acquires c
        2s bob acquires c waiting
        3s ada acquires b waiting
        3s ada acquires c waiting
        4s carl releases c
        5s bob releases b
        6s bob releases c
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            0s carl: others ada | bob [carl registered]
            1s bob: granted b #1 [bob locks b #1]
            1s carl: granted c #2 [carl locks c #2]
            2s bob: waits ticket-2.000000 for c, place 1, held by carl c [bob lines up for c]
            3s ada: waits ticket-3.000000 for b, place 1, held by bob b [ada lines up for b]
            3s ada: waits ticket-3.000001 for c, place 2, held by carl c [ada lines up for c]
            4s carl: released [carl loses c #2: Released]
            4s [bob locks c #3 claim by 64s]
            5s bob: released [bob loses b #1: Released]
            5s [ada locks b #4 claim by 65s]
            6s bob: released [bob loses c #3: Released]
            6s [ada locks c #5 claim by 66s]
        "#]],
    );
}

#[test]
fn who_holds_a_folder_gets_its_files_also_if_somebody_waits_for_the_folder() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires src/
        2s bob acquires src/ waiting
        3s ada announces src/a.rs
        4s ada releases src/a.rs
        5s ada releases src/
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/** #1 [ada locks src/** #1]
            2s bob: waits ticket-2.000000 for src/**, place 1, held by ada src/** [bob lines up for src/**]
            3s ada: granted src/a.rs #2 [ada locks src/a.rs #2]
            4s ada: released [ada loses src/a.rs #2: Released]
            5s ada: released [ada loses src/** #1: Released]
            5s [bob locks src/** #3 claim by 65s]
        "#]],
    );
}

#[test]
fn a_lock_that_a_waiter_gets_by_itself_serves_its_place_in_line() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada acquires a
        2s bob acquires a waiting
        3s ada releases a
        and bob acquires a
        4s locks
        5s bob claims ticket-2.000000
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted a #1 [ada locks a #1]
            2s bob: waits ticket-2.000000 for a, place 1, held by ada a [bob lines up for a]
            3s ada: released [ada loses a #1: Released]
            3s bob: granted a #2 [bob locks a #2]
            4s held bob a #2 since 3s; waiting none
            5s bob: granted a #2
        "#]],
    );
}
