//! Foreword's memory, without the world around it.
//!
//! Everything here is synchronous and offline: it does not print, read the environment or touch the
//! network. Time, paths and settings are arguments. The modules stand in floors: a module uses only
//! modules that stand above it here, and the test `floors` keeps it so. An event meets them in this
//! order: it is *captured* (its project resolved, its secrets redacted), *queued* or spooled, and
//! *stored* together with what was derived from it; *search*, *notes* and *recall* read it back.

pub mod model;

pub mod text;

pub mod fault;

pub mod git;
pub mod project;
pub mod redact;

pub mod host;

pub mod capture;

pub mod db;
pub mod queue;
pub mod spool;

pub mod store;

pub mod fill;

pub mod notes;

pub mod search;

pub mod recall;

pub mod safety;
