//! The texts that an agent is shown without asking: the `index` at the start of a session, and a
//! `reminder` beside a prompt or a file. `line` reads and formats one observation, `worth` scores
//! which come first, `freshness` checks whether their files have changed, and `page` fills the
//! index up to its budget. `digest` is the account of a session that a model is given,
//! `bill` that of the calls to models that a user is given.

pub mod bill;
pub mod digest;
pub mod freshness;
pub mod index;
mod line;
mod page;
pub mod reminder;
mod worth;
