//! What the scripted model says: well-formed observations of words that the question
//! holds, so that no two are alike, and as long as a model's are.

use std::fmt::Write as _;

use foreword_core::text;

/// A question of more than so many tokens is worth a second observation.
const MUCH: usize = 4_000;

pub fn to(question: &str, number: u64) -> String {
    let mut words = Words::of(question, number);
    let mut answer = observation(&mut words);
    if text::tokens(question) > MUCH {
        answer += &observation(&mut words);
    }
    if question.contains("<summary>") {
        answer += &summary(&mut words);
    }
    answer
}

fn observation(words: &mut Words<'_>) -> String {
    let kinds = ["decision", "bugfix", "feature", "refactor", "discovery"];
    let kind = kinds[words.number(kinds.len())];
    let title = words.some(6);
    let subtitle = words.sentence(16);
    let mut facts = String::new();
    for _ in 0..3 + words.number(3) {
        let _ = write!(facts, "<fact>{}</fact>", words.sentence(13));
    }
    let mut narrative = String::new();
    for _ in 0..9 + words.number(5) {
        let _ = write!(narrative, "{} ", words.sentence(14));
    }
    let (one, other) = (words.some(1), words.some(1));
    format!(
        "<observation>\n<type>{kind}</type>\n<title>{title}</title>\n<subtitle>{subtitle}</subtitle>\n\
         <facts>{facts}</facts>\n<narrative>{}</narrative>\n\
         <concepts><concept>{one}</concept><concept>{other}</concept></concepts>\n\
         <files_read></files_read>\n<files_modified></files_modified>\n</observation>\n",
        narrative.trim_end()
    )
}

fn summary(words: &mut Words<'_>) -> String {
    let mut fields = String::new();
    for field in [
        "request",
        "investigated",
        "learned",
        "completed",
        "next_steps",
    ] {
        let _ = writeln!(fields, "<{field}>{}</{field}>", words.sentence(16));
    }
    format!(
        "<summary>\n{fields}<files_read></files_read>\n<files_edited></files_edited>\n<notes></notes>\n</summary>\n"
    )
}

/// Words of a question, in an order of its own for each question.
struct Words<'a> {
    words: Vec<&'a str>,
    state: u64,
}

impl<'a> Words<'a> {
    fn of(question: &'a str, number: u64) -> Words<'a> {
        let long = |word: &&str| (4..=12).contains(&word.len());
        let words = question.split(|it: char| !it.is_ascii_alphabetic());
        let mut words: Vec<&str> = words.filter(long).collect();
        if words.is_empty() {
            words.push("nothing");
        }
        Words {
            words,
            state: number * 2 + 1,
        }
    }

    /// One of so many numbers; Knuth's generator, because chance must not change a benchmark.
    fn number(&mut self, below: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % below
    }

    fn some(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count)
            .map(|_| {
                let at = self.number(self.words.len());
                self.words[at]
            })
            .collect();
        words.join(" ")
    }

    fn sentence(&mut self, count: usize) -> String {
        self.some(count) + "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_a_models_and_no_two_are_alike() {
        let question = "The parser reads every journal, because a month names its file.";
        let first = to(question, 0);
        let between = |from: &str, to: &str| {
            let (_, rest) = first.split_once(from).unwrap();
            rest.split_once(to).unwrap().0.to_owned()
        };
        let words = between("<narrative>", "</narrative>").split(' ').count();
        assert!((120..=200).contains(&words), "{words} words");
        assert_ne!(first, to(question, 1));
        assert_eq!(first, to(question, 0));
    }

    #[test]
    fn who_asks_for_a_summary_gets_one() {
        assert!(!to("What happened?", 0).contains("<summary>"));
        let answer = to("Add a <summary> of it.", 0);
        for field in [
            "request",
            "investigated",
            "learned",
            "completed",
            "next_steps",
            "notes",
        ] {
            assert!(answer.contains(&format!("</{field}>")), "{field}");
        }
    }
}
