//! The prompts: `.md` files, each of which the user can replace by one of their own.
//!
//! A prompt is text with `{{names}}`. Values are filled in once and not searched for
//! further names, so recorded text cannot insert anything.

use std::path::Path;

use foreword_core::files::{self, ReadError, SMALL_MAX};

/// The version of the prompts, stored with everything that models wrote. It goes up with each
/// change that affects the answers.
const VERSION: &str = "2";

const OURS: [(&str, &str); 11] = [
    ("init", include_str!("prompts/init.md")),
    ("session", include_str!("prompts/session.md")),
    ("continuation", include_str!("prompts/continuation.md")),
    ("opening", include_str!("prompts/opening.md")),
    ("observe", include_str!("prompts/observe.md")),
    ("summary", include_str!("prompts/summary.md")),
    ("again", include_str!("prompts/again.md")),
    ("closing", include_str!("prompts/closing.md")),
    ("ended", include_str!("prompts/ended.md")),
    ("note", include_str!("prompts/note.md")),
    ("conversation", include_str!("prompts/conversation.md")),
];

/// The JSON schema of an answer, for providers that can hold a model to it. It is the same for each
/// question, so that the provider can cache it.
pub const ANSWER_SCHEMA: &str = include_str!("prompts/answer.json");

/// The longest prompt file of a user's, in bytes. A longer one is taken for a mistake, since it is
/// paid for with every call.
const PROMPT_MAX: usize = 32_768;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    texts: Vec<(&'static str, String)>,
    version: String,
    /// Lines for the log about prompt files of the user's that cannot be used.
    pub problems: Vec<String>,
}

impl Prompts {
    /// Loads each prompt from `folder` if the user has put one there, else the built-in one.
    pub fn load(folder: &Path) -> Prompts {
        let mut problems = Vec::new();
        let mut theirs = String::new();
        let texts = OURS.map(|(name, ours)| {
            let path = folder.join(format!("{name}.md"));
            let why = match files::read_text(&path, SMALL_MAX) {
                Err(ReadError::Missing) => {
                    return (name, ours.to_owned());
                }
                Err(error) => error.to_string(),
                Ok(text) if text.len() > PROMPT_MAX => "longer than 32 KB".to_owned(),
                Ok(text) if text.trim().is_empty() => "empty".to_owned(),
                Ok(text) => {
                    theirs.push_str(name);
                    theirs.push_str(&text);
                    return (name, text);
                }
            };
            problems.push(format!("{}: {why}; ours is used", path.display()));
            (name, ours.to_owned())
        });
        let version = match theirs.as_str() {
            "" => VERSION.to_owned(),
            theirs => {
                let hash = blake3::hash(theirs.as_bytes()).to_hex();
                format!("{VERSION}-own-{}", &hash[..8])
            }
        };
        Prompts {
            texts: texts.into(),
            version,
            problems,
        }
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// A prompt with its names replaced by values. A name without a value stays as it is.
    pub fn fill(&self, name: &str, values: &[(&str, &str)]) -> String {
        let template = self
            .texts
            .iter()
            .find(|(it, _)| *it == name)
            .map_or("", |(_, text)| text.as_str());
        let mut filled = String::new();
        let mut rest = template.trim_end();
        while let Some(start) = rest.find("{{") {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let value = rest.find("}}").and_then(|end| {
                let (_, value) = values.iter().find(|(it, _)| *it == rest[2..end].trim())?;
                Some((end + 2, *value))
            });
            let (used, value) = value.unwrap_or((2, "{{"));
            filled.push_str(value);
            rest = &rest[used..];
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_filled_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("session.md"),
            "{{project}} {{date}} {{x}} {{",
        )
        .unwrap();
        let prompts = Prompts::load(dir.path());
        let filled = prompts.fill("session", &[("project", "{{date}}"), ("date", "today")]);
        assert_eq!(filled, "{{date}} today {{x}} {{");
        assert!(prompts.version().starts_with("2-own-"));
    }

    #[test]
    fn a_prompt_of_the_users_that_cannot_be_used_is_named_and_ours_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("init.md"), " \n").unwrap();
        let prompts = Prompts::load(dir.path());
        assert_eq!(prompts.problems.len(), 1, "{:?}", prompts.problems);
        assert_eq!(prompts.fill("init", &[]), OURS[0].1.trim_end());
        assert_eq!(prompts.version(), "2");
    }

    #[test]
    fn the_prompts_do_not_bias() {
        for (name, text) in OURS {
            let words: Vec<&str> = text.split(|it: char| !it.is_alphanumeric()).collect();
            assert!(!words.contains(&"most"), "{name}");
            for tool in ["Bash", "Read", "Edit", "Grep", "Glob", "Task", "WebFetch"] {
                assert!(!words.contains(&tool), "{name}: {tool}");
            }
        }
    }

    #[test]
    fn the_fixed_part_stays_small() {
        let (_, init) = OURS[0];
        assert!(
            foreword_core::text::tokens(init) <= 1_000,
            "every call pays for it"
        );
    }
}
