//! A project's memory in files, as commands, skills, the MCP server and the worker use it:
//! `summarize` writes a note, `synthesize` makes the master of all notes, `recall` loads it.
//! `foreword_core::notes` knows what the files look like.

pub mod recall;
pub mod summarize;
pub mod synthesize;

use foreword_core::text;

/// A text without characters that would control a terminal; lines and tabs stay.
pub fn printable(text: &str) -> String {
    text.replace(|it| text::is_unsafe(it) && !matches!(it, '\n' | '\t'), "")
}
