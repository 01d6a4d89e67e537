//! Foreword as a user meets it: the real program, real files, real signals.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod support;
mod transcript;

mod agent;
mod census;
mod client;
mod commands;
mod concurrency;
mod cost;
mod counts;
mod doctor;
mod fill;
mod full_disk;
mod fuzz;
mod host;
mod install;
mod isolation;
mod levels;
mod mcp;
mod meaning;
mod model;
mod need;
mod notes;
mod offline;
mod pipes;
mod projects;
mod recall;
mod recovery;
mod secrets;
mod skew;
mod spine;
mod storage;
mod switch;
mod synthesize;
mod terminal;
mod wording;
mod worker;
