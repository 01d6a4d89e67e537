//! The program `foreword`: hooks, commands, worker and MCP server around `foreword_core`.
//!
//! The modules are listed in floors: a module uses only modules listed above it, which the test
//! `floors` checks. Everything else uses the first group. `hook` is the short path that a coding
//! agent waits for. `service` has what every reader of the memory needs. No module uses `cli`.

mod colour;
#[macro_use]
mod output;

pub mod platform;

pub mod home;

mod local_time;
mod progress;

mod host;

pub mod config;
mod log;
mod not_kept;
mod notice;
mod switch;

pub mod start;

pub mod hook;

pub mod service;

mod agent;
mod evidence;
mod offline;

mod notes;
mod worker;

mod install;

mod doctor;
mod show;

mod mcp;

pub mod cli;

#[cfg(test)]
mod tests;
