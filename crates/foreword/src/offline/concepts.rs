//! Broad words for an observation: from the paths it touches, and from what it says.

use std::path::Path;

use foreword_core::model::TouchedFile;

use super::{once, speech};

const CONCEPTS_MAX: usize = 6;

/// Topics, and the beginnings of words that people use for them; short ones are whole words.
const TOPICS: [(&str, &str); 14] = [
    ("testing", "test unittest pytest"),
    ("deployment", "deploy rollback release"),
    ("migrations", "migrat"),
    ("time zones", "timezone utc zone"),
    ("caching", "cache lru_cache memoiz"),
    ("concurrency", "race deadlock thread transaction lease lock"),
    ("timeouts", "timeout hang"),
    ("authentication", "login token password oauth"),
    ("database", "sqlite sqlite3 postgres sql database"),
    ("parsing", "parse parser"),
    ("rounding", "round"),
    ("performance", "slow latency benchmark"),
    ("dependencies", "dependenc upgrade"),
    ("errors", "exception except"),
];

/// Languages by the endings of their files.
const LANGUAGES: [(&str, &str); 15] = [
    ("rust", "rs"),
    ("python", "py"),
    ("typescript", "ts tsx"),
    ("javascript", "js jsx mjs"),
    ("go", "go"),
    ("java", "java"),
    ("ruby", "rb"),
    ("c", "c h"),
    ("c++", "cpp cc hpp"),
    ("sql", "sql"),
    ("shell", "sh"),
    ("documentation", "md"),
    ("css", "css scss"),
    ("html", "html"),
    ("configuration", "toml yaml yml json"),
];

/// Folders and stems that say nothing.
const EMPTY: &[&str] = &[
    "src", "lib", "main", "mod", "index", "crates", "packages", "app", "init", "__init__", "test",
    "tests", "readme", "",
];

/// Stems, folders and languages of `files`, then topics of `text`.
pub fn concepts(files: &[TouchedFile], text: &str) -> Vec<String> {
    let paths = files.iter().map(|file| Path::new(&file.path));
    let paths = paths.filter(|path| path.is_relative());
    let of_paths = paths.take(3).flat_map(|path| {
        let word = |part: Option<&std::ffi::OsStr>| {
            let part = part.unwrap_or_default().to_string_lossy().to_lowercase();
            part.trim_start_matches('.').to_owned()
        };
        let extension = word(path.extension());
        let language = with(&LANGUAGES, |it| it == extension).next();
        let folder = path.parent().and_then(Path::file_name);
        let language = language.unwrap_or_default().to_owned();
        [word(path.file_stem()), word(folder), language]
    });
    let of_paths = of_paths.filter(|word| !EMPTY.contains(&word.as_str()));
    let mut concepts = once(of_paths, |a, b| a == b);
    concepts.truncate(CONCEPTS_MAX - 2);
    let lower = text.to_lowercase();
    let words: Vec<&str> = speech::words(&lower).collect();
    let said = |mark: &str| {
        let is_it = |word: &&str| *word == mark || (mark.len() >= 5 && word.starts_with(mark));
        words.iter().any(is_it)
    };
    let topics: Vec<&str> = with(&TOPICS, said).collect();
    concepts.extend(topics.into_iter().map(str::to_owned));
    let mut concepts = once(concepts, |a, b| a == b);
    concepts.truncate(CONCEPTS_MAX);
    concepts
}

/// The names in a table of which one of the marks `is_it`.
fn with(
    table: &'static [(&str, &str)],
    is_it: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &'static str> {
    let found = table
        .iter()
        .filter(move |(_, marks)| marks.split(' ').any(&is_it));
    found.map(|(name, _)| *name)
}
