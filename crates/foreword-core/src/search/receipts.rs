//! Lists the items that agents were shown, and those that they opened.

use super::Filter;
use crate::model::{Millis, Shown};
use crate::store::Store;
use crate::text;

/// An item that was shown to an agent, or that it opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownItem {
    pub item: i64,
    /// Its first line; none if it was forgotten since.
    pub title: Option<String>,
    pub session: String,
    pub shown: Shown,
    /// Why it was shown: a file, or words of the prompt.
    pub because: String,
    pub at: Millis,
    /// Whether the agent opened it later in the same session.
    pub opened: bool,
}

impl ShownItem {
    /// Whether the agent opened it, rather than being shown it.
    pub fn is_opening(&self) -> bool {
        self.shown == Shown::Opened
    }
}

impl Store {
    /// The items that were shown or opened, the newest first; only `item` if it is given. Of the
    /// filter, only projects, session, since and until apply.
    pub fn receipts(
        &self,
        filter: &Filter,
        item: Option<i64>,
        limit: u32,
    ) -> rusqlite::Result<Vec<ShownItem>> {
        let filter = Filter {
            session: filter.session.clone(),
            since: filter.since,
            until: filter.until,
            ..filter.only_projects()
        };
        let mut clauses = filter.clauses();
        clauses.add_some("t.item_id = :item", ":item", item);
        let conditions = clauses.sql();
        let sql = format!(
            "select t.item_id, t.shown, t.because, t.at, s.host_session_id as session,
                    coalesce(
                        (select title from observations where id = t.item_id),
                        (select request from summaries where id = t.item_id),
                        (select text from prompts where id = t.item_id)
                    ) as title,
                    exists (
                        select 1
                        from receipts later
                        where later.session_id = t.session_id and later.item_id = t.item_id
                          and later.shown = 'opened' and later.at >= t.at
                    ) as opened
             from receipts t
             join sessions s on s.id = t.session_id
             where {conditions}
             order by t.at desc, t.id desc
             limit {limit}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        clauses.bind(&mut statement)?;
        let rows = statement.raw_query().mapped(|row| {
            let title: Option<String> = row.get("title")?;
            Ok(ShownItem {
                item: row.get("item_id")?,
                title: title.as_deref().map(text::title),
                session: row.get("session")?,
                shown: row.get("shown")?,
                because: row.get("because")?,
                at: row.get("at")?,
                opened: row.get("opened")?,
            })
        });
        rows.collect()
    }
}
