//! A memory full of made-up words, for `bench search`.
//!
//! The words are as unevenly spread as those of a language, and the same in every run. They
//! go into the memory through the same door as the worker's.

use foreword_core::model::{
    Derived, Event, EventKind, Observation, ObservationType, Origin, Payload, Turn,
};
use foreword_core::store::{Batch, Replaces, Store, Told};
use uuid::Uuid;

use crate::home;

const VOCABULARY: usize = 20_000;
const OBSERVATIONS_PER_TURN: u32 = 500;
/// Where chance begins: for what is remembered and for what is asked.
const WRITTEN: u64 = 0x9e37_79b9_7f4a_7c15;
const ASKED: u64 = 0xd1b5_4a32_d192_ed03;

/// Queries of six words.
pub fn queries(count: u32) -> Vec<String> {
    let mut speech = Speech::new(ASKED);
    (0..count).map(|_| speech.words(6)).collect()
}

/// Adds so many observations.
pub fn fill(store: &mut Store, rows: u32) -> anyhow::Result<()> {
    let mut speech = Speech::new(WRITTEN);
    let now = home::now();
    for turn in 0..rows.div_ceil(OBSERVATIONS_PER_TURN) {
        let first = turn * OBSERVATIONS_PER_TURN;
        let numbers = first..rows.min(first + OBSERVATIONS_PER_TURN);
        let event = event(turn, now);
        let observations = numbers
            .map(|number| speech.observation(number, now))
            .collect();
        let derived = Derived {
            observations,
            summary: None,
        };
        let told = Turn {
            prompt_id: event.prompt_id.clone(),
            events: vec![event.clone()],
        };
        store.commit(&Batch {
            events: &[event],
            told: &[Told::offline(told, derived)],
            replaces: Replaces::Nothing,
            provider: "offline",
            now,
        })?;
    }
    Ok(())
}

fn event(turn: u32, now: i64) -> Event {
    Event {
        id: Uuid::now_v7(),
        key: format!("turn:{turn}"),
        kind: EventKind::Prompt,
        host: "bench".to_owned(),
        host_session_id: format!("session-{turn}"),
        prompt_id: Some(turn.to_string()),
        agent_id: None,
        tool_name: None,
        tool_use_id: None,
        cwd: None,
        project_dir: None,
        project: Some("/bench".to_owned()),
        root: None,
        transcript_path: None,
        branch: None,
        commit: None,
        files: Vec::new(),
        payload: Payload::default(),
        at: now,
    }
}

/// Made-up words: the second is half as common as the first, the third a third, and so on, as in
/// any language (Zipf). The same ones in every run.
struct Speech {
    /// How common each word and all before it are together.
    heights: Vec<f64>,
    state: u64,
}

impl Speech {
    fn new(state: u64) -> Speech {
        let mut height = 0.0;
        // A little flatter: the words that every sentence has are stop words and not here.
        let heights = (1..=VOCABULARY).map(|rank| {
            height += 1.0 / (rank as f64 + 20.0);
            height
        });
        Speech {
            heights: heights.collect(),
            state,
        }
    }

    /// xorshift: made-up words need no better chance.
    fn chance(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn word(&mut self) -> String {
        let height = self.chance() * self.heights[VOCABULARY - 1];
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

    fn observation(&mut self, number: u32, at: i64) -> Observation {
        Observation {
            seed: number.to_string(),
            kind: ObservationType::ALL[number as usize % ObservationType::ALL.len()],
            title: self.words(7),
            subtitle: self.words(10),
            facts: (0..3).map(|_| self.words(10)).collect(),
            // Rows of one length would often tie.
            narrative: {
                let length = 20.0 + self.chance() * 40.0;
                self.words(length as usize)
            },
            concepts: vec![self.word(), self.word()],
            files: Vec::new(),
            origin: Origin::Agent,
            agent_id: None,
            events: Vec::new(),
            at,
        }
    }
}
