//! What the user and the agent said, read for the few things that words alone can
//! tell: why something was given up, a cause, a finding (decisions are read by
//! `decisions`). `speech` takes texts apart for it.
//!
//! Words are only ever quoted. A question, a guess or a condition finds nothing.

use super::speech::{body, paragraphs, sentences};

const GUESSES: &[&str] = &[
    "maybe",
    "perhaps",
    "probably",
    "might ",
    "i think",
    "i suspect",
    "i guess",
    "not sure",
    "seems",
    "could be",
    "may be ",
    "likely",
    "should we",
    "shall i",
    "wonder",
];

const GAVE_UP: &[&str] = &[
    "tried",
    "reverted",
    "undid",
    "undo",
    "undone",
    "rolled back",
    "roll back",
    "backed out",
    "took out",
    "taken out",
    "took it out",
    "put back",
    "went back",
    "gave up",
    "given up",
    "abandoned",
    "dropped",
    "did not help",
    "didn't help",
    "made no difference",
    "discarded",
    "rejected",
    "restored",
];

const CAUSES: &[&str] = &[
    "because",
    "cause",
    "the bug ",
    "the problem ",
    "turned out",
    "due to",
    "the reason",
    "culprit",
];

fn has(lower: &str, marks: &[&str]) -> bool {
    marks.iter().any(|mark| lower.contains(mark))
}

/// A question, a guess or a condition.
pub fn is_open(lower: &str) -> bool {
    let asks = ["if ", "why ", "how ", "what ", "whether "];
    lower.ends_with('?') || asks.iter().any(|it| lower.starts_with(it)) || has(lower, GUESSES)
}

fn every_sentence(text: &str, is_it: impl Fn(&str) -> bool) -> Vec<String> {
    let paragraphs = paragraphs(text);
    let sentences = paragraphs.iter().flat_map(|it| sentences(it));
    sentences
        .filter(|sentence| {
            let lower = sentence.to_lowercase();
            !is_open(&lower) && is_it(&lower)
        })
        .map(str::to_owned)
        .collect()
}

/// A finding as a title: its first sentence, or what that says first.
pub fn first_words(finding: &str) -> String {
    let sentences = sentences(finding);
    let sentence = sentences.first().copied().unwrap_or_default();
    let sentence = sentence.trim_end_matches('.');
    let ends = [": ", "; ", ", so ", ", and ", ", which "];
    let end = ends.iter().flat_map(|it| sentence.match_indices(it));
    let end = end.map(|(at, _)| at).filter(|&at| at >= 25).min();
    let end = end.filter(|_| sentence.chars().count() > 90);
    sentence[..end.unwrap_or(sentence.len())].to_owned()
}

pub fn starts_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len())
        .is_some_and(|it| it.eq_ignore_ascii_case(lower))
}

/// Why an attempt was given up, in somebody's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The sentence that says so, and what stands around it.
    pub quote: String,
    /// What was tried, if the sentence names it.
    pub thing: Option<String>,
}

/// The words of `text` that are about giving up something that `names` belong to;
/// without names, the first words that are about giving up anything.
pub fn given_up(text: &str, names: Option<&[String]>) -> Option<Reason> {
    let mut best: Option<(usize, Reason)> = None;
    for paragraph in paragraphs(text) {
        let all = sentences(&paragraph);
        for (at, sentence) in all.iter().enumerate() {
            let lower = sentence.to_lowercase();
            if !has(&lower, GAVE_UP) || lower.ends_with('?') {
                continue;
            }
            let context = paragraph.to_lowercase();
            let about = match names {
                Some(names) => names.iter().filter(|it| is_named(&context, it)).count(),
                None => 1,
            };
            if best.as_ref().is_some_and(|(most, _)| *most >= about) {
                continue;
            }
            let quote = if paragraph.chars().count() <= 300 {
                paragraph.clone()
            } else {
                all[at..].join(" ")
            };
            let thing = thing_given_up(sentence);
            best = Some((about, Reason { quote, thing }));
        }
    }
    // Words that name nothing of it could be about anything.
    best.filter(|(about, _)| *about > 0)
        .map(|(_, reason)| reason)
}

/// Whether a later request takes up what was named as a next step: it shares much
/// of its words.
pub fn takes_up(request: &str, step: &str) -> bool {
    let request = request.to_lowercase();
    let words = step.split(|it: char| !it.is_alphanumeric() && it != '_');
    let words: Vec<&str> = words.filter(|word| word.chars().count() >= 4).collect();
    let named = words.iter().filter(|word| is_named(&request, word)).count();
    named * 5 >= words.len() * 2 && named > 0
}

/// Whether a lower-case text has this word, or the word with an ending.
fn is_named(lower: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    lower
        .split(|it: char| !it.is_alphanumeric() && it != '_')
        .any(|word| word == name || (name.len() >= 5 && word.starts_with(&name)))
}

