//! Core against real files: recorded payloads of the host, databases on disk.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod again;
mod beside;
mod closing;
mod documents;
mod hands;
mod index;
mod kin;
mod meaning;
mod models;
mod need;
mod ordinary;
mod payloads;
mod queue;
mod recover;
mod search;
mod secrets;
mod store;
mod transcript;
