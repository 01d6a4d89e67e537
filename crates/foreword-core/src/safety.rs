//! Keeps the databases whole: `backup` copies them, `check` looks at every page and row, `recover`
//! puts a damaged one right with what `salvage` can still read; `unreleased` sets those aside that
//! no migration leads on from.

pub mod backup;
pub mod check;
pub mod recover;
mod salvage;
pub mod unreleased;
