//! Foreword's memory, without the world around it.
//!
//! Everything here is synchronous and offline: it does not print, read the
//! environment, look at the clock or touch the network. Time, paths and settings
//! are arguments. The modules stand in the order in which a tool use meets them:
//! what a hook was told is *captured* (its project resolved, its secrets
//! redacted), *queued* (or spooled; *fill* adds what hooks missed), and later *stored*
//! together with what was derived from it; *search*, *index* and *need* read it back.

pub mod model;

pub mod capture;
pub mod git;
pub mod project;
pub mod redact;

pub mod queue;
pub mod spool;

pub mod fill;
pub mod transcript;

pub mod kin;
pub mod store;

pub mod notes;

pub mod index;
pub mod need;
pub mod records;
pub mod search;
pub mod stale;
pub mod text;
pub mod vectors;

pub mod audit;
pub mod backup;
pub mod check;
pub mod db;
pub mod fault;
pub mod recover;
mod salvage;
pub mod unreleased;
