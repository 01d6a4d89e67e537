//! Recognises what the user lays down in a prompt: a standing rule, a choice, a correction.
//!
//! This is the one place where words decide what a sentence means. The words are in `cues/`, one
//! file for each language; together they are one list, so that no language has to be guessed.
//! `testdata/cues` has prompts by which each language is measured; they were not written by the
//! author of the words.

use super::{lexicon, markdown};

/// What a sentence of the user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cue {
    /// Holds from now on: "always …", "never …", "we decided …".
    Rule,
    /// Decides between alternatives: "X it is", "let's go with B".
    Choice,
    /// Says that something is not so: "no, …", "that is wrong".
    Correction,
    /// Lays nothing down: "if we …", "maybe".
    Supposed,
}

const LANGUAGES: [&str; 7] = [
    include_str!("cues/en.txt"),
    include_str!("cues/de.txt"),
    include_str!("cues/es.txt"),
    include_str!("cues/fr.txt"),
    include_str!("cues/pt.txt"),
    include_str!("cues/ja.txt"),
    include_str!("cues/zh.txt"),
];

/// A rule's adverb ("always") has to be among this many first words of its sentence, and nothing
/// that it could be said of may stand before it: "squash merge always happens" is no rule.
const EARLY_WORDS: usize = 5;
/// A longer sentence is an explanation, not something laid down.
const WORDS_MAX: usize = 45;

/// What a sentence that the user typed lays down; none for a question or a supposition.
pub fn cue(sentence: &str) -> Option<Cue> {
    let sentence = sentence.trim();
    if markdown::is_question(sentence)
        || lexicon::words(sentence) > WORDS_MAX
        || sentence.contains('🙄')
        || sentence.starts_with(['"', '“', '«', '「', '>', '\''])
    {
        return None;
    }
    let whole = without_quotes(&sentence.to_lowercase().replace('’', "'"));
    let text = lexicon::without_openers(&whole).to_owned();
    let found =
        |wanted: Cue| phrases(wanted).any(|phrase| phrase.holds(&text) || phrase.holds(&whole));
    if found(Cue::Supposed) {
        None
    } else if found(Cue::Correction) {
        Some(Cue::Correction)
    } else if found(Cue::Rule) && !lexicon::speaks_of_fault(first_clause(sentence)) {
        Some(Cue::Rule)
    } else if found(Cue::Choice) {
        Some(Cue::Choice)
    } else {
        None
    }
}

/// The sentence without what it quotes: a quoted word lays nothing down.
fn without_quotes(sentence: &str) -> String {
    let mut out = String::new();
    for (number, part) in sentence
        .split(['"', '“', '”', '«', '»', '「', '」'])
        .enumerate()
    {
        out.push_str(if number % 2 == 0 { part } else { " " });
    }
    out
}

/// The sentence up to its first comma: what follows is mostly the reason.
fn first_clause(sentence: &str) -> &str {
    sentence.split([',', '，', '、']).next().unwrap_or_default()
}

/// A phrase and where in a sentence it has to stand.
struct Phrase<'a> {
    text: &'a str,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `^phrase`
    Begins,
    /// `~phrase`
    Early,
    /// `phrase$`
    Ends,
    /// `=phrase`: the sentence is hardly more than this.
    Whole,
    Anywhere,
}

/// All phrases of a section (`[rule]`, `[choice]`, `[correction]`) in all languages.
fn phrases(cue: Cue) -> impl Iterator<Item = Phrase<'static>> {
    let section = match cue {
        Cue::Rule => "[rule]",
        Cue::Choice => "[choice]",
        Cue::Correction => "[correction]",
        Cue::Supposed => "[supposed]",
    };
    LANGUAGES.into_iter().flat_map(move |language| {
        let lines = language.lines().skip_while(move |line| *line != section);
        let lines = lines.skip(1).take_while(|line| !line.starts_with('['));
        lines.filter(|line| !line.is_empty()).map(Phrase::parse)
    })
}

impl<'a> Phrase<'a> {
    fn parse(line: &'a str) -> Phrase<'a> {
        let (text, place) = if let Some(text) = line.strip_prefix('^') {
            (text, Place::Begins)
        } else if let Some(text) = line.strip_prefix('~') {
            (text, Place::Early)
        } else if let Some(text) = line.strip_prefix('=') {
            (text, Place::Whole)
        } else if let Some(text) = line.strip_suffix('$') {
            (text, Place::Ends)
        } else {
            (line, Place::Anywhere)
        };
        Phrase { text, place }
    }

    /// Whether the sentence, in lower case, has the phrase at its place, as whole words.
    fn holds(&self, sentence: &str) -> bool {
        let sentence = sentence.trim_end_matches(['.', '!', '。', '！', ' ']);
        sentence.match_indices(self.text).any(|(at, _)| {
            let (before, after) = (&sentence[..at], &sentence[at + self.text.len()..]);
            is_word_end(before.chars().next_back(), self.text.chars().next())
                && is_word_end(after.chars().next(), self.text.chars().next_back())
                && match self.place {
                    Place::Begins => {
                        let before = lexicon::without_openers(before.trim_start());
                        before.chars().all(|it| !it.is_alphanumeric())
                    }
                    Place::Early => {
                        lexicon::words(before) < EARLY_WORDS && lexicon::telling_words(before) == 0
                    }
                    Place::Whole => lexicon::words(sentence) <= 3,
                    Place::Ends => after.chars().all(|it| !it.is_alphanumeric()),
                    Place::Anywhere => true,
                }
        })
    }
}

/// Whether a word ends between two neighbouring characters. Languages without spaces have no such
/// ends, so there every place counts.
fn is_word_end(outside: Option<char>, inside: Option<char>) -> bool {
    let joined = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    !joined(outside) || inside.is_some_and(lexicon::is_unspaced) || !joined(inside)
}
