//! Foreword's memory as a library: it captures events, stores them and finds them again.
//!
//! Everything here is synchronous and offline: it does not print, read the environment or the clock,
//! or touch the network. Time, paths and settings are arguments. It sleeps only on account of a
//! database lock (`db`, `safety::salvage`). A module uses only modules that are listed above it
//! here; the test `floors` checks this. An event passes through them in this order: it is *captured*
//! (its project resolved, its secrets redacted), *queued* or spooled, and *stored* together with the
//! observations derived from it; *search*, *notes* and *recall* read it back.

pub mod model;

pub mod text;

pub mod fault;

pub mod files;
pub mod redact;

pub mod git;
pub mod project;

pub mod host;

pub mod capture;

pub mod db;
pub mod queue;
pub mod spool;

pub mod store;

pub mod export;
pub mod ledger;

pub mod fill;

pub mod notes;

pub mod search;

pub mod recall;

pub mod safety;
