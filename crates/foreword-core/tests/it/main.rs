//! Core against real files: recorded payloads of the host, databases on disk.

mod payloads;
mod queue;
mod store;
