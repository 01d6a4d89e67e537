//! Foreword as a user meets it: the real program, real files, real signals.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod support;

mod spine;

mod commands;
mod concurrency;
mod crash;
mod doctor;
mod install;
mod pipes;
mod storage;
mod worker;

mod client;
mod projects;
mod secrets;
mod switch;
mod terminal;
