//! What agents were shown of the memory, and what they opened.
//!
//! A receipt is an event like others: a hook writes it, the worker takes it in. So what a
//! session was shown lately may still be in the queue or the spool; a hook looks there too.

use rusqlite::named_params;

use super::Store;
use crate::model::{Millis, Receipt, Shown};
use crate::search::Filter;
use crate::text;

/// That an item was shown, or opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownItem {
    pub item: i64,
    /// Its first line; none if it is forgotten since.
    pub title: Option<String>,
    pub session: String,
    pub shown: Shown,
    /// What brought it up.
    pub because: String,
    pub at: Millis,
    /// Whether the agent opened it later in the same session.
    pub opened: bool,
}

impl ShownItem {
    /// The agent asked for it, rather than being told.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.shown == Shown::Opened
    }
}

impl Store {
    /// A session's receipts that were taken in.
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

    /// What was shown, the newest first. Of the filter, projects, session, since and until
    /// apply; one item alone if it is given.
    pub fn receipts(
        &self,
        filter: &Filter,
        item: Option<i64>,
        limit: u32,
    ) -> rusqlite::Result<Vec<ShownItem>> {
        let projects = filter.projects.as_ref();
        let projects = projects.map(|it| serde_json::to_string(it).unwrap_or_default());
        let mut statement = self.connection.prepare_cached(
            "select r.item_id, r.shown, r.because, r.at, s.host_session_id as session,
                    coalesce(
                        (select title from observations where id = r.item_id),
                        (select request from summaries where id = r.item_id),
                        (select text from prompts where id = r.item_id)
                    ) as title,
                    exists (
                        select 1
                        from receipts later
                        where later.session_id = r.session_id and later.item_id = r.item_id
                          and later.shown = :opened and later.at >= r.at
                    ) as opened
             from receipts r
             join sessions s on s.id = r.session_id
             left join projects p on p.id = s.project_id
             where (:item is null or r.item_id = :item)
               and (
                   :projects is null
                   or p.name in (select value from json_each(:projects))
                   or exists (
                       select 1
                       from project_keys k
                       where k.project_id = s.project_id and k.key in (select value from json_each(:projects))
                   )
               )
               and (:session is null or substr(s.host_session_id, 1, length(:session)) = :session)
               and (:since is null or r.at >= :since)
               and (:until is null or r.at <= :until)
             order by r.at desc, r.id desc
             limit :limit",
        )?;
        let rows = statement.query_map(
            named_params! {
                ":opened": Shown::Opened,
                ":item": item,
                ":projects": projects,
                ":session": filter.session,
                ":since": filter.since,
                ":until": filter.until,
                ":limit": limit,
            },
            |row| {
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
            },
        )?;
        rows.collect()
    }
}
