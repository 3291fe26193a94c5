//! Paths and patterns. An input is three lines: two patterns and a file.

use switchboard_coordination::{FilePath, Scope};

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (one, other, file) = (line(), line(), line());

    let file = FilePath::parse(file).ok().inspect(is_stable_file);
    let one = Scope::parse(one).ok().inspect(is_stable_scope);
    let other = Scope::parse(other).ok().inspect(is_stable_scope);
    let (Some(one), Some(other)) = (one, other) else { return };
    let overlap = one.overlaps(&other);
    assert_eq!(overlap, other.overlaps(&one), "{one:?} and {other:?} disagree on whether they overlap");
    assert!(one.overlaps(&one), "{one:?} does not overlap with itself");
    assert!(one != other || overlap, "{one:?} is equal to {other:?}, and they do not overlap");
    let Some(file) = file else { return };
    for scope in [&one, &other] {
        if scope.covers(&file) {
            let prefix = scope.literal_prefix();
            assert!(file.as_str().starts_with(prefix), "{scope:?} covers {file:?}, its prefix is {prefix:?}");
        }
        let literal = Scope::literal(file.clone());
        assert_eq!(literal.overlaps(scope), scope.covers(&file), "{scope:?} and {file:?}");
    }
    if one.covers(&file) && other.covers(&file) {
        assert!(overlap, "{one:?} and {other:?} cover {file:?} and do not overlap");
    }
}

/// What was brought to its one spelling stays so.
fn is_stable_file(file: &FilePath) {
    assert_eq!(FilePath::parse(file.as_str()).as_ref(), Ok(file), "{file:?}");
    stays_in_journal(file);
}

fn is_stable_scope(scope: &Scope) {
    if scope.as_file().is_none() {
        assert_eq!(Scope::parse(scope.as_str()).as_ref(), Ok(scope), "{scope:?}");
    }
    stays_in_journal(scope);
}

fn stays_in_journal<T>(value: &T)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let json = serde_json::to_string(value).expect("it can be written");
    let read: T =
        serde_json::from_str(&json).unwrap_or_else(|why| panic!("{json} cannot be read again: {why}"));
    assert_eq!(&read, value, "{json}");
}
