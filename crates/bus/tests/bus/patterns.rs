//! What is a topic, and which topics a pattern means.

use proptest::prelude::*;
use switchboard_bus::{Filter, InvalidTopic, Pattern, Topic};

fn matches(pattern: &str, topic: &str) -> bool {
    Pattern::new(pattern).unwrap().matches(&Topic::new(topic).unwrap())
}

#[test]
fn a_star_is_one_segment_and_a_hash_any_number_at_the_end() {
    for (pattern, topic, expected) in [
        ("a", "a", true),
        ("a", "b", false),
        ("a", "a.b", false),
        ("a.b", "a", false),
        ("*", "a", true),
        ("*", "a.b", false),
        ("a.*", "a", false),
        ("a.*.c", "a.b.c", true),
        ("a.*.c", "a.b.d", false),
        ("#", "a.b.c", true),
        ("a.#", "a", true),
        ("a.#", "a.b.c", true),
        ("a.#", "ab", false),
        ("*.#", "a", true),
        ("morning/briefing for *", "morning/briefing for ada", false),
        ("morning/briefing", "morning/briefing", true),
        ("C#", "C#", true),
        ("a..b", "a..b", true),
        ("a.*.b", "a..b", true),
    ] {
        assert_eq!(matches(pattern, topic), expected, "{pattern} {topic}");
    }
}

#[test]
fn what_is_no_topic_is_refused() {
    for (text, why) in [
        (String::new(), "a topic must not be empty"),
        ("x".repeat(257), "a topic has at most 256 bytes, this one has 257"),
        ("a\nb".to_owned(), "a topic must not contain control characters, such as line breaks"),
    ] {
        assert_eq!(Topic::new(text.clone()).unwrap_err().to_string(), why);
        assert_eq!(Pattern::new(text).unwrap_err().to_string(), why);
    }
    for pattern in ["*", "#", "a.*", "*.a", "a.#"] {
        assert!(matches!(Topic::new(pattern), Err(InvalidTopic::Pattern { .. })), "{pattern}");
        assert!(Pattern::new(pattern).is_ok(), "{pattern}");
    }
    assert!(matches!(Pattern::new("a.#.b"), Err(InvalidTopic::RestNotLast { .. })));
    assert!(matches!(Filter::any_of([]), Err(InvalidTopic::HowMany { count: 0 })));
}

/// The meaning of a pattern, as slowly as it can be said.
fn means(pattern: &[&str], topic: &[&str]) -> bool {
    match (pattern, topic) {
        (["#"], _) | ([], []) => true,
        ([wanted, pattern @ ..], [segment, topic @ ..]) => {
            (*wanted == "*" || wanted == segment) && means(pattern, topic)
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_pattern_matches_what_it_means(
        mut pattern in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", ""]), 0..5),
        rest in any::<bool>(),
        topic in prop::collection::vec(prop::sample::select(vec!["a", "b", ""]), 1..6),
    ) {
        if rest || pattern.is_empty() {
            pattern.push("#");
        }
        prop_assume!(!pattern.join(".").is_empty() && !topic.join(".").is_empty());
        prop_assert_eq!(matches(&pattern.join("."), &topic.join(".")), means(&pattern, &topic));
    }
}
