//! Ranks short texts by the words of a query (Okapi BM25, Robertson and Zaragoza 2009).

use std::collections::HashMap;

/// How quickly more of the same word stops counting.
const K1: f64 = 1.2;
/// How much a long text counts less.
const B: f64 = 0.75;

/// Texts, by their words.
pub(crate) struct Ranking {
    texts: Vec<HashMap<String, f64>>,
    lengths: Vec<f64>,
    average_length: f64,
}

impl Ranking {
    pub(crate) fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut ranking = Self { texts: Vec::new(), lengths: Vec::new(), average_length: 1.0 };
        for text in texts {
            let mut counts: HashMap<String, f64> = HashMap::new();
            let mut length = 0.0;
            for word in words(&text) {
                *counts.entry(word).or_default() += 1.0;
                length += 1.0;
            }
            ranking.texts.push(counts);
            ranking.lengths.push(length);
        }
        let total: f64 = ranking.lengths.iter().sum();
        ranking.average_length = (total / number(ranking.texts.len())).max(1.0);
        ranking
    }

    /// The positions of the texts that have a word of `query`, the best first, at most `limit`.
    pub(crate) fn best(&self, query: &str, limit: usize) -> Vec<usize> {
        let mut scores = vec![0.0_f64; self.texts.len()];
        for word in words(query) {
            let having = number(self.texts.iter().filter(|text| text.contains_key(&word)).count());
            let rarity = (1.0 + (number(self.texts.len()) - having + 0.5) / (having + 0.5)).ln();
            for ((score, text), length) in scores.iter_mut().zip(&self.texts).zip(&self.lengths) {
                if let Some(count) = text.get(&word) {
                    let norm = K1 * (1.0 - B + B * length / self.average_length);
                    *score += rarity * count * (K1 + 1.0) / (count + norm);
                }
            }
        }
        let mut found: Vec<usize> = (0..scores.len()).filter(|index| scores[*index] > 0.0).collect();
        found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        found.truncate(limit);
        found
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tools and words are small")]
fn number(count: usize) -> f64 {
    count as f64
}

/// Lower-case words without their commonest endings: `locks`, `locked` and `locking` are one word.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()).map(|word| {
        let word = word.to_lowercase();
        let stem = ["ing", "ed", "es", "s", "e"].iter().find_map(|ending| word.strip_suffix(ending));
        stem.filter(|stem| stem.len() >= 3).map_or(word.clone(), str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_with_the_rarer_words_of_the_query_comes_first() {
        let ranking = Ranking::new(
            ["lock a file before editing", "send a message to agents", "release a locked file"]
                .map(String::from),
        );
        assert_eq!(ranking.best("releasing files", 2), [2, 0]);
        assert_eq!(ranking.best("message", 5), [1]);
        assert_eq!(ranking.best("nothing known", 5), Vec::<usize>::new());
    }
}
