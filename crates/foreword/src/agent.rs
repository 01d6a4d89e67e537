//! The memory agent: a model that turns a batch of events into observations and a summary.
//!
//! `question` describes what happened, with `prompts` that are files; a `provider` answers;
//! `reply` finds the known tags in the answer, `judge` removes what does not rest on the recording,
//! and `repair` makes model types of the rest. `compress` does these steps for a batch, `closing` for a
//! session that is over, `ask` for a command. A `conversation` holds what a model was asked about a
//! session so far. A `fence` separates recorded text from our own. `origin` finds words that were copied out of what
//! tools printed. `leash` decides whether a model may be asked at all.

pub mod ask;
pub mod budget;
pub mod closing;
pub mod compress;
pub mod conversation;
pub mod fence;
pub mod judge;
pub mod leash;
pub mod origin;
pub mod prompts;
pub mod provider;
pub mod question;
pub mod repair;
pub mod reply;
