//! Has a model turn a batch of events into observations and a summary.
//!
//! `question` words what happened; a provider answers; `reply` finds the known tags
//! in whatever came back, and `repair` makes model types of them.

pub mod repair;
pub mod reply;
