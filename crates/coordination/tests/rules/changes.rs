//! The latest changes.

use expect_test::expect;

use crate::script::check;

#[test]
fn each_grant_leaves_a_change_and_a_conflict_leaves_none() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada announces ./src//a.ts to create because "Created User model"
        2s bob announces src/a.ts
        3s ada announces src/a.ts to modify because "Added fields"
        4s bob acquires src/a.ts waiting
        5s ada releases src/a.ts
        6s changes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            2s bob: refused: src/a.ts is taken by ada src/a.ts #1 Create 'Created User model' since 1s
            3s ada: granted src/a.ts #1 [ada locks src/a.ts #1]
            4s bob: waits ticket-4.000000 for src/a.ts, place 1, held by ada src/a.ts [bob lines up for src/a.ts]
            5s ada: released [ada loses src/a.ts #1: Released]
            5s [bob locks src/a.ts #2 claim by 65s]
            6s bob src/a.ts Modify '' at 5s | ada src/a.ts Modify 'Added fields' at 3s | ada ./src//a.ts Create 'Created User model' at 1s
        "#]],
    );
}

#[test]
fn changes_are_given_newest_first_up_to_a_limit_and_within_a_time() {
    check(
        "
        0s ada registers
        1s ada announces a
        60s ada announces b
        120s ada announces c
        121s changes limit 2
        121s changes within 61s
        121s changes within 60s
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted a #1 [ada locks a #1]
            60s ada: granted b #2 [ada locks b #2 · ada seen]
            120s ada: granted c #3 [ada locks c #3 · ada seen]
            121s ada c Modify '' at 120s | ada b Modify '' at 60s
            121s ada c Modify '' at 120s | ada b Modify '' at 60s
            121s ada c Modify '' at 120s
        "#]],
    );
}

#[test]
fn the_last_hundred_changes_are_kept() {
    check(
        "
        0s ada registers
        1s ada announces a because oldest
        2s 100x ada announces b
        3s changes limit 200
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted a #1 [ada locks a #1]
            2s (100 times) ada: granted b #2 [ada locks b #2]
            3s 100 items: ada b Modify '' at 2s … ada b Modify '' at 2s
        "#]],
    );
}
