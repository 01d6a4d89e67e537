//! Stores an observation, or counts it as a repeat of one that says the same, and marks what
//! it supersedes. `judge` compares two observations; this looks up which ones to compare.
//!
//! A repeat is a row of `repeats`, not an observation. It goes when its turn is derived again
//! without it. When the observation itself is withdrawn, its oldest repeat takes its place and
//! its number. `commit` and `remember` call this within their transactions, so that deriving
//! the same again leaves the same rows.

pub mod judge;

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension as _, Params, Transaction, named_params};

use super::commit::DerivedTurn;
use super::items::next_item;
use super::observations::upsert_observation;
use super::sessions::SessionRow;
use super::{json, list};
use crate::model::{Kind, Millis, Observation, Origin};
use judge::{Insight, is_repeat, superseded_ids};

/// Of the observations with the same title, or with a file in common, the newest are compared.
const COMPARED_MAX: usize = 16;
/// Other observations are looked up by this many of an observation's files.
const FILES_MAX: usize = 4;
/// Observations with a file in common are looked for among this many of the newest items, a
/// year of heavy use, so that a file which every project has stays cheap to look up.
const ITEMS_MAX: i64 = 20_000;

/// Stores an observation and returns its number: that of an older one if that says the same.
pub(super) fn keep_observation(
    tx: &Transaction<'_>,
    session: &SessionRow,
    prompt: Option<i64>,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<i64> {
    let known = known(tx, session, prompt, observation, derived)?;
    match known {
        Some((id, Difference::None)) => return Ok(id),
        Some((id, Difference::Text)) => {
            // Neither a repeat nor a mark can have changed with the title the same.
            upsert_observation(tx, id, session, prompt, observation, derived)?;
            return Ok(id);
        }
        Some((_, Difference::Title)) | None => {}
    }
    if known.is_none()
        && let Some(twin) = twin(tx, session, observation, derived)?
    {
        tx.prepare_cached(
            "insert into repeats (session_id, prompt_id, seed, observation_id, provider, events, at)
             values (:session, :prompt, :seed, :twin, :provider, :events, :at)
             on conflict do update
             set prompt_id = excluded.prompt_id, observation_id = excluded.observation_id,
                 provider = excluded.provider, events = excluded.events, at = excluded.at",
        )?
        .execute(named_params! {
            ":session": session.id,
            ":prompt": prompt,
            ":seed": observation.seed,
            ":twin": twin,
            ":provider": derived.provenance.provider,
            ":events": json(&observation.events)?,
            ":at": observation.at,
        })?;
        return Ok(twin);
    }
    tx.prepare_cached("delete from repeats where session_id = :session and seed = :seed")?
        .execute(named_params! {":session": session.id, ":seed": observation.seed})?;
    let id = match known {
        Some((id, _)) => id,
        None => next_item(tx, Kind::Observation, observation.at)?,
    };
    upsert_observation(tx, id, session, prompt, observation, derived)?;
    mark_superseded(
        tx,
        id,
        session,
        observation,
        &named_ids(observation, derived),
    )?;
    Ok(id)
}

/// How an observation that is derived again differs from the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    /// Not at all: a turn is derived again with each of its events, mostly to the same result.
    None,
    Text,
    /// Its type or title.
    Title,
}

