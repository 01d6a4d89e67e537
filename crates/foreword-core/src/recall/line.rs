//! A line of the index, or of a reminder: one observation by its number and title.

use rusqlite::{Row, named_params};

use super::reminder::Occasion;
use super::worth;
use crate::model::{Freshness, ObservationType, Origin};
use crate::store::Store;
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub id: i64,
    pub kind: ObservationType,
    pub title: String,
    pub cost: usize,
    pub by_subagent: bool,
    pub origin: Origin,
    pub on_this_branch: bool,
    /// It touches a file that was edited according to the latest summary of the project.
    pub about_last_work: bool,
    pub superseded_by: Option<i64>,
    /// A later turn derived it again.
    pub repeated: bool,
    /// None if its files were not checked, or if unknown.
    pub freshness: Option<Freshness>,
}

impl Line {
    pub fn text(&self) -> String {
        // Derived from content that was merely read, not from anything done.
        let origin = match self.origin {
            Origin::Read => ", read",
            _ => "",
        };
        let stale = match self.freshness {
            Some(Freshness::Changed) => ", files changed since",
            Some(Freshness::Gone) => ", files gone since",
            Some(Freshness::Fresh) | None => "",
        };
        let superseded = match self.superseded_by {
            Some(by) => format!(", superseded by #{by}"),
            None => String::new(),
        };
        let title = field(&self.title, 110);
        let (id, kind, cost) = (self.id, self.kind, self.cost);
        format!("- #{id} {kind}: {title} (~{cost} tokens{origin}{stale}{superseded})\n")
    }

    /// Its worth without regard to its age.
    pub fn worth(&self) -> i64 {
        worth::sum(&worth::reasons(self, 0))
    }
}

/// The columns of a line. `:branch` and `:last_work` (paths as JSON) describe the current work.
const COLUMNS: &str = "o.id, o.type, o.title, o.origin, o.agent_id is not null as by_subagent,
    o.branch is not null and o.branch is :branch as on_this_branch,
    exists (
        select 1
        from observation_files f
        join json_each(:last_work) as edited on edited.value = f.path
        where f.observation_id = o.id
    ) as about_last_work,
    o.superseded_by, exists (select 1 from repeats where observation_id = o.id) as repeated,
    (length(o.title) + length(o.subtitle) + length(o.facts) + length(o.narrative) + 3) / 4 as cost";

/// The lines of a session's observations, the newest first.
pub(super) fn of_session(
    store: &Store,
    session: i64,
    branch: Option<&str>,
    last_work: &str,
) -> rusqlite::Result<Vec<Line>> {
    let mut statement = store.connection.prepare_cached(&format!(
        "select {COLUMNS}
         from observations o
         where o.session_id = :session
            or o.id in (select observation_id from repeats where session_id = :session)
         order by o.at desc, o.id desc
         limit 100"
    ))?;
    let parameters =
        named_params! {":session": session, ":branch": branch, ":last_work": last_work};
    statement.query_map(parameters, from_row)?.collect()
}

/// The lines of those observations that a reminder may show: of the same project, of another
/// session, and not by a subagent.
pub(crate) fn lines(
    store: &Store,
    occasion: &Occasion<'_>,
    ids: impl Iterator<Item = i64>,
) -> rusqlite::Result<Vec<Line>> {
    let ids = serde_json::to_string(&ids.collect::<Vec<_>>()).unwrap_or_default();
    let mut statement = store.connection.prepare_cached(&format!(
        "select {COLUMNS}
         from json_each(:ids) as wanted
         cross join observations o on o.id = wanted.value
         join sessions s on s.id = o.session_id
         where o.project_id = (select project_id from project_keys where key = :project)
           and s.host_session_id <> :session
           and o.agent_id is null"
    ))?;
    let rows = statement.query_map(
        named_params! {
            ":ids": ids,
            ":project": occasion.project,
            ":session": occasion.host_session_id,
            ":branch": None::<&str>,
            ":last_work": "[]",
        },
        from_row,
    )?;
    let mut lines = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    for line in &mut lines {
        line.freshness = store.freshness(line.id, occasion.root)?;
    }
    Ok(lines)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Line> {
    Ok(Line {
        id: row.get("id")?,
        kind: row.get("type")?,
        title: row.get("title")?,
        cost: row.get("cost")?,
        by_subagent: row.get("by_subagent")?,
        origin: row.get("origin")?,
        on_this_branch: row.get("on_this_branch")?,
        about_last_work: row.get("about_last_work")?,
        superseded_by: row.get("superseded_by")?,
        repeated: row.get("repeated")?,
        freshness: None,
    })
}

/// Recalled text as one line without tags, so that it cannot close the frame.
pub(super) fn field(recalled: &str, max: usize) -> String {
    let line = text::one_line(recalled);
    text::without_tags(&text::shorten(&line, max))
}
