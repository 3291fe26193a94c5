//! Definitions that agents share.

use expect_test::expect;

use crate::script::check;

#[test]
fn the_last_writer_of_an_interface_wins() {
    check(
        r#"
        0s ada registers
        0s bob registers
        1s ada shares User "v1" in src/user.ts
        2s ada shares Order "order"
        3s bob shares User "v2"
        4s interface User
        4s interfaces
        "#,
        &expect![[r#"
            0s ada: others none [ada registered]
            0s bob: others ada [bob registered]
            1s ada: shared [interface User]
            2s ada: shared [interface Order]
            3s bob: shared [interface User]
            4s 'v2' by bob at 3s
            4s User 'v2' by bob at 3s | Order 'order' by ada at 2s
        "#]],
    );
}

#[test]
fn a_missing_interface_brings_up_names_that_contain_it_or_are_contained_in_it() {
    check(
        "
        0s ada registers
        1s ada shares UserProfile x
        1s ada shares Order x
        1s ada shares userauth x
        1s ada shares U x
        2s interface User
        2s interface ORDER
        2s interface Invoice2
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: shared [interface UserProfile]
            1s ada: shared [interface Order]
            1s ada: shared [interface userauth]
            1s ada: shared [interface U]
            2s refused: interface 'User' is not registered, like UserProfile userauth U
            2s refused: interface 'ORDER' is not registered, like Order
            2s refused: interface 'Invoice2' is not registered, like
        "#]],
    );
}

#[test]
fn names_of_interfaces_are_case_sensitive() {
    check(
        "
        0s ada registers
        1s ada shares User x
        2s interface user
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: shared [interface User]
            2s refused: interface 'user' is not registered, like User
        "#]],
    );
}

#[test]
fn at_most_ten_similar_names_are_brought_up() {
    check(
        "
        0s ada registers
        1s ada shares A01 x
        1s ada shares A02 x
        1s ada shares A03 x
        1s ada shares A04 x
        1s ada shares A05 x
        1s ada shares A06 x
        1s ada shares A07 x
        1s ada shares A08 x
        1s ada shares A09 x
        1s ada shares A10 x
        1s ada shares A11 x
        2s interface a
        ",
        &expect![[r#"
            0s ada: others none [ada registered]
            1s ada: shared [interface A01]
            1s ada: shared [interface A02]
            1s ada: shared [interface A03]
            1s ada: shared [interface A04]
            1s ada: shared [interface A05]
            1s ada: shared [interface A06]
            1s ada: shared [interface A07]
            1s ada: shared [interface A08]
            1s ada: shared [interface A09]
            1s ada: shared [interface A10]
            1s ada: shared [interface A11]
            2s refused: interface 'a' is not registered, like A01 A02 A03 A04 A05 A06 A07 A08 A09 A10
        "#]],
    );
}
