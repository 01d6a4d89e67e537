//! Lists sessions: their titles, and the summaries of their prompts.

use rusqlite::{Row, named_params};

use super::filter::OF_PROJECTS;
use super::{Filter, Hit, Query};
use crate::model::Millis;
use crate::store::Store;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTitle {
    /// The host's id.
    pub session: String,
    pub title: String,
    pub project: Option<String>,
    pub at: Millis,
    pub observations: u64,
    pub summaries: Vec<SummaryLine>,
}

/// The request and the outcome of one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        "select s.id, s.host_session_id as session, s.title, p.name as project, s.last_event_at as at,
                (select count(*) from observations o where o.session_id = s.id) as observations
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
    let mut statement = store.connection.prepare_cached(&sql)?;
    let rows = statement.query_map(
        named_params! {
            ":projects": projects,
            ":session": filter.session,
            ":branch": filter.branch,
            ":since": filter.since,
            ":until": filter.until,
            ":hits": hits,
            ":limit": limit,
        },
        |row| session_title(store, row, hits),
    )?;
    rows.collect()
}

fn session_title(
    store: &Store,
    row: &Row<'_>,
    hits: Option<&str>,
) -> rusqlite::Result<SessionTitle> {
    let mut statement = store.connection.prepare_cached(
        "select id, request, iif(completed <> '', completed, learned) as outcome
         from summaries
         where session_id = :session
           and (
               :hits is null
               or prompt_id in (
                   select coalesce(o.prompt_id, m.prompt_id, hit.value)
                   from json_each(:hits) as hit
                   left join observations o on o.id = hit.value
                   left join summaries m on m.id = hit.value
               )
           )
         order by at, id",
    )?;
    let session: i64 = row.get("id")?;
    let summaries =
        statement.query_map(named_params! {":session": session, ":hits": hits}, |row| {
            Ok(SummaryLine {
                id: row.get("id")?,
                request: row.get("request")?,
                outcome: row.get("outcome")?,
            })
        })?;
    Ok(SessionTitle {
        session: row.get("session")?,
        title: row.get::<_, Option<String>>("title")?.unwrap_or_default(),
        project: row.get("project")?,
        at: row.get("at")?,
        observations: row.get("observations")?,
        summaries: summaries.collect::<rusqlite::Result<_>>()?,
    })
}
