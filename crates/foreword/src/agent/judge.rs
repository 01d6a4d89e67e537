//! Removes blocks of an answer that do not rest on the recording: a weak model repeats the question,
//! invents names, or writes one thing into every field.
//!
//! Texts are compared by sequences of three words. A sequence in the system prompt or outside of the
//! question's fences is our own text, unless the recording has it too. A name is a word that has the
//! form of a file or of code.

use std::collections::{BTreeSet, HashSet};

use foreword_core::model::Event;
use foreword_core::text;

use super::conversation::Conversation;
use super::prompts::Prompts;
use super::question::QuestionText;
use super::reply::{Reply, ReplyBlock, numbers};

/// The number of words in a sequence.
const SEQUENCE: usize = 3;

/// What a model was shown, to compare its answer with.
pub struct Judge {
    /// The sequences of our own text in the question.
    ours: HashSet<String>,
    /// The recording in lower case.
    recording: String,
    /// The number of steps in the question.
    steps: u32,
    /// The numbers of the observations that the model saw earlier in the conversation.
    shown: BTreeSet<i64>,
}

impl Judge {
    /// `events` are those of the question. It has only parts of their long texts, but a name from any
    /// part counts as recorded.
    pub fn new(question: &QuestionText, events: &[Event]) -> Judge {
        let (mut own, mut recording) = (question.system.clone(), String::new());
        let mut end = None;
        for line in question.text.lines() {
            let begins = line.strip_prefix("<data ").filter(|_| end.is_none());
            let side = if end.is_some() {
                &mut recording
            } else {
                &mut own
            };
            side.extend(["\n", line]);
            match begins {
                Some(fence) => end = Some(format!("</data {fence}")),
                None => drop(end.take_if(|end| line == end)),
            }
        }
        let mut ours: HashSet<String> = sequences(&own).collect();
        for told in sequences(&recording) {
            ours.remove(&told);
        }
        for event in events {
            recording.extend(serde_json::to_string(&event.payload));
            recording.extend(event.files.iter().map(|file| file.path.as_str()));
        }
        Judge {
            ours,
            recording: recording.to_lowercase(),
            steps: u32::try_from(events.len()).unwrap_or(u32::MAX),
            shown: BTreeSet::new(),
        }
    }

    /// Adds what the model saw earlier in the conversation: the names in it, if the claude CLI keeps
    /// the rest.
    pub fn also(&mut self, conversation: &Conversation) {
        self.shown.extend(&conversation.shown);
        let exchanges = conversation.exchanges.iter();
        let texts = exchanges.flat_map(|(question, answer)| [question, answer]);
        for text in texts
            .chain(&conversation.names)
            .chain([&conversation.opening])
        {
            self.recording.push('\n');
            self.recording.push_str(&text.to_lowercase());
        }
    }

    /// Adds text of our own that the model sees in other questions of the conversation.
    pub fn know(&mut self, prompts: &Prompts) {
        for name in ["again", "opening"] {
            self.ours.extend(sequences(&prompts.fill(name, &[])));
        }
    }

