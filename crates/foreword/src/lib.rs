//! The program `foreword`: hooks, commands, worker and MCP server around `foreword_core`.
//!
//! The modules stand in floors: a module uses only modules that stand above it here, and the
//! test `floors` keeps it so. The first group is what everything else stands on, `hook` the short
//! road that a coding agent waits for, `service` what every reader of the memory needs; nobody
//! imports `cli`.

pub mod platform;

pub mod home;

mod host;

pub mod config;
mod log;
mod notice;
mod switch;

pub mod start;

pub mod hook;

pub mod service;

mod agent;
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
