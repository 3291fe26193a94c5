//! What each agent has to do.

use expect_test::expect;

use crate::script::check;

#[test]
fn todos_are_listed_in_the_order_of_their_creation() {
    check(
        r#"
        0s ada registers
        1s ada adds "Research JWT libraries"
        2s ada adds "Write tests" low
        3s ada adds "Write docs" medium
        4s ada todos
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: added todo-1.000000 [todo of ada]
            2s ada: added todo-2.000000 [todo of ada]
            3s ada: added todo-3.000000 [todo of ada]
            4s ada: todo-1.000000 'Research JWT libraries' pending priority 1 | todo-2.000000 'Write tests' pending priority 3 | todo-3.000000 'Write docs' pending priority 2
        "#]],
    );
}

#[test]
fn the_time_of_completion_comes_and_goes_with_the_status() {
    check(
        "
        0s ada registers
        1s ada adds x
        2s ada marks todo-1.000000 completed
        3s ada todos
        4s ada marks todo-1.000000 completed
        5s ada todos
        6s ada marks todo-1.000000 pending
        7s ada todos
        8s ada marks todo-1.000000 blocked
        9s ada marks todo-1.000000 completed
        10s ada todos
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: added todo-1.000000 [todo of ada]
            2s ada: updated todo-1.000000 [todo-1.000000 Completed]
            3s ada: todo-1.000000 'x' completed at 2s priority 1
            4s ada: updated todo-1.000000 [todo-1.000000 Completed]
            5s ada: todo-1.000000 'x' completed at 2s priority 1
            6s ada: updated todo-1.000000 [todo-1.000000 Pending]
            7s ada: todo-1.000000 'x' pending priority 1
            8s ada: updated todo-1.000000 [todo-1.000000 Blocked]
            9s ada: updated todo-1.000000 [todo-1.000000 Completed]
            10s ada: todo-1.000000 'x' completed at 9s priority 1
        "#]],
    );
}

#[test]
fn only_its_owner_reaches_a_todo() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada adds x
        2s bob marks todo-1.000000 completed
        3s ada marks todo-9.000000 completed
        3s ada marks nonsense completed
        4s ada todos
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: added todo-1.000000 [todo of ada]
            2s bob: refused: todo 'todo-1.000000' is not one of yours
            3s ada: refused: todo 'todo-9.000000' is not one of yours
            3s ada: refused: todo 'nonsense' is not one of yours
            4s ada: todo-1.000000 'x' pending priority 1
        "#]],
    );
}

#[test]
fn everybody_s_todos_show_also_those_who_have_none() {
    check(
        "
        0s ada registers
        0s bob registers
        1s ada adds x
        2s todos
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: added todo-1.000000 [todo of ada]
            2s ada: todo-1.000000 'x' pending priority 1 | bob: none
        "#]],
    );
}

#[test]
fn ids_are_unique_within_one_microsecond() {
    check(
        "
        0s ada registers
        1s 3x ada adds x
        1s ada asks bob ?
        1s bob registers
        1s ada asks bob ?
        1s ada sends x
        1s ada todos
        1s bob takes
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s (3 times) ada: added todo-1.000002 [todo of ada]
            1s ada: refused: agent 'bob' is not registered in this project: list the agents to see who is
            1s bob: others ada [bob registered]
            1s ada: asked ada-1.000003 [question to bob]
            1s ada: sent ada-1.000004 to 1 [message to bob]
            1s ada: todo-1.000000 'x' pending priority 1 | todo-1.000001 'x' pending priority 1 | todo-1.000002 'x' pending priority 1
            1s bob: ada-1.000003 (help?) '?' | ada-1.000004 (to all, info) 'x' [2 read by bob]
        "#]],
    );
}

#[test]
fn ids_grow_also_when_the_clock_goes_back() {
    check(
        "
        100s ada registers
        100s ada adds x
        50s ada adds y
        50s ada todos
        ",
        &expect![[r#"
            100s ada: others none [ada registered]
            100s ada: added todo-100.000000 [todo of ada]
            50s ada: added todo-100.000001 [todo of ada]
            50s ada: todo-100.000000 'x' pending priority 1 | todo-100.000001 'y' pending priority 1
        "#]],
    );
}
