//! Lists sessions (their titles, and the summaries of their prompts), and the items that their
//! agents were shown or opened.

use rusqlite::named_params;
use serde::{Deserialize, Serialize};

use super::filter::OF_PROJECTS;
use super::{Filter, Hit, Query};
use crate::db::Rows as _;
use crate::model::{Millis, Shown};
use crate::store::Store;
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTitle {
    /// The host's id.
    pub session: String,
    pub title: String,
    pub project: Option<String>,
    #[serde(
        rename(serialize = "last_event_at"),
        serialize_with = "text::serialize_time"
    )]
    pub at: Millis,
    pub observations: u64,
    pub summaries: Vec<SummaryLine>,
}

/// The request and the outcome of one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryLine {
    pub id: i64,
    pub request: String,
    pub outcome: String,
}

/// The latest sessions that have a prompt, the newest first. Only the filter's projects, session,
/// branch, since and until apply.
pub fn sessions(store: &Store, filter: &Filter, limit: u32) -> rusqlite::Result<Vec<SessionTitle>> {
    read(store, filter, None, limit)
}

/// The sessions that hits are from, in the order of their best hits, each with the summaries
/// of the prompts that its hits belong to. A query without words whose filter is only about
/// sessions lists the latest sessions instead.
pub fn sessions_of(
    store: &Store,
    query: &Query<'_>,
    hits: &[Hit],
    limit: u32,
) -> rusqlite::Result<Vec<SessionTitle>> {
    if query.words.trim().is_empty() && query.filter.is_about_sessions() {
        return sessions(store, &query.filter, limit);
    }
    let ids: Vec<_> = hits.iter().flat_map(|hit| &hit.items).collect();
    let ids = serde_json::to_string(&ids).unwrap_or_default();
    let all = u32::try_from(hits.len()).unwrap_or(u32::MAX);
    let mut sessions = read(store, &Filter::default(), Some(&ids), all)?;
    sessions.sort_by_key(|session| hits.iter().position(|hit| hit.session == session.session));
    sessions.truncate(limit as usize);
    Ok(sessions)
}

/// `hits`: ids of items as JSON; if given, only their sessions and prompts are read.
fn read(
    store: &Store,
    filter: &Filter,
    hits: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<SessionTitle>> {
    let projects = filter.projects.as_ref();
    let projects = projects.map(|it| serde_json::to_string(it).unwrap_or_default());
    let sql = format!(
        "select s.host_session_id as session, coalesce(s.title, '') as title, p.name as project,
                s.last_event_at as at,
                (select count(*) from observations o where o.session_id = s.id) as observations,
                (select json_group_array(
                            json_object('id', m.id, 'request', m.request,
                                        'outcome', iif(m.completed <> '', m.completed, m.learned))
                            order by m.at, m.id)
                 from summaries m
                 where m.session_id = s.id
                   and (
                       :hits is null
                       or m.prompt_id in (
                           select coalesce(o.prompt_id, n.prompt_id, hit.value)
                           from json_each(:hits) as hit
                           left join observations o on o.id = hit.value
                           left join summaries n on n.id = hit.value
                       )
                   )) as summaries
         from sessions s
         left join projects p on p.id = s.project_id
         where (:projects is null or {OF_PROJECTS})
           and (:session is null or substr(s.host_session_id, 1, length(:session)) = :session)
           and (:branch is null or s.branch = :branch)
           and (:since is null or s.last_event_at >= :since)
           and (:until is null or s.started_at <= :until)
           and case
               when :hits is null then exists (select 1 from prompts q where q.session_id = s.id)
               else s.id in (
                   select session_id from observations where id in (select value from json_each(:hits))
                   union
                   select session_id from summaries where id in (select value from json_each(:hits))
                   union
                   select session_id from prompts where id in (select value from json_each(:hits))
               )
           end
         order by s.last_event_at desc, s.id desc
         limit :limit"
    );
    let parameters = named_params! {
        ":projects": projects,
        ":session": filter.session,
        ":branch": filter.branch,
        ":since": filter.since,
        ":until": filter.until,
        ":hits": hits,
        ":limit": limit,
    };
    store.connection.all(&sql, parameters)
}

/// An item that was shown to an agent, or that it opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownItem {
    #[serde(rename(serialize = "id"))]
    pub item: i64,
    /// Its first line; none if it was forgotten since.
    pub title: Option<String>,
    pub session: String,
    pub shown: Shown,
    /// Why it was shown: a file, or words of the prompt.
    pub because: String,
    #[serde(serialize_with = "text::serialize_time")]
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
            "select t.item_id as item, t.shown, t.because, t.at, s.host_session_id as session,
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
        let mut shown: Vec<ShownItem> = self.connection.all(&sql, &*clauses.values())?;
        for item in &mut shown {
            item.title = item.title.as_deref().map(text::title);
        }
        Ok(shown)
    }
}
