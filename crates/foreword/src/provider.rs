//! Who turns a turn into observations and a summary.
//!
//! Today there is one: `offline`, which needs no model and states only what the
//! events prove.

pub mod offline;

use crate::config::Config;

/// Which provider is used, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub name: &'static str,
    pub reason: &'static str,
}

pub fn choose(config: &Config) -> Choice {
    Choice {
        name: "offline",
        reason: if config.provider == "offline" {
            "set by provider = \"offline\""
        } else {
            "no model was chosen; offline needs none"
        },
    }
}
