//! Made-up words, for what is remembered and for what is asked.
//!
//! They are as unevenly spread as those of a language: the second is half as common as the first,
//! the third a third, and so on (Zipf). The same ones in every run.

use super::random::Random;

const VOCABULARY: usize = 20_000;
const ASKED: u64 = 0xd1b5_4a32_d192_ed03;

/// Queries of six words.
pub fn queries(count: u32) -> Vec<String> {
    let mut speech = Speech::new(ASKED);
    (0..count).map(|_| speech.words(6)).collect()
}

pub struct Speech {
    /// How common each word and all before it are together.
    heights: Vec<f64>,
    pub random: Random,
}

impl Speech {
    pub fn new(seed: u64) -> Speech {
        let mut height = 0.0;
        // A little flatter: the words that every sentence has are stop words and not here.
        let heights = (1..=VOCABULARY).map(|rank| {
            height += 1.0 / (rank as f64 + 20.0);
            height
        });
        Speech {
            heights: heights.collect(),
            random: Random::new(seed),
        }
    }

    pub fn words(&mut self, count: u32) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    pub fn word(&mut self) -> String {
        let height = self.random.part() * self.heights[VOCABULARY - 1];
        let mut rank = self.heights.partition_point(|it| *it < height);
        // Syllables that no stemmer takes for an ending.
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
