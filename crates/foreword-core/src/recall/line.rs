//! A line of the index, or of a reminder: one observation by its number and title.

use std::borrow::Cow;

use rusqlite::{Params, Row, named_params};

use super::index::IndexRequest;
use super::reminder::Occasion;
use super::worth;
use crate::db::Rows as _;
use crate::model::{Freshness, Millis, ObservationType, Origin};
use crate::store::{Store, list};
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub id: i64,
    pub kind: ObservationType,
    pub title: String,
    /// The file that the title was read in, if its words were merely read and there is only one.
    pub read_in: Option<String>,
    /// Its subtitle and its facts; the narrative if it has no facts. Those that were merely read are
    /// quotations.
    pub facts: Vec<String>,
    pub cost: usize,
    pub by_subagent: bool,
    pub origin: Origin,
    /// The user asked for it by `remember`.
    pub on_request: bool,
    pub pinned: bool,
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
        format!("- {}\n", self.entry("", true))
    }

    /// The line below a heading that says that the user laid it down.
    pub fn text_of_rule(&self) -> String {
        format!("- {}\n", self.entry("", false))
    }

    /// Number, type and title, with the tokens that reading the observation costs, and whose words it
    /// is, if it is not the agent's.
    pub fn entry(&self, after_title: &str, names_user: bool) -> String {
        let origin = match self.origin {
            Origin::User if names_user => ", by the user",
            Origin::Import => ", imported",
            _ => "",
        };
        let stale = match self.freshness {
            Some(Freshness::Changed) => ", files changed since",
            Some(Freshness::Gone) => ", files gone since",
            Some(Freshness::Fresh) | None => "",
        };
        let title = field(&self.shown_title(), 110);
        let (id, kind, cost) = (self.id, self.kind, self.cost);
        format!("#{id} {kind}: {title}{after_title} (~{cost} tokens{origin}{stale})")
    }

    /// The title, as a quotation if its words were merely read.
    fn shown_title(&self) -> Cow<'_, str> {
        match (&self.read_in, self.origin) {
            (Some(file), Origin::Read) => Cow::Owned(text::quotation(file, &self.title)),
            (None, Origin::Read) => text::as_quotation(&self.title),
            _ => Cow::Borrowed(&self.title),
        }
    }

    /// Its worth without regard to its age.
    pub fn worth(&self) -> i64 {
        worth::sum(&worth::reasons(self, 0))
    }
}

/// The columns of a line. `:branch` and `:last_work` (paths as JSON) describe the current work.
const COLUMNS: &str =
    "o.id, o.type, o.title, o.subtitle, o.origin, o.provider = 'user' as on_request,
    o.pinned_at is not null as pinned,
    iif(o.facts = '[]', json_array(o.narrative), o.facts) as facts, o.fact_origins,
    (
        select iif(count(*) = 1 and json_array_length(o.events) < 3, max(f.path), null)
        from observation_files f
        where f.observation_id = o.id and f.role = 'read'
    ) as read_in,
    o.agent_id is not null as by_subagent,
    o.branch is not null and o.branch is :branch as on_this_branch,
    exists (
        select 1
        from observation_files f
        join json_each(:last_work) as edited on edited.value = f.path
        where f.observation_id = o.id
    ) as about_last_work,
    o.superseded_by, exists (select 1 from repeats where observation_id = o.id) as repeated,
    (length(o.title) + length(o.subtitle) + length(o.facts) + length(o.narrative) + 3) / 4 as cost";

/// SQL: it may be shown unasked: it still holds at `:now`, and nobody hid it.
const SHOWN: &str = "superseded_by is null and retracted is null and hidden_at is null
    and (until is null or until >= :now)";

/// SQL: it is newer than `:opened_since`, which may be null, or was opened since then.
const IN_USE: &str = "(:opened_since is null or o.at >= :opened_since or exists (
        select 1
        from receipts r
        where r.item_id = o.id and r.shown = 'opened' and r.at >= :opened_since
    ))";

/// What the user laid down: decisions, and what `remember` was asked for. Pinned ones stand above.
const OF_USER: &str = "o.project_id = :project and o.origin = 'user' and o.pinned_at is null
    and (o.type = 'decision' or o.provider = 'user')
    and o.session_id not in (select id from sessions where host_session_id = :without_session)";

/// What the lines of an index are read for.
#[derive(Clone, Copy)]
pub(super) struct IndexLines<'a> {
    pub store: &'a Store,
    pub project_id: i64,
    /// Paths as JSON.
    pub last_work: &'a str,
    pub request: &'a IndexRequest<'a>,
}

