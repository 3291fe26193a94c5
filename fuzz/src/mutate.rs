//! Changes inputs: letters, words, lines, and numbers that programs get wrong.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Makes new inputs of old ones. The same number gives the same change.
#[derive(Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

/// Values at which something ends, and characters that mean something somewhere.
const CURIOUS: [&str; 36] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "4096",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-7",
    "0.5",
    "null",
    "true",
    "false",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[[[",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "\u{fffd}",
    "\u{202e}",
    "ä",
    "**",
    "{a,b}",
    "../",
    "\\",
    "\r\n",
    "%2F",
];

/// The longest input that is made.
const LONGEST: usize = 16 << 10;

impl Mutator {
    /// Takes its words from `seeds`.
    pub fn new(seeds: &[Vec<u8>]) -> Self {
        let mut words: BTreeSet<Vec<u8>> = CURIOUS.iter().map(|word| word.as_bytes().to_vec()).collect();
        for seed in seeds {
            let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
            words.extend(seed.split(|byte| !in_word(byte)).filter(|word| word.len() > 1).map(<[u8]>::to_vec));
            // Whole lines, too: a call in the middle of other calls.
            words.extend(seed.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
        Self { seeds: seeds.to_vec(), words: words.into_iter().collect() }
    }

    /// An input made of a seed.
    pub fn make(&self, number: u64) -> Vec<u8> {
        let mut random = StdRng::seed_from_u64(number);
        let mut input = self.seeds.choose(&mut random).cloned().unwrap_or_default();
        for _ in 0..random.random_range(1..=6) {
            self.change_once(&mut input, &mut random);
        }
        input
    }

    /// `input`, changed a little.
    pub fn change(&self, input: &[u8], number: u64) -> Vec<u8> {
        let mut random = StdRng::seed_from_u64(number);
        let mut changed = input.to_vec();
        for _ in 0..random.random_range(1..=3) {
            self.change_once(&mut changed, &mut random);
        }
        changed
    }

    fn change_once(&self, input: &mut Vec<u8>, random: &mut StdRng) {
        let at = random.random_range(0..=input.len());
        let end = (at + random.random_range(0..24)).min(input.len());
        let word = self.words.choose(random).map(Vec::as_slice).unwrap_or_default();
        match random.random_range(0..9) {
            0 => flip(input, random),
            1 => drop(input.drain(at..end)),
            2 => drop(input.splice(at..at, word.iter().copied())),
            3 => drop(input.splice(at..end, word.iter().copied())),
            4 => replace_word(input, at, word),
            5 => replace_word(input, at, CURIOUS.choose(random).map_or(b"", |text| text.as_bytes())),
            6 => {
                let copied = input[at..end].to_vec();
                let times = random.random_range(1..40);
                input.splice(at..at, copied.repeat(times));
            }
            7 => {
                let other = self.seeds.choose(random).map(Vec::as_slice).unwrap_or_default();
                let from = random.random_range(0..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let line = self.words.iter().filter(|word| word.ends_with(b"\n")).collect::<Vec<_>>();
                let start = line_start(input, at);
                input.splice(
                    start..start,
                    line.choose(random).map(|line| (*line).clone()).unwrap_or_default(),
                );
            }
        }
        input.truncate(LONGEST);
    }
}

fn flip(input: &mut [u8], random: &mut StdRng) {
    if !input.is_empty() {
        let at = random.random_range(0..input.len());
        input[at] ^= 1 << random.random_range(0..8);
    }
}

/// Puts `word` in the place of the word at `at`.
fn replace_word(input: &mut Vec<u8>, at: usize, word: &[u8]) {
    let ends = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
    let start = input[..at].iter().rposition(ends).map_or(0, |before| before + 1);
    let end = input[at..].iter().position(ends).map_or(input.len(), |after| at + after);
    input.splice(start..end, word.iter().copied());
}

fn line_start(input: &[u8], at: usize) -> usize {
    input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_input() {
        let mutator = Mutator::new(&[b"todo_add {\"text\":\"a\"}\n".to_vec()]);
        let made: Vec<_> = (0..50).map(|number| mutator.make(number)).collect();
        assert_eq!(made, (0..50).map(|number| mutator.make(number)).collect::<Vec<_>>());
        assert!(made.iter().collect::<BTreeSet<_>>().len() > 30);
    }
}
