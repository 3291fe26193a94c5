//! Who is here (rules 2, 3 and 9 of the A2AMCP contract).

use expect_test::expect;

use crate::script::check;

#[test]
fn an_agent_that_comes_is_told_who_is_here_in_order_of_registration() {
    check(
        r#"
        0s task-002 registers
        1s task-001 registers task 001 branch feature/auth as "Implement user authentication"
        2s task-003 registers
        3s agents
        "#,
        &expect![[r#"
            0s task-002: others none [task-002 registered]
            1s task-001: others task-002 [task-001 registered]
            2s task-003: others task-002 | task-001 [task-003 registered]
            3s task-002 t Active since 0s | task-001 001 'feature/auth' 'Implement user authentication' Active since 1s | task-003 t Active since 2s
        "#]],
    );
}

#[test]
fn an_unknown_project_has_no_agents() {
    check(
        "0s agents",
        &expect![[r#"
        0s none
    "#]],
    );
}

#[test]
fn registering_again_replaces_the_record_and_drops_todos_but_keeps_locks_and_unread_messages() {
    check(
        r#"
        0s ada registers task 1 as "first"
        0s bob registers
        1s ada adds "old todo"
        2s ada announces src/a.rs
        3s bob sends "hello" to ada
        4s ada completes 1
        5s ada registers task 2 as "second"
        6s agents
        6s ada todos
        6s locks
        6s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: added todo-1.000000 [todo of ada]
            2s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            3s bob: sent bob-3.000000 to 1 [message to ada]
            4s ada: done [1 completed]
            5s ada: others bob [ada registered]
            6s ada 2 'second' Active since 5s | bob t Active since 0s
            6s ada: none
            6s held ada src/a.rs #1 since 2s; waiting none
            6s ada: bob-3.000000 (info) 'hello' [1 read by ada]
        "#]],
    );
}

#[test]
fn registering_again_keeps_the_place_in_line_and_the_open_question() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada announces src/a.rs
        2s bob acquires src/a.rs waiting
        3s bob asks ada "how long?"
        4s bob registers
        5s ada releases src/a.rs
        6s ada answers bob-3.000000 "done"
        7s bob takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            2s bob: waits ticket-2.000000 for src/a.rs, place 1, held by ada src/a.rs [bob lines up for src/a.rs]
            3s bob: asked bob-3.000000 [question to ada]
            4s bob: others ada [bob registered]
            5s ada: released [ada loses src/a.rs #1: Released]
            5s [bob locks src/a.rs #2 claim by 65s]
            6s ada: answered bob [question answered]
            7s bob: ticket-2.000000 (src/a.rs is yours by ticket-2.000000 as #2 claim by 65s) '' | response-bob-3.000000 (answer to bob-3.000000) 'done' [2 read by bob]
        "#]],
    );
}

#[test]
fn leaving_counts_the_todos_left_behind_and_blocked_ones_only_in_the_total() {
    check(
        r#"
        0s ada registers
        1s ada adds a
        2s ada adds b
        3s ada adds c
        4s ada adds d
        5s ada marks todo-1.000000 completed
        5s ada marks todo-2.000000 in_progress
        5s ada marks todo-4.000000 blocked
        6s ada unregisters
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: added todo-1.000000 [todo of ada]
            2s ada: added todo-2.000000 [todo of ada]
            3s ada: added todo-3.000000 [todo of ada]
            4s ada: added todo-4.000000 [todo of ada]
            5s ada: updated todo-1.000000 [todo-1.000000 Completed]
            5s ada: updated todo-2.000000 [todo-2.000000 InProgress]
            5s ada: updated todo-4.000000 [todo-4.000000 Blocked]
            6s ada: left with 4 todos: 1 completed, 1 pending, 1 in progress [ada left: Unregistered]
        "#]],
    );
}

#[test]
fn leaving_removes_locks_todos_and_unread_messages_and_keeps_what_was_shared() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada announces src/a.rs because "rewrite"
        1s ada adds todo
        1s ada shares User "struct User"
        1s ada completes T-1
        1s bob sends "hello"
        2s ada unregisters
        3s agents
        3s todos
        3s locks
        3s changes
        3s interfaces
        3s completions
        4s ada registers
        4s ada takes
        4s ada todos
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            1s ada: added todo-1.000000 [todo of ada]
            1s ada: shared [interface User]
            1s ada: done [T-1 completed]
            1s bob: sent bob-1.000001 to 1 [message to ada]
            2s ada: left with 1 todos: 0 completed, 1 pending, 0 in progress [ada left: Unregistered]
            3s bob t Active since 0s
            3s bob: none
            3s held none; waiting none
            3s ada src/a.rs Modify 'rewrite' at 1s
            3s User 'struct User' by ada at 1s
            3s T-1 by ada at 1s
            4s ada: others bob [ada registered]
            4s ada: none
            4s ada: none
        "#]],
    );
}

#[test]
fn leaving_twice_is_refused() {
    check(
        "
        0s ada registers
        1s ada unregisters
        2s ada unregisters
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: left with 0 todos: 0 completed, 0 pending, 0 in progress [ada left: Unregistered]
            2s ada: refused: agent 'ada' is not registered: register it first
        "#]],
    );
}

#[test]
fn who_is_not_registered_is_refused_and_changes_nothing() {
    check(
        r#"
        0s bob registers
        1s ada beats
        1s ada unregisters
        1s ada adds todo
        1s ada marks todo-1.000000 completed
        1s ada todos
        1s ada asks bob "?"
        1s ada takes
        1s ada reads
        1s ada status
        1s ada answers bob-1.000000 "!"
        1s ada collects ada-1.000000
        1s ada sends "hello"
        1s ada announces src/a.rs
        1s ada releases src/a.rs
        1s ada renews src/a.rs
        1s ada claims ticket-1.000000
        1s ada leaves ticket-1.000000
        1s ada shares User "struct"
        "#,
        &expect![[r#"
            0s bob: others none [bob registered]
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
            1s ada: refused: agent 'ada' is not registered: register it first
        "#]],
    );
}

#[test]
fn a_completed_agent_stays_listed_and_at_work_until_it_registers_again() {
    check(
        r#"
        0s ada registers task T-1
        1s ada announces src/a.rs
        1s ada adds todo
        2s ada completes T-1
        3s agents
        3s locks
        3s ada todos
        4s ada completes T-1
        5s ada registers
        6s agents
        6s completions
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: granted src/a.rs #1 [ada locks src/a.rs #1]
            1s ada: added todo-1.000000 [todo of ada]
            2s ada: done [T-1 completed]
            3s ada T-1 Completed since 0s
            3s held ada src/a.rs #1 since 1s; waiting none
            3s ada: todo-1.000000 'todo' pending priority 1
            4s ada: done [T-1 completed]
            5s ada: others none [ada registered]
            6s ada t Active since 5s
            6s T-1 by ada at 4s
        "#]],
    );
}

#[test]
fn a_task_can_be_completed_without_registration() {
    check(
        "
        0s ada completes T-1
        1s agents
        1s completions
        ",
        &expect![[r#"
            0s ada: done [T-1 completed]
            1s none
            1s T-1 by ada at 0s
        "#]],
    );
}

#[test]
fn completing_a_task_again_replaces_its_record_in_place() {
    check(
        "
        0s ada completes T-1
        1s ada completes T-2
        2s bob completes T-1
        3s completions
        ",
        &expect![[r#"
            0s ada: done [T-1 completed]
            1s ada: done [T-2 completed]
            2s bob: done [T-1 completed]
            3s T-1 by bob at 2s | T-2 by ada at 1s
        "#]],
    );
}

#[test]
fn system_events_tell_everybody_else() {
    check(
        r#"
        0s settings events
        0s ada registers
        1s bob registers as "the builder"
        2s carl registers
        3s bob adds "roof"
        4s bob marks todo-3.000000 in_progress
        5s bob marks todo-3.000000 completed
        6s bob announces src/a.rs
        7s bob shares House "struct House"
        8s bob releases src/a.rs
        9s bob unregisters
        10s ada takes
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            1s bob: others ada [bob registered · ada told agent_joined 'Agent bob joined: the builder']
            2s carl: others ada | bob [carl registered · ada | bob told agent_joined 'Agent carl joined: ']
            3s bob: added todo-3.000000 [todo of bob]
            4s bob: updated todo-3.000000 [todo-3.000000 InProgress]
            5s bob: updated todo-3.000000 [todo-3.000000 Completed · ada | carl told todo_completed 'Agent bob completed: roof']
            6s bob: granted src/a.rs #1 [bob locks src/a.rs #1 · ada | carl told file_change_announced 'Agent bob locked src/a.rs']
            7s bob: shared [interface House · ada | carl told interface_registered 'Agent bob registered interface House']
            8s bob: released [bob loses src/a.rs #1: Released · ada | carl told file_lock_released 'Agent bob released src/a.rs']
            9s bob: left with 1 todos: 1 completed, 0 pending, 0 in progress [bob left: Unregistered · ada | carl told agent_left 'Agent bob left']
            10s ada: bob-1.000000 (event agent_joined) 'Agent bob joined: the builder' | carl-2.000000 (event agent_joined) 'Agent carl joined: ' | bob-5.000000 (event todo_completed) 'Agent bob completed: roof' | bob-6.000000 (event file_change_announced) 'Agent bob locked src/a.rs' | bob-7.000000 (event interface_registered) 'Agent bob registered interface House' | bob-8.000000 (event file_lock_released) 'Agent bob released src/a.rs' | bob-9.000000 (event agent_left) 'Agent bob left' [7 read by ada]
        "#]],
    );
}

#[test]
fn without_the_setting_nobody_is_told() {
    check(
        "
        0s ada registers
        1s bob registers
        2s bob announces src/a.rs
        3s bob unregisters
        4s ada takes
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s bob: others ada [bob registered]
            2s bob: granted src/a.rs #1 [bob locks src/a.rs #1]
            3s bob: left with 0 todos: 0 completed, 0 pending, 0 in progress [bob left: Unregistered]
            4s ada: none
        "#]],
    );
}

#[test]
fn agents_that_expire_together_are_each_announced() {
    check(
        "
        0s settings events
        0s ada registers
        0s bob registers
        60s carl registers
        100s carl takes
        121s carl takes
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered · ada told agent_joined 'Agent bob joined: ']
            60s carl: others ada | bob [carl registered · ada | bob told agent_joined 'Agent carl joined: ']
            100s carl: none [carl seen]
            120s [ada left: Expired · bob | carl told agent_left 'Agent ada left' · bob left: Expired · ada | carl told agent_left 'Agent bob left']
            121s carl: ada-120.000000 (event agent_left) 'Agent ada left' | bob-120.000001 (event agent_left) 'Agent bob left' [2 read by carl]
        "#]],
    );
}
