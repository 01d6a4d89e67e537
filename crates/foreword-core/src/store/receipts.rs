//! Receipts: the items that a session's agent was shown, and those that it opened.
//!
//! A receipt is an event like others: a hook writes it, the worker stores it. So the latest
//! receipts of a session may still be in the queue or the spool; a hook looks there too.

use rusqlite::{Transaction, named_params};

use super::Store;
use crate::model::{Event, Receipt};

impl Store {
    /// A session's stored receipts.
    pub fn shown_in(&self, host_session_id: &str) -> rusqlite::Result<Vec<Receipt>> {
        let mut statement = self.connection.prepare_cached(
            "select r.shown, r.item_id, r.because
             from receipts r
             join sessions s on s.id = r.session_id
             where s.host_session_id = :session",
        )?;
        let rows = statement.query_map(named_params! {":session": host_session_id}, |row| {
            Ok(Receipt {
                shown: row.get(0)?,
                items: vec![(row.get(1)?, row.get(2)?)],
            })
        })?;
        rows.collect()
    }
}

/// Stores the receipt of an event. Items that do not exist are skipped: an agent may ask for any
/// number, and an item may have been forgotten since.
pub(super) fn keep_receipt(
    tx: &Transaction<'_>,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    let Some(receipt) = &event.payload.receipt else {
        return Ok(());
    };
    for (item, because) in &receipt.items {
        tx.prepare_cached(
            "insert into receipts (session_id, item_id, shown, because, at)
             select :session, id, :shown, :because, :at
             from items
             where id = :item",
        )?
        .execute(named_params! {
            ":session": session,
            ":shown": receipt.shown,
            ":because": because,
            ":at": event.at,
            ":item": item,
        })?;
    }
    Ok(())
}
