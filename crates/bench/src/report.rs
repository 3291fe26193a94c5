//! Prints what was measured, beside what was aimed for.

use std::time::Duration;

/// The heading: what all figures of this run have in common.
pub(crate) fn set_up() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("Switchboard {} on {cores} cores; load and server share them.", env!("CARGO_PKG_VERSION"));
}

/// A group of figures.
pub(crate) fn heading(text: &str) {
    println!("\n## {text}");
}

/// A remark on how something was measured.
pub(crate) fn note(text: &str) {
    println!("   {text}");
}

/// A figure without a target of its own.
pub(crate) fn figure(what: &str, value: &str) {
    println!("   {what:<58} {value:>18}");
}

/// A figure beside its target.
pub(crate) fn target(what: &str, value: &str, target: &str, met: bool) {
    println!("   {what:<58} {value:>18}   target {target:<14} {}", if met { "met" } else { "MISSED" });
}

/// `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12,345/s`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive and far from 2^64"
)]
pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", grouped(per_second as u64))
}

/// `1.234 ms`.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

/// `12.3 MB`, of 10^6 bytes.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The value that `share` of the sorted times do not exceed.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a list of measurements"
)]
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let index = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}
