//! Observations, summaries and notes without a model: what the events prove, and what the agent
//! concluded, in its own words.
//!
//! `evidence` reads what each tool use proves (edits, runs, commits, answers of the user), `prose`
//! takes the agent's closing words apart into sentences that can stand alone, `cues` recognises
//! what the user lays down. `turn` puts that together for one turn, `headline` and `kind` choose its title and type;
//! `survival` says what is left of it at the end of the session, `reversal` which changes of earlier
//! sessions it took back; `session` folds the turns into few
//! observations and says what the session came to; `note` writes a conversation as a note.
//! A whole session is read each time, so the same events always give the same text, and a later
//! turn can correct what an earlier one seemed to be. `docs/offline-memory.md` shows the result.

mod cues;
mod draft;
mod headline;
mod kind;
mod lexicon;
mod markdown;
mod note;
mod prose;
mod reversal;
mod session;
mod survival;
mod title;
mod turn;

pub use note::{NOTHING, note};
pub use reversal::LaterTurns;
pub use session::{DerivedSession, derive};

#[cfg(test)]
mod tests;
