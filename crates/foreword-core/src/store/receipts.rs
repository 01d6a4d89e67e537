//! What agents were shown of the memory, and what they opened.
//!
//! A receipt is an event like others: a hook writes it, the worker takes it in. So what a
//! session was shown lately may still be in the queue or the spool; a hook looks there too.

use std::collections::HashSet;

use rusqlite::named_params;

use super::Store;
use crate::model::{Millis, Shown};

/// That an item was shown, with what brought it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownItem {
    pub item: i64,
    /// An observation's title, a prompt's text; none if it is forgotten since.
    pub title: Option<String>,
    pub session: String,
    pub shown: Shown,
    pub because: String,
    pub at: Millis,
    /// When the agent first opened it after that, in the same session.
    pub opened_at: Option<Millis>,
}

impl Store {
    /// What a session was shown beside its index, or opened.
    pub fn shown_in(&self, host_session_id: &str) -> rusqlite::Result<HashSet<i64>> {
        let mut statement = self.connection.prepare_cached(
            "select r.item_id
             from receipts r
             join sessions s on s.id = r.session_id
             where s.host_session_id = :session and r.shown <> :index",
        )?;
        let parameters = named_params! {":session": host_session_id, ":index": Shown::Index};
        let rows = statement.query_map(parameters, |row| row.get(0))?;
        rows.collect()
    }
}
