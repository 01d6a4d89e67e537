//! What the user and the agent said, read for the few things that words alone can
//! tell: why something was given up, a cause, a finding (decisions are read by
//! `decisions`). `speech` takes texts apart for it.
//!
//! Words are only ever quoted. A question, a guess or a condition finds nothing.

use super::speech::{after, all_sentences, before_any, body, has, paragraphs, sentences, words};

const GUESSES: &str = "maybe, perhaps, probably, might, i think, i suspect, i guess, not sure, \
    seems, could be, may be, likely, should we, shall i, wonder";

const GAVE_UP: &str = "tried, reverted, undid, undo, rolled back, roll back, backed out, \
    took out, taken out, took it out, put back, went back, gave up, given up, abandoned, \
    dropped, did not help, didn't help, made no difference, discarded, rejected, restored";

/// Verbs behind which stands what was given up.
const GIVES_UP: &str =
    "tried to, tried, gave up on, backed out, reverted, abandoned, rejected, dropped, undid";

const CAUSES: &str = "cause, the bug, the problem, turned out, due to, the reason, culprit";

const NOT_FIXED: &str = "could not fix, couldn't fix, could not reproduce, couldn't reproduce, \
    could not find, couldn't find, unable to, did not fix, didn't fix, still fail, still broken, \
    still red, not fixed";

/// A question, a guess or a condition.
pub fn is_open(lower: &str) -> bool {
    lower.ends_with('?')
        || after(lower, "if, why, how, what, whether").is_some()
        || has(lower, GUESSES)
}

/// A finding as a title: its first sentence, or what that says first.
pub fn first_words(finding: &str) -> String {
    let sentences = sentences(finding);
    let sentence = sentences.first().copied().unwrap_or_default();
    let sentence = sentence.trim_end_matches('.');
    let ends = [": ", "; ", ", so ", ", and ", ", which "];
    let ends = ends.iter().flat_map(|it| sentence.match_indices(it));
    let end = ends.map(|(at, _)| at).filter(|&at| at >= 25).min();
    match end {
        Some(end) if sentence.chars().count() > 90 => sentence[..end].to_owned(),
        _ => sentence.to_owned(),
    }
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
        let context = paragraph.to_lowercase();
        let about = match names {
            Some(names) => names.iter().filter(|it| is_named(&context, it)).count(),
            None => 1,
        };
        // Words that name nothing of it could be about anything.
        if about <= best.as_ref().map_or(0, |(most, _)| *most) {
            continue;
        }
        let all = sentences(&paragraph);
        let says_so = |sentence: &&str| {
            let lower = sentence.to_lowercase();
            has(&lower, GAVE_UP) && !lower.ends_with('?')
        };
        if let Some(at) = all.iter().position(says_so) {
            let thing = thing_given_up(all[at]);
            let quote = match paragraph.chars().count() {
                ..=300 => paragraph.clone(),
                _ => all[at..].join(" "),
            };
            best = Some((about, Reason { quote, thing }));
        }
    }
    best.map(|(_, reason)| reason)
}

/// Whether a later request takes up what was named as a next step: it shares much
/// of its words.
pub fn takes_up(request: &str, step: &str) -> bool {
    let request = request.to_lowercase();
    let words: Vec<&str> = words(step).filter(|it| it.chars().count() >= 4).collect();
    let named = words.iter().filter(|word| is_named(&request, word)).count();
    named * 5 >= words.len() * 2 && named > 0
}

/// Whether a lower-case text has this word, or the word with an ending.
fn is_named(lower: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    words(lower).any(|word| word == name || (name.len() >= 5 && word.starts_with(&name)))
}

/// `I first tried caching the header, but …` names `caching the header`.
fn thing_given_up(sentence: &str) -> Option<String> {
    let lower = sentence.to_ascii_lowercase();
    let (at, verb) = GIVES_UP
        .split(", ")
        .find_map(|verb| Some((lower.find(&format!("{verb} "))?, verb)))?;
    let ends = ";|: | — | – | but | because | and it |, so|, which|, and|, since ";
    let thing = before_any(&sentence[at + verb.len()..], ends).trim_start();
    let names_nothing = after(thing, "and, but, it, that, this, again").is_some();
    // `The base class I tried and took out again.`
    let thing = if names_nothing || thing.is_empty() {
        let before = lower[..at].trim_end_matches(" first ").trim_end();
        let before = before
            .strip_suffix(" i")
            .or_else(|| before.strip_suffix(" we"))?;
        sentence[..before.len()].trim()
    } else {
        thing
    };
    let fits = (4..=110).contains(&thing.chars().count());
    fits.then(|| thing.to_owned())
}

/// The sentence of a reply that says what was wrong.
pub fn cause(reply: &str) -> Option<String> {
    all_sentences(&body(reply)).into_iter().find(|sentence| {
        let lower = sentence.to_lowercase();
        has(&lower, CAUSES) && !lower.contains("tried") && !is_open(&lower)
    })
}

/// Whether the agent says that it did not succeed.
pub fn not_fixed(reply: &str) -> bool {
    has(&body(reply).to_lowercase().replace('’', "'"), NOT_FIXED)
}

/// Parts of a reply that state something about what was looked at: each names a
/// file, or code that stands in `seen`.
pub fn findings(reply: &str, seen: &dyn Fn(&str) -> bool) -> Vec<String> {
    let is_stated =
        |sentence: &&str| !is_open(&sentence.to_lowercase()) && sentence.split(' ').count() >= 5;
    let names_it = |sentence: &&str| {
        let code = sentence.split('`').skip(1).step_by(2);
        let files = sentence
            .split([' ', '`', ',', ':', ';', '(', ')'])
            .filter(|word| word.contains(['.', '/']))
            .map(|word| word.trim_end_matches('.'));
        code.chain(files).any(|name| name.len() >= 3 && seen(name))
    };
    let mut findings = Vec::new();
    for paragraph in paragraphs(&body(reply)) {
        let stated: Vec<&str> = sentences(&paragraph)
            .into_iter()
            .filter(is_stated)
            .collect();
        if stated.iter().any(names_it) {
            findings.push(stated.join(" "));
        }
    }
    findings
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
