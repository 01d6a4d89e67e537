//! Reads items as hits: titles, sessions and times, under a filter.
//!
//! `pick` reads the items of a ranking, `list` all items by date, and `timeline` the items around
//! one of them. `freshen` checks whether the files of hits have changed since, only for the hits that
//! are shown: each costs a `stat` or two. A stale hit is not hidden, since it may be the one that is
//! looked for, but its score is lower.

use rusqlite::Row;

use super::filter::{Clauses, Filter};
use super::{Hit, Sort};
use crate::db::Rows as _;
use crate::model::{Freshness, Kind, Millis};
use crate::project::Place;
use crate::store::Store;
use crate::text;

/// Each kind of item, with the same columns.
const ITEMS: [&str; 4] = [
    "select id, 'observation' as kind, session_id, prompt_id, type, title, subtitle, branch, origin, superseded_by,
            retracted, pinned_at, hidden_at, until, at
     from observations",
    "select id, 'summary' as kind, session_id, prompt_id, null as type, request as title,
            iif(completed <> '', completed, learned) as subtitle, null as branch, null as origin, null as superseded_by,
            null as retracted, null as pinned_at, null as hidden_at, null as until, at
     from summaries",
    "select id, 'prompt' as kind, session_id, id as prompt_id, null as type, text as title,
            '' as subtitle, null as branch, null as origin, null as superseded_by, null as retracted,
            null as pinned_at, null as hidden_at, null as until, at
     from prompts
     where kept",
    "select id, 'note' as kind, id as session_id, null as prompt_id, null as type, title,
            iif(exists (select 1 from sessions k where k.host_session_id = notes.session) or session is null,
                '', 'came with the project: ') || context as subtitle,
            null as branch,
            -- Somebody else's words.
            iif(exists (select 1 from sessions k where k.host_session_id = notes.session) or session is null,
                null, 'read') as origin,
            null as superseded_by, null as retracted,
            null as pinned_at, null as hidden_at, null as until, at
     from notes",
];

const COLUMNS: &str = "t.id as id, t.kind as kind, t.type as type, t.title as title, t.subtitle as subtitle, t.superseded_by as superseded_by, t.retracted as retracted, t.pinned_at is not null as pinned, t.hidden_at is not null as hidden, t.until as until, t.prompt_id as turn, t.origin as origin, t.at as at, p.name as project, s.host_session_id as session";

/// The sessions of each kind of item. A note may be of a session that is not in the memory.
const SESSIONS: [&str; 4] = [
    "sessions",
    "sessions",
    "sessions",
    "(select id, project_id, coalesce(session, '') as host_session_id, null as branch from notes)",
];

const JOINS: &str = "left join projects p on p.id = s.project_id
left join prompts q on q.id = t.prompt_id";

/// The order of a list by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    NewestFirst,
    OldestFirst,
}

/// Those of these items that pass the filter, in no order.
pub(super) fn pick(store: &Store, ids: &[i64], filter: &Filter) -> rusqlite::Result<Vec<Hit>> {
    let mut clauses = filter.clauses();
    let ids = serde_json::to_string(ids).unwrap_or_default();
    clauses.add("t.id = wanted.value", ":ids", ids);
    let sql = select("json_each(:ids) as wanted cross join", &clauses);
    read(store, &sql, &clauses)
}

/// The ids of all items that pass the filter, in no order.
pub fn ids(store: &Store, filter: &Filter) -> rusqlite::Result<Vec<i64>> {
    let clauses = filter.clauses();
    let sql = format!("select id from ({})", select("", &clauses));
    store.connection.all(&sql, &*clauses.values())
}

/// All items of these turns, which are given by their prompts.
pub(super) fn of_turns(store: &Store, prompts: &[i64]) -> rusqlite::Result<Vec<Hit>> {
    let mut clauses = Filter::default().clauses();
    let prompts = serde_json::to_string(prompts).unwrap_or_default();
    clauses.add(
        "t.prompt_id in (select value from json_each(:prompts))",
        ":prompts",
        prompts,
    );
    list(store, clauses, Order::OldestFirst, u32::MAX)
}

/// The other items of an item's turn, the oldest first.
pub fn same_turn(store: &Store, id: i64) -> rusqlite::Result<Vec<Hit>> {
    let item = pick(store, &[id], &Filter::default())?.pop();
    let turn: Vec<i64> = item.and_then(|it| it.turn).into_iter().collect();
    let mut others = of_turns(store, &turn)?;
    others.retain(|it| it.id != id);
    Ok(others)
}