/// `I first tried caching the header, but …` names `caching the header`.
fn thing_given_up(sentence: &str) -> Option<String> {
    let lower = sentence.to_ascii_lowercase();
    let verbs = [
        "tried to ",
        "tried ",
        "gave up on ",
        "backed out ",
        "reverted ",
        "abandoned ",
        "rejected ",
        "dropped ",
        "undid ",
    ];
    let (at, verb) = verbs
        .iter()
        .find_map(|verb| Some((lower.find(verb)?, verb)))?;
    let ends = [
        ", but",
        ", so",
        " but ",
        ";",
        ": ",
        " — ",
        " – ",
        ", which",
        ", and",
        " and it ",
        ", because",
        " because ",
        ", since ",
    ];
    let rest = &sentence[at + verb.len()..];
    let end = ends.iter().filter_map(|it| rest.find(it)).min();
    let thing = rest[..end.unwrap_or(rest.len())]
        .trim_end_matches('.')
        .trim();
    let nothing = ["and ", "but ", "it", "that", "this", "again"];
    // `The base class I tried and took out again.`
    let thing = if thing.is_empty() || nothing.iter().any(|it| starts_with(thing, it)) {
        let before = lower[..at].trim_end_matches(" first ").trim_end();
        let before = before
            .strip_suffix(" i")
            .or_else(|| before.strip_suffix(" we"))?;
        sentence[..before.len()].trim()
    } else {
        thing
    };
    (4..=110)
        .contains(&thing.chars().count())
        .then(|| thing.to_owned())
}

/// The sentence of a reply that says what was wrong.
pub fn cause(reply: &str) -> Option<String> {
    let body = body(reply);
    let all = every_sentence(&body, |lower| {
        has(lower, CAUSES) && !lower.contains("tried")
    });
    all.into_iter().next()
}

/// Whether the agent says that it did not succeed.
pub fn not_fixed(reply: &str) -> bool {
    let marks = [
        "could not fix",
        "couldn't fix",
        "could not reproduce",
        "couldn't reproduce",
        "could not find",
        "couldn't find",
        "unable to",
        "did not fix",
        "didn't fix",
        "still fail",
        "still broken",
        "still red",
        "not fixed",
    ];
    has(&body(reply).to_lowercase().replace('’', "'"), &marks)
}

/// Parts of a reply that state something about what was looked at: each names a
/// file, or code that stands in `seen`.
pub fn findings(reply: &str, seen: &dyn Fn(&str) -> bool) -> Vec<String> {
    let stated = |sentence: &&str| {
        let lower = sentence.to_lowercase();
        !is_open(&lower) && sentence.split(' ').count() >= 5
    };
    let names_it = |sentence: &str| {
        let code = sentence.split('`').skip(1).step_by(2);
        let files = sentence
            .split([' ', '`', ',', ':', ';', '(', ')'])
            .filter(|word| word.contains('.') || word.contains('/'))
            .map(|word| word.trim_end_matches('.'));
        code.chain(files).any(|name| name.len() >= 3 && seen(name))
    };
    paragraphs(&body(reply))
        .iter()
        .filter_map(|paragraph| {
            let stated: Vec<&str> = sentences(paragraph).into_iter().filter(stated).collect();
            stated
                .iter()
                .any(|sentence| names_it(sentence))
                .then(|| stated.join(" "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_named_by_the_sentence_that_says_so() {
        let names = ["cache".to_owned(), "Renderer".to_owned()];
        for (reply, thing) in [
            (
                "I first tried a cache in the parser, but it went stale.",
                Some("a cache in the parser"),
            ),
            (
                "The base class I tried and took out again. A `Renderer` is longer.",
                Some("The base class"),
            ),
            ("Reverted: the cache was slower.", None),
        ] {
            assert_eq!(
                given_up(reply, Some(&names)).unwrap().thing.as_deref(),
                thing,
                "{reply}"
            );
        }
        assert_eq!(given_up("I tried a faster loop.", Some(&names)), None);
        assert_eq!(given_up("The cache works.", Some(&names)), None);
    }

    #[test]
    fn a_finding_names_what_was_seen_and_is_no_guess() {
        let seen = |name: &str| name == "claim" || name == "src/a.rs";
        for (reply, count) in [
            ("A job can run twice: `claim` has no transaction.", 1),
            (
                "1. In src/a.rs the lock is never freed.\n2. Nothing else was found here.",
                1,
            ),
            ("`claim` probably has no transaction at all.", 0),
            ("Login checks the password, then issues a token.", 0),
            ("Shall I give `claim` a transaction of its own?", 0),
        ] {
            assert_eq!(findings(reply, &seen).len(), count, "{reply}");
        }
    }
}
