//! A project's memory in files, as commands, skills and the MCP server use it: `recall` loads it,
//! `synthesize` makes it of the notes. `foreword_core::notes` is what the files look like.

pub mod recall;
pub mod synthesize;
