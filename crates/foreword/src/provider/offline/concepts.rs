//! Broad words for an observation: from the paths it touches, and from what it says.

const CONCEPTS_MAX: usize = 6;

/// Words that people use, and what they are about.
const TOPICS: &[(&str, &[&str])] = &[
    ("testing", &["test", "unittest", "pytest"]),
    ("deployment", &["deploy", "rollback", "release"]),
    ("migrations", &["migrat"]),
    ("time zones", &["timezone", "utc", "zone"]),
    ("caching", &["cache", "lru_cache", "memoiz"]),
    (
        "concurrency",
        &["race", "deadlock", "thread", "transaction", "lease", "lock"],
    ),
    ("timeouts", &["timeout", "hang"]),
    ("authentication", &["login", "token", "password", "oauth"]),
    (
        "database",
        &["sqlite", "sqlite3", "postgres", "sql", "database"],
    ),
    ("parsing", &["parse", "parser"]),
    ("rounding", &["round"]),
    ("performance", &["slow", "latency", "benchmark"]),
    ("dependencies", &["dependenc", "upgrade"]),
    ("errors", &["exception", "except"]),
];
/// Folders and stems that say nothing.
const EMPTY: &[&str] = &[
    "src", "lib", "main", "mod", "index", "crates", "packages", "app", "init", "__init__", "test",
    "tests", "readme", "",
];

/// Stems, folders and languages of `paths`, then topics of `text`.
pub fn concepts(paths: &[&str], text: &str) -> Vec<String> {
    let mut concepts: Vec<String> = Vec::new();
    let mut add = |word: &str| {
        let word = word.to_lowercase();
        if !EMPTY.contains(&word.as_str()) && !concepts.contains(&word) {
            concepts.push(word);
        }
    };
    let paths = paths.iter().map(std::path::Path::new);
    for path in paths.filter(|path| path.is_relative()).take(3) {
        if let Some(stem) = path.file_stem() {
            add(stem.to_string_lossy().trim_start_matches('.'));
        }
        if let Some(folder) = path.parent().and_then(|it| it.file_name()) {
            add(&folder.to_string_lossy());
        }
        if let Some(language) = path
            .extension()
            .and_then(|it| language(&it.to_string_lossy()))
        {
            add(language);
        }
    }
    concepts.truncate(CONCEPTS_MAX - 2);
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|it: char| !it.is_alphanumeric() && it != '_')
        .collect();
    for (topic, marks) in TOPICS {
        let is_mark = |word: &&str| {
            marks
                .iter()
                .any(|mark| word == mark || (mark.len() >= 5 && word.starts_with(mark)))
        };
        if words.iter().any(is_mark) && !concepts.iter().any(|it| it == topic) {
            concepts.push((*topic).to_owned());
        }
    }
    concepts.truncate(CONCEPTS_MAX);
    concepts
}

fn language(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "rs" => "rust",
        "py" => "python",
        "ts" | "tsx" => "typescript",
        "js" | "jsx" | "mjs" => "javascript",
        "go" => "go",
        "java" => "java",
        "rb" => "ruby",
        "c" | "h" => "c",
        "cpp" | "cc" | "hpp" => "c++",
        "sql" => "sql",
        "sh" => "shell",
        "md" => "documentation",
        "css" | "scss" => "css",
        "html" => "html",
        "toml" | "yaml" | "yml" | "json" => "configuration",
        _ => return None,
    })
}