    /// Removes the blocks that cannot be used. If something was removed and no observation is left,
    /// returns the first reason.
    pub fn sift(&self, reply: &mut Reply) -> Option<&'static str> {
        let mut why = None;
        let mut is_kept = |block: &ReplyBlock| {
            let objection = self.objection(block);
            why = why.or(objection);
            objection.is_none()
        };
        reply.observations.retain(&mut is_kept);
        reply.summary.take_if(|block| !is_kept(block));
        reply.marks.retain(|(_, content)| !self.is_ours(content));
        let echo = reply.nothing.take_if(|reason| self.is_ours(reason));
        let why = why.or(echo.map(|_| "it repeats the question"));
        why.filter(|_| reply.observations.is_empty())
    }

    fn objection(&self, block: &ReplyBlock) -> Option<&'static str> {
        let texts = block.texts();
        if texts.iter().any(|text| self.is_ours(text)) {
            return Some("it repeats the question");
        }
        let long = texts.iter().map(|text| text::normalised(text));
        let long = long.filter(|text| text.split(' ').count() >= SEQUENCE);
        let long: Vec<String> = long.collect();
        let distinct: HashSet<&String> = long.iter().collect();
        if long.len() >= distinct.len() + 2 {
            return Some("several of its fields have the same text");
        }
        let cited = numbers(&block.verbatim(&["events"]));
        let wrong = cited.iter().filter(|it| !(1..=self.steps).contains(it));
        if is_mostly(wrong.count(), cited.len()) {
            return Some("it refers to steps that are not in the question");
        }
        let names: HashSet<&str> = texts.iter().flat_map(|text| names(text)).collect();
        let unknown = names.iter().filter(|name| !self.is_recorded(name));
        is_mostly(unknown.count(), names.len())
            .then_some("it names files or code that were not recorded")
    }

    /// Whether the model saw the observation of this number earlier in the conversation.
    pub fn was_shown(&self, id: i64) -> bool {
        self.shown.contains(&id)
    }

    /// Whether the recording has a file or a part of code of this name.
    pub fn is_recorded(&self, name: &str) -> bool {
        let name = name.trim_matches(|it: char| !it.is_alphanumeric());
        let last = name.rsplit(['/', ':']).next().unwrap_or(name);
        self.recording.contains(&last.to_lowercase())
    }

    /// Whether a text repeats the question: two thirds of its sequences are our own, or it begins with
    /// a time, like a step.
    pub fn is_ours(&self, text: &str) -> bool {
        let all: Vec<String> = sequences(text).collect();
        let ours = all.iter().filter(|it| self.ours.contains(*it)).count();
        begins_with_time(text) || (ours > 0 && ours * 3 >= all.len() * 2)
    }
}

/// Whether `some` are more than half of `all`, and at least two.
fn is_mostly(some: usize, all: usize) -> bool {
    some >= 2 && some * 2 > all
}

/// Whether a text begins with a time of day, such as `14:05`.
fn begins_with_time(text: &str) -> bool {
    let mut parts = text.trim_start().splitn(3, [':', ' ', ',']);
    let is_number = |part: Option<&str>| {
        part.is_some_and(|it| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit()))
    };
    text.contains(':') && is_number(parts.next()) && is_number(parts.next())
}

/// The words of a text in lower case, with each number as `0`.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|it: char| !it.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words
        .map(|word| match word.bytes().all(|it| it.is_ascii_digit()) {
            true => "0".to_owned(),
            false => word.to_lowercase(),
        })
        .collect()
}

/// The sequences of a text, without those that have only numbers.
fn sequences(text: &str) -> impl Iterator<Item = String> {
    let words = words(text);
    let sequences: Vec<String> = words.windows(SEQUENCE).map(|it| it.join(" ")).collect();
    sequences.into_iter().filter(|it| *it != "0 0 0")
}

/// The words of a text that have the form of a file or of code: `src/a.rs`, `max_retries`,
/// `Store::open`, `openSocket`.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| it.is_whitespace() || ",;()[]{}<>\"'`=".contains(it));
    let words = words.map(|word| word.trim_matches(|it: char| !it.is_alphanumeric()));
    words.filter(|word| !word.contains("://") && is_name(word))
}

fn is_name(word: &str) -> bool {
    let characters: Vec<char> = word.chars().collect();
    let is_camel = |it: &[char]| it[0].is_lowercase() && it[1].is_uppercase();
    let is_file = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        let begins = |it: &str, is: fn(char) -> bool| it.starts_with(is);
        stem.len() > 1 && ending.len() <= 4 && begins(ending, |it| it.is_ascii_lowercase())
    });
    is_file || word.contains("::") || word.contains('_') || characters.windows(2).any(is_camel)
}

#[cfg(test)]
pub mod tests;
