//! What an agent is shown of the memory without asking: the `index` at the start of a session, and a
//! `reminder` beside a prompt or a file. `freshness` says whether an observation still fits its files,
//! `worth` which observations come first.

pub mod freshness;
pub mod index;
mod line;
pub mod reminder;
mod worth;
