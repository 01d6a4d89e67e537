//! Tests of the real program with real files and signals.
//!
//! There are two tiers. `cargo test` runs the tests that need only python3 and git. `scripts/test`
//! sets the feature `full-tests` and also runs those with the real Claude Code client, other MCP
//! clients, the sentence model or release builds, and the slow ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![cfg_attr(
    not(feature = "full-tests"),
    expect(dead_code, reason = "some of the support is for the full tier alone")
)]

mod audit;
mod support;
mod transcript;
mod trust;

mod agent;
mod agent_writes;
mod commands;
mod concurrency;
mod doctor;
mod door;
mod fill;
mod floors;
mod fuzz;
mod hands;
mod host;
mod hostile;
mod hosts;
mod install;
mod isolation;
mod levels;
mod manners;
mod mcp;
mod need;
mod notes;
mod offline;
mod pipes;
mod poison;
mod policy;
mod projects;
mod quality;
mod reading;
mod recall;
mod recovery;
mod reversal;
mod secrets;
mod skew;
mod spine;
mod storage;
mod switch;
mod synthesize;
mod terminal;
mod wording;
mod worker;

#[cfg(feature = "full-tests")]
mod census;
#[cfg(feature = "full-tests")]
mod client;
#[cfg(feature = "full-tests")]
mod cost;
#[cfg(feature = "full-tests")]
mod counts;
#[cfg(feature = "full-tests")]
mod full_disk;
#[cfg(feature = "full-tests")]
mod meaning;
#[cfg(feature = "full-tests")]
mod model;