/// The observation that is stored under the same session and seed.
fn known(
    tx: &Transaction<'_>,
    session: &SessionRow,
    prompt: Option<i64>,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<Option<(i64, Difference)>> {
    let mut statement = tx.prepare_cached(
        "select id, type = :type and title = :title as same_title,
                (prompt_id, subtitle, facts, narrative, concepts, origin, provider, model,
                 prompt_version, events, at)
                is (:prompt, :subtitle, :facts, :narrative, :concepts, :origin, :provider, :model,
                    :prompt_version, :events, :at)
                and retracted is coalesce(:retracted, retracted)
                and (select json_group_array(json_array(path, role) order by path, role)
                     from observation_files
                     where observation_id = id) = :files
                as same_text
         from observations
         where session_id = :session and seed = :seed",
    )?;
    let files = observation.files.iter();
    let files: BTreeSet<_> = files.map(|it| (&it.path, it.role.as_str())).collect();
    let parameters = named_params! {
        ":session": session.id,
        ":seed": observation.seed,
        ":type": observation.kind,
        ":title": observation.title,
        ":prompt": prompt,
        ":subtitle": observation.subtitle,
        ":facts": json(&observation.facts)?,
        ":narrative": observation.narrative,
        ":concepts": json(&observation.concepts)?,
        ":origin": observation.origin,
        ":provider": derived.provenance.provider,
        ":model": derived.provenance.model,
        ":prompt_version": derived.provenance.prompt_version,
        ":events": json(&observation.events)?,
        ":at": observation.at,
        ":retracted": observation.retracted,
        ":files": json(&files)?,
    };
    let known = statement.query_row(parameters, |row| {
        let change = match (row.get("same_title")?, row.get("same_text")?) {
            (false, _) => Difference::Title,
            (true, false) => Difference::Text,
            (true, true) => Difference::None,
        };
        Ok((row.get("id")?, change))
    });
    known.optional()
}

/// The oldest observation of the project that says the same, and was neither superseded by then
/// nor retracted.
fn twin(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<Option<i64>> {
    let files: Vec<String> = observation.files.iter().map(|it| it.path.clone()).collect();
    let this = Insight {
        kind: observation.kind,
        // The title of a remembered text is its beginning; all of it must be the same.
        title: match derived.provenance.provider == Origin::User.as_str() {
            true => &observation.narrative,
            false => &observation.title,
        },
        facts: &observation.facts,
        files: &files,
    };
    let mut statement = tx.prepare_cached(
        "select iif(o.provider = 'user', o.narrative, o.title) as title, o.facts, o.origin,
                (select json_group_array(distinct path)
                 from observation_files
                 where observation_id = o.id) as files,
                successor.at as superseded_at, o.retracted is null as holds
         from observations o
         left join observations successor on successor.id = o.superseded_by
         where o.id = :id",
    )?;
    for id in candidates(tx, session, observation, &files)? {
        let says_the_same = statement.query_row(named_params! {":id": id}, |row| {
            let title: String = row.get("title")?;
            let that = Insight {
                kind: observation.kind,
                title: &title,
                facts: &list(row, "facts")?,
                files: &list(row, "files")?,
            };
            let superseded_at: Option<Millis> = row.get("superseded_at")?;
            // Who comes back to a superseded or retracted observation decides anew.
            let stood =
                superseded_at.is_none_or(|since| since > observation.at) && row.get("holds")?;
            // The user's own words are not counted as a repeat of anybody else's.
            let weighs_less = observation.origin == Origin::User
                && row.get::<_, Origin>("origin")? != Origin::User;
            Ok(stood && !weighs_less && is_repeat(&that, &this))
        })?;
        if says_the_same {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Observations of the project and type with the same title or a file in common, oldest first.
fn candidates(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
    files: &[String],
) -> rusqlite::Result<BTreeSet<i64>> {
    let mut by_title = tx.prepare_cached(
        "select id
         from observations
         where project_id = :project and type = :type and lower(title) = lower(:title)
         order by id desc
         limit :max",
    )?;
    let mut by_file = tx.prepare_cached(
        "select o.id
         from observation_files f
         cross join observations o on o.id = f.observation_id
         where f.path = :path
           and f.observation_id > (select ifnull(max(id), 0) from items) - :items
           and o.project_id = :project
           and o.type = :type
         order by f.observation_id desc
         limit :max",
    )?;
    let (project, kind, max) = (session.project_id, observation.kind, COMPARED_MAX);
    let title = &observation.title;
    let parameters =
        named_params! {":project": project, ":type": kind, ":title": title, ":max": max};
    let rows = by_title.query_map(parameters, |row| row.get(0))?;
    let mut ids = rows.collect::<rusqlite::Result<BTreeSet<i64>>>()?;
    for path in files.iter().take(FILES_MAX) {
        let parameters = named_params! {
            ":path": path, ":items": ITEMS_MAX, ":project": project, ":type": kind, ":max": max,
        };
        let rows = by_file.query_map(parameters, |row| row.get(0))?;
        ids.extend(rows.collect::<rusqlite::Result<Vec<i64>>>()?);
    }
    Ok(ids)
}

/// The older observations that this one names as superseded. Only a text that was remembered
/// outright is read for them: `supersedes #12` in a commit message is about a pull request.
fn named_ids(observation: &Observation, derived: &DerivedTurn) -> Vec<i64> {
    match derived.provenance.provider == Origin::User.as_str() {
        true => superseded_ids(&observation.narrative),
        false => Vec::new(),
    }
}

/// Marks the observations of the project that this one names, and no others.
fn mark_superseded(
    tx: &Transaction<'_>,
    id: i64,
    session: &SessionRow,
    observation: &Observation,
    named: &[i64],
) -> rusqlite::Result<()> {
    tx.prepare_cached("update observations set superseded_by = null where superseded_by = :id")?
        .execute(named_params! {":id": id})?;
    tx.prepare_cached(
        "update observations
         set superseded_by = :by
         where id in (select value from json_each(:named))
           and id <> :by
           and project_id = :project
           and superseded_by is null
           and (origin <> 'user' or :may_overrule_user)",
    )?
    .execute(named_params! {
        ":named": json(&named)?,
        ":by": id,
        ":project": session.project_id,
        // A text that was merely read does not overrule the user.
        ":may_overrule_user": observation.origin <= Origin::Agent,
    })?;
    Ok(())
}

/// Deletes the repeats and observations that a condition selects. An observation that has a
/// repeat is not deleted: it becomes that of the oldest repeat, and keeps its number.
pub(super) fn withdraw<P: Params + Copy>(
    tx: &Transaction<'_>,
    outdated: &str,
    parameters: P,
) -> rusqlite::Result<()> {
    tx.execute(&format!("delete from repeats where {outdated}"), parameters)?;
    let handed_over = tx.execute(
        &format!(
            "update observations
             set (session_id, prompt_id, seed, provider, events, at) = (
                 select session_id, prompt_id, seed, provider, events, at
                 from repeats
                 where observation_id = observations.id
                 order by at, session_id, seed
                 limit 1
             )
             where {outdated} and exists (select 1 from repeats where observation_id = observations.id)"
        ),
        parameters,
    )?;
    if handed_over > 0 {
        tx.execute(
            "delete from repeats
             where exists (
                 select 1
                 from observations o
                 where o.session_id = repeats.session_id and o.seed = repeats.seed
             )",
            [],
        )?;
    }
    tx.execute(
        &format!("delete from observations where {outdated}"),
        parameters,
    )?;
    Ok(())
}
