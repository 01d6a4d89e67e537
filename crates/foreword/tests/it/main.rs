//! Foreword as a user meets it: the real program, real files, real signals.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod support;

mod spine;

mod client;
mod crash;
mod offline;
mod pipes;
