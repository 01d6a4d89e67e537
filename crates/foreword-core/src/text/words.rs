//! The words of a query and of a text, as full-text search sees them.
//!
//! FTS5 cuts text at everything that is no letter or digit and stems what is left, which
//! takes `snake_case`, `path/to/x.rs` and `Vec<String>` apart as they should be. Three
//! things it does not know: the parts of `camelCase`, languages written without spaces,
//! and names like `C++`. Those go into a column of their own (`parts`), and a query asks
//! for a word as it stands and for its parts.

use std::collections::HashSet;

/// A word of a query: as it stands, and what it is made of if that is more than one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub whole: String,
    pub parts: Vec<String>,
}

impl Word {
    /// What to ask FTS5 for.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.whole)
            .chain(&self.parts)
            .map(String::as_str)
    }

    pub fn is_stop_word(&self) -> bool {
        self.parts.is_empty()
            && STOP_WORDS
                .binary_search(&self.whole.to_lowercase().as_str())
                .is_ok()
    }
}

/// The words of a query, each once.
pub(crate) fn words(query: &str) -> Vec<Word> {
    let mut seen = HashSet::new();
    let word = |(word, after): (&str, &str)| Word {
        whole: word.to_owned(),
        parts: pieces(word)
            .into_iter()
            .flat_map(pairs)
            .chain(name_with_signs(word, after))
            .collect(),
    };
    split(query)
        .map(word)
        .filter(|word| seen.insert((word.whole.to_lowercase(), word.parts.clone())))
        .collect()
}

/// The single characters of words in languages without spaces: the last thing to ask for.
pub(crate) fn characters(words: &[Word]) -> Vec<Word> {
    let characters = words.iter().flat_map(|word| word.whole.chars());
    let mut seen = HashSet::new();
    characters
        .filter(|&it| is_cjk(it) && seen.insert(it))
        .map(|it| Word {
            whole: it.to_string(),
            parts: Vec::new(),
        })
        .collect()
}

/// What a text's words are made of, for the column beside them.
pub(crate) fn parts(text: &str) -> String {
    let mut out = String::new();
    let mut push = |part: &str| {
        out.push_str(part);
        out.push(' ');
    };
    for (word, after) in split(text) {
        for piece in pieces(word) {
            if piece.starts_with(is_cjk) {
                piece.split_inclusive(|_| true).for_each(&mut push);
            }
            pairs(piece).iter().for_each(|pair| push(pair));
        }
        name_with_signs(word, after)
            .iter()
            .for_each(|name| push(name));
    }
    out
}

/// Runs of letters and digits, each with the text after it.
fn split(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = &rest[rest.find(is_letter)?..];
        let end = word.find(|it| !is_letter(it)).unwrap_or(word.len());
        rest = &word[end..];
        Some((&word[..end], rest))
    })
}

/// As FTS5 sees it: accents set apart from their letter and private characters belong
/// to words.
fn is_letter(character: char) -> bool {
    character.is_alphanumeric()
        || matches!(character, '\u{300}'..='\u{331}' | '\u{e000}'..='\u{f8ff}')
}

fn is_cjk(character: char) -> bool {
    matches!(
        character,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// `parse`, `HTTP`, `Reply` of `parseHTTPReply`; nothing if the word is of one piece.
fn pieces(word: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = word.char_indices().collect();
    let mut starts = vec![0];
    for (number, window) in characters.windows(2).enumerate() {
        let [(_, before), (at, here)] = window else {
            continue;
        };
        let after = characters.get(number + 2).map(|&(_, it)| it);
        let capital = here.is_uppercase()
            && (!before.is_uppercase() || after.is_some_and(char::is_lowercase));
        if capital || is_cjk(*before) != is_cjk(*here) {
            starts.push(*at);
        }
    }
    if starts.len() == 1 && !word.starts_with(is_cjk) {
        return Vec::new();
    }
    starts.push(word.len());
    starts.windows(2).map(|it| &word[it[0]..it[1]]).collect()
}

/// Where no spaces tell words apart, each two neighbours stand for one.
fn pairs(piece: &str) -> Vec<String> {
    let characters: Vec<char> = piece.chars().collect();
    if !piece.starts_with(is_cjk) || characters.len() == 1 {
        return vec![piece.to_owned()];
    }
    characters.windows(2).map(String::from_iter).collect()
}

/// `C++` and `C#` would be no more than a letter.
fn name_with_signs(word: &str, after: &str) -> Option<String> {
    if after.starts_with("++") {
        Some(format!("{word}plusplus"))
    } else if after.starts_with('#') && word.len() == 1 {
        Some(format!("{word}sharp"))
    } else {
        None
    }
}

/// English words that are in every text, and what is left of contractions. Sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as",
    "at", "be", "because", "been", "before", "being", "between", "both", "but", "by", "can",
    "could", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "done", "during", "each",
    "few", "for", "from", "further", "get", "had", "has", "have", "having", "he", "her", "here",
    "hers", "him", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "itself",
    "just", "ll", "m", "many", "me", "more", "most", "much", "my", "myself", "no", "nor", "not",
    "now", "of", "off", "on", "once", "one", "only", "or", "other", "our", "ours", "out", "over",
    "own", "please", "re", "s", "same", "she", "should", "so", "some", "such", "t", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to",
    "too", "under", "until", "up", "us", "ve", "very", "was", "wasn", "we", "were", "what", "when",
    "where", "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your",
    "yours", "yourself",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(query: &str) -> Vec<String> {
        let words = words(query).into_iter();
        let word = |it: Word| match it.parts.as_slice() {
            [] => it.whole,
            parts => format!("{}={}", it.whole, parts.join("+")),
        };
        words.map(word).collect()
    }

    #[test]
    fn whatever_was_typed_becomes_words_and_their_parts() {
        assert_eq!(told("rm -rf \"x\" AND x"), ["rm", "rf", "x", "AND"]);
        assert_eq!(told("parseHTTPReply"), ["parseHTTPReply=parse+HTTP+Reply"]);
        assert_eq!(
            told("snake_case path/to/x.rs"),
            ["snake", "case", "path", "to", "x", "rs"]
        );
        assert_eq!(told("Vec<String> E0308"), ["Vec", "String", "E0308"]);
        assert_eq!(told("C++ and C#"), ["C=Cplusplus", "and", "C=Csharp"]);
        assert_eq!(told("全文検索 速"), ["全文検索=全文+文検+検索", "速=速"]);
        assert_eq!(told("使用Rust"), ["使用Rust=使用+Rust"]);
        assert_eq!(told("  -*\"  "), [""; 0]);
    }

    #[test]
    fn a_text_is_found_by_what_its_words_are_made_of() {
        assert_eq!(parts("the plain words"), "");
        assert_eq!(parts("getUserId in C++"), "get User Id Cplusplus ");
        assert_eq!(parts("全文検"), "全 文 検 全文 文検 ");
    }

    #[test]
    fn stop_words_are_sorted_as_looking_them_up_asks() {
        assert!(STOP_WORDS.is_sorted());
    }
}
