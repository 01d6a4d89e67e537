//! The texts that an agent is shown without asking: the `index` at the start of a session, and a
//! `reminder` beside a prompt or a file. `freshness` checks whether the files of an observation
//! have changed, `worth` scores which observations come first.

pub mod freshness;
pub mod index;
mod line;
pub mod reminder;
mod worth;