impl IndexLines<'_> {
    /// A session's observations that still hold, the newest first.
    pub fn of_session(&self, session: i64) -> rusqlite::Result<Vec<Line>> {
        let sql = format!(
            "from observations o
             where (
                 o.session_id = :session
                 or o.id in (select observation_id from repeats where session_id = :session)
             )
               and {SHOWN} and {IN_USE}
             order by o.at desc, o.id desc
             limit 100"
        );
        self.read(
            &sql,
            named_params! {
                ":session": session,
                ":branch": self.request.branch,
                ":last_work": self.last_work,
                ":now": self.request.now,
                ":opened_since": self.opened_since(),
            },
        )
    }

    /// What somebody pinned, in the order in which it was pinned.
    pub fn pinned(&self) -> rusqlite::Result<Vec<Line>> {
        let sql = format!(
            "from observations o
             where o.project_id = :project and o.pinned_at is not null and {SHOWN}
             order by o.pinned_at"
        );
        self.read(
            &sql,
            named_params! {
                ":project": self.project_id,
                ":branch": self.request.branch,
                ":last_work": self.last_work,
                ":now": self.request.now,
            },
        )
    }

    /// Titles of a session's observations that must not be shown unasked.
    pub fn hidden_titles(&self, session: i64) -> rusqlite::Result<Vec<String>> {
        self.store.connection.all(
            "select title
             from observations
             where session_id = :session and (hidden_at is not null or until < :now)",
            named_params! {":session": session, ":now": self.request.now},
        )
    }

    /// The latest of what the user laid down.
    pub fn of_user(&self, limit: usize) -> rusqlite::Result<Vec<Line>> {
        let sql = format!(
            "from observations o
             where {OF_USER} and {SHOWN}
             order by o.at desc, o.id desc
             limit :limit"
        );
        self.read(
            &sql,
            named_params! {
                ":project": self.project_id,
                ":without_session": self.without_session(),
                ":limit": limit,
                ":branch": self.request.branch,
                ":last_work": self.last_work,
                ":now": self.request.now,
            },
        )
    }

    /// How many observations `of_user` would find without a limit.
    pub fn count_of_user(&self) -> rusqlite::Result<usize> {
        let sql = format!("select count(*) from observations o where {OF_USER} and {SHOWN}");
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        let parameters = named_params! {
            ":project": self.project_id,
            ":without_session": self.without_session(),
            ":now": self.request.now,
        };
        statement.query_row(parameters, |row| row.get(0))
    }

    /// The latest observations of each type, of whatever session.
    pub fn of_project(&self, limit_per_type: usize) -> rusqlite::Result<Vec<Line>> {
        let latest = |kind: &str| {
            format!(
                "select id from (
                     select id
                     from observations
                     where project_id = :project and type = '{kind}'
                       and {SHOWN}
                     order by at desc
                     limit :limit
                 )"
            )
        };
        let kinds = ["decision", "bugfix", "feature", "refactor", "discovery"];
        let sql = format!(
            "from observations o
             where o.id in ({})
               and o.session_id not in (
                   select id from sessions where host_session_id = :without_session
               )
               and {IN_USE}",
            kinds.map(latest).join(" union all ")
        );
        self.read(
            &sql,
            named_params! {
                ":project": self.project_id,
                ":without_session": self.without_session(),
                ":limit": limit_per_type,
                ":branch": self.request.branch,
                ":last_work": self.last_work,
                ":now": self.request.now,
                ":opened_since": self.opened_since(),
            },
        )
    }

    /// Since when an older observation must have been opened to be shown.
    fn opened_since(&self) -> Option<Millis> {
        let unopened_kept = self.request.unopened_kept?;
        Some(self.request.now - unopened_kept)
    }

    /// The session that is not part of its own index.
    fn without_session(&self) -> Option<&str> {
        let with_this = self.request.start_reason.shows_this_session();
        (!with_this).then_some(self.request.host_session_id)
    }

    fn read(&self, from: &str, parameters: impl Params) -> rusqlite::Result<Vec<Line>> {
        let sql = format!("select {COLUMNS} {from}");
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        statement.query_map(parameters, from_row)?.collect()
    }
}

/// The lines of those observations that a reminder may show: not retracted, hidden or expired, of the
/// same project, of another session, and not by a subagent.
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
           and o.agent_id is null
           and o.retracted is null
           and o.hidden_at is null
           and (o.until is null or o.until >= :now)"
    ))?;
    let rows = statement.query_map(
        named_params! {
            ":ids": ids,
            ":project": occasion.project,
            ":session": occasion.host_session_id,
            ":branch": None::<&str>,
            ":last_work": "[]",
            ":now": occasion.now,
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
    let origin: Origin = row.get("origin")?;
    let mut origins: Vec<Origin> = list(row, "fact_origins")?;
    let facts: Vec<String> = list(row, "facts")?;
    origins.resize(facts.len(), origin);
    let facts = facts.into_iter().zip(origins);
    // A subtitle is worded with the title.
    let facts = std::iter::once((row.get("subtitle")?, origin)).chain(facts);
    let facts = facts.filter(|(fact, _): &(String, Origin)| !fact.is_empty());
    let facts = facts.map(|(fact, origin)| match origin {
        Origin::Read => text::as_quotation(&fact).into_owned(),
        _ => fact,
    });
    Ok(Line {
        id: row.get("id")?,
        kind: row.get("type")?,
        title: row.get("title")?,
        read_in: row.get("read_in")?,
        facts: facts.collect(),
        cost: row.get("cost")?,
        by_subagent: row.get("by_subagent")?,
        origin,
        on_request: row.get("on_request")?,
        pinned: row.get("pinned")?,
        on_this_branch: row.get("on_this_branch")?,
        about_last_work: row.get("about_last_work")?,
        superseded_by: row.get("superseded_by")?,
        repeated: row.get("repeated")?,
        freshness: None,
    })
}

/// Recalled text as one line without tags, so that it cannot close the frame.
pub(super) fn field(recalled: &str, max: usize) -> String {
    text::shorten(&text::one_line(recalled), max).into_owned()
}
