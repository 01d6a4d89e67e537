//! Made-up words for memories and queries, the same in every run.
//!
//! They are distributed as in a language (Zipf): the second word is half as common as the first,
//! the third a third as common, and so on.

use super::random::Random;

/// The number of different words.
const VOCABULARY: usize = 20_000;
/// The seed of the queries.
const QUERY_SEED: u64 = 0xd1b5_4a32_d192_ed03;

/// Queries of six words.
pub fn queries(count: u32) -> Vec<String> {
    let mut speech = Speech::new(QUERY_SEED);
    (0..count).map(|_| speech.words(6)).collect()
}

/// Draws made-up words.
pub struct Speech {
    /// For each word, the sum of the frequencies up to it.
    cumulative: Vec<f64>,
    pub random: Random,
}

impl Speech {
    pub fn new(seed: u64) -> Speech {
        let mut sum = 0.0;
        // Flatter than Zipf by the 20: a language's most common words are stop words, left out here.
        let cumulative = (1..=VOCABULARY).map(|rank| {
            sum += 1.0 / (rank as f64 + 20.0);
            sum
        });
        Speech {
            cumulative: cumulative.collect(),
            random: Random::new(seed),
        }
    }

    pub fn words(&mut self, count: u32) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    pub fn word(&mut self) -> String {
        let sum = self.random.part() * self.cumulative[VOCABULARY - 1];
        let mut rank = self.cumulative.partition_point(|it| *it < sum);
        // The syllables and the final k make no ending that a stemmer would remove.
        let mut word = String::new();
        loop {
            word.push(char::from(b"bdfgklmnprtvz"[rank % 13]));
            word.push(char::from(b"aou"[rank / 13 % 3]));
            rank /= 39;
            if rank == 0 {
                return word + "k";
            }
        }
    }
}