/// The conditions are repeated for each kind of item, where an index applies: SQLite would
/// materialise a union before filtering it.
fn select(before: &str, clauses: &Clauses) -> String {
    let conditions = clauses.sql();
    let arms = std::array::from_fn::<_, 4, _>(|at| {
        let (items, sessions) = (ITEMS[at], SESSIONS[at]);
        format!(
            "select {COLUMNS}
             from {before} ({items}) as t
             join {sessions} s on s.id = t.session_id
             {JOINS}
             where {conditions}"
        )
    });
    arms.join("\nunion all\n")
}

/// The items that pass the filter, by date.
pub(super) fn list(
    store: &Store,
    mut clauses: Clauses,
    order: Order,
    limit: u32,
) -> rusqlite::Result<Vec<Hit>> {
    let direction = match order {
        Order::NewestFirst => "desc",
        Order::OldestFirst => "asc",
    };
    clauses.add("true", ":limit", limit);
    let sql = format!(
        "{}
         order by at {direction}, id {direction}
         limit :limit",
        select("", &clauses)
    );
    read(store, &sql, &clauses)
}

/// An item with those before and after it in its project, the oldest first.
pub fn timeline(store: &Store, id: i64, around: u32) -> rusqlite::Result<Vec<Hit>> {
    let Some(middle) = pick(store, &[id], &Filter::default())?.pop() else {
        return Ok(Vec::new());
    };
    let side = |order| {
        let mut clauses = Filter::default().clauses();
        clauses.add(
            "s.project_id is (
                 select project_id from notes where id = :id
                 union all
                 select project_id from sessions where host_session_id = :session
                 limit 1
             )",
            ":session",
            middle.session.clone(),
        );
        let beyond = match order {
            Order::NewestFirst => "(t.at, t.id) < (:at, :id)",
            Order::OldestFirst => "(t.at, t.id) > (:at, :id)",
        };
        clauses.add(beyond, ":at", middle.at);
        clauses.add("true", ":id", id);
        list(store, clauses, order, around)
    };
    let mut hits = side(Order::NewestFirst)?;
    hits.reverse();
    let after = side(Order::OldestFirst)?;
    hits.push(middle);
    hits.extend(after);
    Ok(hits)
}

fn read(store: &Store, sql: &str, clauses: &Clauses) -> rusqlite::Result<Vec<Hit>> {
    let mut statement = store.connection.prepare_cached(sql)?;
    statement.query_map(&*clauses.values(), hit)?.collect()
}

fn hit(row: &Row<'_>) -> rusqlite::Result<Hit> {
    let title: String = row.get("title")?;
    let subtitle: String = row.get("subtitle")?;
    let kind = row.get("kind")?;
    let at: Millis = row.get("at")?;
    let id = row.get("id")?;
    Ok(Hit {
        id,
        items: vec![id],
        turn: row.get("turn")?,
        turns: 1,
        kind,
        observation_type: row.get("type")?,
        title: if kind == Kind::Observation {
            title
        } else {
            text::title(&title)
        },
        subtitle: text::flat(text::first_sentence(&subtitle)),
        project: row.get("project")?,
        session: row.get("session")?,
        at,
        superseded_by: row.get("superseded_by")?,
        retracted: row.get("retracted")?,
        origin: row.get("origin")?,
        pinned: row.get("pinned")?,
        hidden: row.get("hidden")?,
        until: row.get("until")?,
        score: None,
        matched: None,
        share: 0.0,
        freshness: None,
    })
}

/// The score of a hit is multiplied by this, depending on the state of its files.
pub fn stale_factor(freshness: Option<Freshness>) -> f64 {
    match freshness {
        Some(Freshness::Changed) => 0.9,
        Some(Freshness::Gone) => 0.75,
        Some(Freshness::Fresh) | None => 1.0,
    }
}

/// Fills in the freshness of these hits, with paths resolved from `here`. If sorted by relevance,
/// stale hits move down.
pub fn freshen(store: &Store, here: &Place, sort: Sort, hits: &mut [Hit]) -> rusqlite::Result<()> {
    for hit in hits.iter_mut().filter(|it| it.kind == Kind::Observation) {
        let root = store.root_of(hit.id, here)?;
        hit.freshness = store.freshness(hit.id, root.as_deref())?;
    }
    if sort == Sort::Relevance {
        // Rows with every word come first, whatever their scores: hits are only sorted within a
        // run of falling scores.
        for falling in hits.chunk_by_mut(|a, b| a.score >= b.score) {
            for hit in &mut *falling {
                let factor = stale_factor(hit.freshness);
                hit.score = hit.score.map(|score| score * factor);
            }
            falling.sort_by(|a, b| {
                let [a, b] = [a, b].map(|it| it.score.unwrap_or_default());
                b.total_cmp(&a)
            });
        }
    }
    Ok(())
}
