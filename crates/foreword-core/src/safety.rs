//! Keeps the databases intact: `backup` copies memory.db, `check` verifies every page and row,
//! `recover` replaces a damaged file and brings over the rows that `salvage` can still read.

pub mod backup;
pub mod check;
pub mod recover;
mod salvage;
