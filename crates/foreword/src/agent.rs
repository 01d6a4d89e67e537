//! The memory agent: a model that turns a batch of events into observations and a summary.
//!
//! `question` describes what happened, with `prompts` that are files; a `provider` answers;
//! `reply` finds the known tags in the answer, and `repair` makes model types of them. `compress`
//! does these steps for a batch, `closing` for a session that is over, `note` for a note, `ask` for
//! a command. A `conversation` holds what a model was asked about a session so far. `leash` decides
//! whether a model may be asked at all, and `status` describes its state for the user.

pub mod ask;
pub mod bill;
pub mod closing;
pub mod compress;
pub mod conversation;
pub mod leash;
pub mod note;
pub mod prompts;
pub mod provider;
pub mod question;
pub mod repair;
pub mod reply;
pub mod status;
