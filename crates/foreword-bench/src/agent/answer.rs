//! Answers of the counting model: well-formed observations made of the question's own words,
//! so that no two are alike, and as long as a real model's.

use foreword_core::text;

use super::super::random::Random;

/// The number of tokens above which a question gets a second observation.
const LONG_QUESTION: usize = 4_000;

pub fn to(question: &str, number: u64) -> String {
    let mut words = QuestionWords::of(question, number);
    let mut answer = observation(&mut words);
    if text::tokens(question) > LONG_QUESTION {
        answer += &observation(&mut words);
    }
    if question.contains("<summary>") {
        answer += &summary(&mut words);
    }
    answer
}

fn observation(words: &mut QuestionWords<'_>) -> String {
    let kinds = ["decision", "bugfix", "feature", "refactor", "discovery"];
    let kind = kinds[words.random.below(kinds.len() as u32) as usize];
    let facts = 3 + words.random.below(3);
    let facts: String = (0..facts)
        .map(|_| format!("<fact>{}.</fact>", words.some(13)))
        .collect();
    let narrative = 9 + words.random.below(5);
    let narrative: Vec<String> = (0..narrative).map(|_| words.some(14) + ".").collect();
    format!(
        "<observation>\n<type>{kind}</type>\n<title>{}</title>\n<subtitle>{}.</subtitle>\n\
         <facts>{facts}</facts>\n<narrative>{}</narrative>\n\
         <concepts><concept>{}</concept><concept>{}</concept></concepts>\n\
         <files_read></files_read>\n<files_modified></files_modified>\n</observation>\n",
        words.some(6),
        words.some(16),
        narrative.join(" "),
        words.some(1),
        words.some(1),
    )
}

fn summary(words: &mut QuestionWords<'_>) -> String {
    let fields = [
        "request",
        "investigated",
        "learned",
        "completed",
        "next_steps",
    ];
    let fields: String = fields
        .iter()
        .map(|field| format!("<{field}>{}.</{field}>\n", words.some(16)))
        .collect();
    format!(
        "<summary>\n{fields}<files_read></files_read>\n<files_edited></files_edited>\n<notes></notes>\n</summary>\n"
    )
}

/// The words of a question, drawn at random; each question has a seed of its own.
struct QuestionWords<'a> {
    words: Vec<&'a str>,
    random: Random,
}

impl<'a> QuestionWords<'a> {
    fn of(question: &'a str, number: u64) -> QuestionWords<'a> {
        let long = |word: &&str| (4..=12).contains(&word.len());
        let words = question.split(|it: char| !it.is_ascii_alphabetic());
        QuestionWords {
            words: words.filter(long).chain(["nothing"]).collect(),
            random: Random::new(number * 2 + 1),
        }
    }

    fn some(&mut self, count: usize) -> String {
        let one = |_| self.words[self.random.below(self.words.len() as u32) as usize];
        (0..count).map(one).collect::<Vec<_>>().join(" ")
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
    fn a_question_that_asks_for_a_summary_gets_one() {
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
