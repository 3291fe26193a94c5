//! Intervals: `30s`, `5m`, `1h`, or a bare number of seconds.

use switchboard_schedule::Timing;

/// The interval that `text` spells, in milliseconds: an integer followed by `s`, `m` or `h`, or by nothing for seconds.
///
/// None for anything else, for less than a second, and for more than ten years.
pub(super) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let units = [("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let unit = units.into_iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let (number, ms) = unit.unwrap_or((text, 1_000));
    // A sign is no part of the number.
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let period = number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(ms)?;
    (1_000..=Timing::PERIOD_MS_MAX).contains(&period).then_some(period)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_interval_is_a_number_and_at_most_one_unit() {
        let texts = [
            "45",
            " 45 ",
            "30s",
            "5m",
            "1h",
            "007",
            "87600h",
            "87601h",
            "0",
            "0s",
            "-5m",
            "+5m",
            "1.5h",
            "5x",
            "1d",
            "1h30m",
            "",
            " ",
            "s",
            "5 m",
            "5M",
            "٣",
            "99999999999999999999",
            "18446744073709551615h",
        ];
        let read: Vec<_> = texts.iter().map(|text| format!("{text:?} {:?}", parse(text))).collect();
        expect![[r#"
            "45" Some(45000)
            " 45 " Some(45000)
            "30s" Some(30000)
            "5m" Some(300000)
            "1h" Some(3600000)
            "007" Some(7000)
            "87600h" Some(315360000000)
            "87601h" None
            "0" None
            "0s" None
            "-5m" None
            "+5m" None
            "1.5h" None
            "5x" None
            "1d" None
            "1h30m" None
            "" None
            " " None
            "s" None
            "5 m" None
            "5M" None
            "٣" None
            "99999999999999999999" None
            "18446744073709551615h" None"#]]
        .assert_eq(&read.join("\n"));
    }

    proptest! {
        #[test]
        fn every_text_is_an_interval_or_none(text in "\\PC{0,24}|[ +-]?[0-9]{0,24}[smhd.]{0,2}") {
            let period = parse(&text);
            prop_assert!(period.is_none_or(|period| (1_000..=Timing::PERIOD_MS_MAX).contains(&period)));
        }
    }
}
