//! The table `observations`: writes an observation, or counts it as a repeat of one that says the
//! same, and marks what it supersedes. `kin` compares two observations; this looks up which ones to
//! compare. No other file knows all columns of the table.
//!
//! A repeat is a row of `repeats`, not an observation. It goes when its turn is derived again
//! without it. When the observation itself is withdrawn, its oldest repeat takes its place and
//! its number. `commit` and `remember` call this within their transactions, so that deriving
//! the same again leaves the same rows. An observation that a person changed by hand (`hands`) is
//! left as it is.

use std::collections::BTreeSet;

use rusqlite::{Connection, Params, Transaction, named_params};
use serde::Deserialize;

use super::commit::DerivedTurn;
use super::kin::{Insight, is_repeat, superseded_ids};
use super::sessions::SessionRow;
use super::{ObservationItem, Store, json, next_item};
use crate::db::Rows as _;
use crate::model::{Kind, Millis, Observation, Origin, TouchedFile};

/// Of the observations with the same title, or with a file in common, the newest are compared.
const COMPARED_MAX: usize = 16;
/// Other observations are looked up by this many of an observation's files.
const FILES_MAX: usize = 4;
/// Observations with a file in common are looked for among this many of the newest items, a
/// year of heavy use, so that a file which every project has stays cheap to look up.
const ITEMS_MAX: i64 = 20_000;

/// SQL: a person edited, pinned, hid, limited or judged this observation. Then the worker leaves it
/// as it is.
pub(super) const TOUCHED: &str = "(pinned_at is not null or hidden_at is not null
    or edited_at is not null or until is not null
    or id in (select a from judged union all select b from judged))";

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
            // With the same title it neither becomes a repeat of another nor supersedes others.
            upsert_observation(tx, id, session, prompt, observation, derived)?;
            return Ok(id);
        }
        Some((_, Difference::Title)) | None => {}
    }
    if known.is_none()
        && let Some(twin) = twin(tx, session, observation, derived)?
    {
        tx.run(
            "insert into repeats (session_id, prompt_id, seed, observation_id, provider, events, at)
             values (:session, :prompt, :seed, :twin, :provider, :events, :at)
             on conflict do update
             set prompt_id = excluded.prompt_id, observation_id = excluded.observation_id,
                 provider = excluded.provider, events = excluded.events, at = excluded.at",
            named_params! {
                ":session": session.id,
                ":prompt": prompt,
                ":seed": observation.seed,
                ":twin": twin,
                ":provider": derived.provenance.provider,
                ":events": json(&observation.events)?,
                ":at": observation.at,
            },
        )?;
        return Ok(twin);
    }
    tx.run(
        "delete from repeats where session_id = :session and seed = :seed",
        named_params! {":session": session.id, ":seed": observation.seed},
    )?;
    let id = match known {
        Some((id, _)) => id,
        None => next_item(tx, Kind::Observation, observation.at)?,
    };
    upsert_observation(tx, id, session, prompt, observation, derived)?;
    mark_superseded(tx, id, session, observation, derived)?;
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
    let files = observation.files.iter();
    let files: BTreeSet<_> = files.map(|it| (&it.path, it.role.as_str())).collect();
    let known: Option<(i64, bool, bool)> = tx.first(
        "select id, type = :type and title = :title as same_title,
                (prompt_id, subtitle, facts, fact_origins, narrative, concepts, origin, provider,
                 model, prompt_version, events, at)
                is (:prompt, :subtitle, :facts, :fact_origins, :narrative, :concepts, :origin,
                    :provider, :model, :prompt_version, :events, :at)
                and retracted is coalesce(:retracted, retracted)
                and (select json_group_array(json_array(path, role) order by path, role)
                     from observation_files
                     where observation_id = id) = :files
                as same_text
         from observations
         where session_id = :session and seed = :seed",
        named_params! {
        ":session": session.id,
        ":seed": observation.seed,
        ":type": observation.kind,
        ":title": observation.title,
        ":prompt": prompt,
        ":subtitle": observation.subtitle,
        ":facts": json(&observation.facts)?,
        ":fact_origins": json(&observation.fact_origins)?,
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
        },
    )?;
    Ok(known.map(|(id, same_title, same_text)| {
        let difference = match (same_title, same_text) {
            (false, _) => Difference::Title,
            (true, false) => Difference::Text,
            (true, true) => Difference::None,
        };
        (id, difference)
    }))
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
    for id in candidates(tx, session, observation, &files)? {
        let other: Candidate = tx.one(
            "select iif(o.provider = 'user', o.narrative, o.title) as title, o.facts, o.origin,
                    (select json_group_array(distinct path)
                     from observation_files
                     where observation_id = o.id) as files,
                    successor.at as superseded_at, o.retracted is null as holds
             from observations o
             left join observations successor on successor.id = o.superseded_by
             where o.id = :id",
            named_params! {":id": id},
        )?;
        let that = Insight {
            kind: observation.kind,
            title: &other.title,
            facts: &other.facts,
            files: &other.files,
        };
        // To say again what was superseded or retracted before is new, not a repeat.
        let stood = other.holds && other.superseded_at.is_none_or(|at| at > observation.at);
        // The user's own words are not counted as a repeat of anybody else's.
        let weighs_less = observation.origin == Origin::User && other.origin != Origin::User;
        if stood && !weighs_less && is_repeat(&that, &this) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// An observation that may say the same as a new one.
#[derive(Deserialize)]
struct Candidate {
    title: String,
    facts: Vec<String>,
    origin: Origin,
    files: Vec<String>,
    superseded_at: Option<Millis>,
    holds: bool,
}

/// Observations of the project and type with the same title or a file in common, oldest first.
fn candidates(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
    files: &[String],
) -> rusqlite::Result<BTreeSet<i64>> {
    let by_title = tx.all(
        "select id
         from observations
         where project_id = :project and type = :type and lower(title) = lower(:title)
         order by id desc
         limit :max",
        named_params! {
            ":project": session.project_id,
            ":type": observation.kind,
            ":title": observation.title,
            ":max": COMPARED_MAX,
        },
    )?;
    let mut ids: BTreeSet<i64> = by_title.into_iter().collect();
    for path in files.iter().take(FILES_MAX) {
        ids.extend(tx.all::<i64>(
            "select o.id
             from observation_files f
             cross join observations o on o.id = f.observation_id
             where f.path = :path
               and f.observation_id > (select ifnull(max(id), 0) from items) - :items
               and o.project_id = :project
               and o.type = :type
             order by f.observation_id desc
             limit :max",
            named_params! {
                ":path": path,
                ":items": ITEMS_MAX,
                ":project": session.project_id,
                ":type": observation.kind,
                ":max": COMPARED_MAX,
            },
        )?);
    }
    Ok(ids)
}

/// Marks the observations of the project that this one names as superseded, and no others. Only a
/// text that was remembered outright is read for them: `supersedes #12` in a commit message is about
/// a pull request.
fn mark_superseded(
    tx: &Transaction<'_>,
    id: i64,
    session: &SessionRow,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<()> {
    let named = match derived.provenance.provider == Origin::User.as_str() {
        true => superseded_ids(&observation.narrative),
        false => Vec::new(),
    };
    tx.run(
        "update observations
         set superseded_by = null
         where superseded_by = :id
           and id not in (select b from judged where a = :id and verdict = 'supersedes')",
        named_params! {":id": id},
    )?;
    tx.run(
        "update observations
         set superseded_by = :by
         where id in (select value from json_each(:named))
           and id <> :by
           and project_id = :project
           and superseded_by is null
           and (origin <> 'user' or :may_overrule_user)",
        named_params! {
            ":named": json(&named)?,
            ":by": id,
            ":project": session.project_id,
            // A text that was merely read does not overrule the user.
            ":may_overrule_user": observation.origin <= Origin::Agent,
        },
    )?;
    Ok(())
}

/// Deletes the repeats and observations that a condition selects, but none that a person changed. An
/// observation that has a repeat is not deleted: it becomes that of the oldest repeat, and keeps its
/// number.
pub(super) fn withdraw<P: Params + Copy>(
    tx: &Transaction<'_>,
    outdated: &str,
    parameters: P,
) -> rusqlite::Result<()> {
    let repeats = format!(
        "delete from repeats
         where {outdated}
           and not exists (
               select 1 from observations o where o.id = repeats.observation_id and {TOUCHED}
           )"
    );
    tx.execute(&repeats, parameters)?;
    let outdated = &format!("{outdated} and not {TOUCHED}");
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

/// Writes an observation under its number.
pub(super) fn upsert_observation(
    tx: &Transaction<'_>,
    id: i64,
    session: &SessionRow,
    prompt: Option<i64>,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<()> {
    let last = derived
        .turn
        .events
        .iter()
        .rev()
        .find(|event| observation.events.contains(&event.id));
    tx.run(
        r#"insert into observations
               (id, session_id, project_id, prompt_id, seed, type, title, subtitle, facts, fact_origins,
                narrative, concepts,
                origin, agent_id, branch, "commit", provider, model, prompt_version, events, at, retracted)
           values
               (:id, :session, :project, :prompt, :seed, :type, :title, :subtitle, :facts, :fact_origins,
                :narrative, :concepts,
                :origin, :agent_id, :branch, :commit, :provider, :model, :prompt_version, :events, :at, :retracted)
           on conflict (id) do update
           set prompt_id = excluded.prompt_id, type = excluded.type, title = excluded.title,
               subtitle = excluded.subtitle, facts = excluded.facts, fact_origins = excluded.fact_origins,
               narrative = excluded.narrative,
               concepts = excluded.concepts, origin = excluded.origin, agent_id = excluded.agent_id,
               branch = excluded.branch, "commit" = excluded."commit", provider = excluded.provider,
               model = excluded.model, prompt_version = excluded.prompt_version, events = excluded.events,
               at = excluded.at,
               -- A model may have retracted it, which the same observation derived again cannot know.
               retracted = coalesce(excluded.retracted, iif(title = excluded.title, retracted, null))"#,
        named_params! {
        ":id": id,
        ":session": session.id,
        ":project": session.project_id,
        ":prompt": prompt,
        ":seed": observation.seed,
        ":type": observation.kind,
        ":title": observation.title,
        ":subtitle": observation.subtitle,
        ":facts": json(&observation.facts)?,
        ":fact_origins": json(&observation.fact_origins)?,
        ":narrative": observation.narrative,
        ":concepts": json(&observation.concepts)?,
        ":origin": observation.origin,
        ":agent_id": observation.agent_id,
        ":branch": last.and_then(|event| event.branch.as_deref()),
        ":commit": last.and_then(|event| event.commit.as_deref()),
        ":provider": derived.provenance.provider,
        ":model": derived.provenance.model,
        ":prompt_version": derived.provenance.prompt_version,
        ":events": json(&observation.events)?,
        ":at": observation.at,
        ":retracted": observation.retracted,
        },
    )?;
    set_files(tx, id, &observation.files)?;
    set_concepts(tx, id, &observation.concepts)
}

/// Replaces the files of an observation.
pub(crate) fn set_files(tx: &Connection, id: i64, files: &[TouchedFile]) -> rusqlite::Result<()> {
    let delete = "delete from observation_files where observation_id = :id";
    tx.run(delete, named_params! {":id": id})?;
    for file in files {
        tx.run(
            "insert into observation_files (observation_id, path, role, size, mtime, hash)
             values (:id, :path, :role, :size, :mtime, :hash)
             on conflict do nothing",
            named_params! {
            ":id": id,
            ":path": file.path,
            ":role": file.role,
            ":size": file.size.and_then(|size| i64::try_from(size).ok()),
            ":mtime": file.mtime,
            ":hash": file.hash,
            },
        )?;
    }
    Ok(())
}

/// Replaces the rows by which an observation is found by its concepts.
pub(crate) fn set_concepts(tx: &Connection, id: i64, concepts: &[String]) -> rusqlite::Result<()> {
    let delete = "delete from observation_concepts where observation_id = :id";
    tx.run(delete, named_params! {":id": id})?;
    for concept in concepts {
        tx.run(
            "insert into observation_concepts (observation_id, concept)
             values (:id, :concept)
             on conflict do nothing",
            named_params! {":id": id, ":concept": concept},
        )?;
    }
    Ok(())
}

impl Store {
    pub(super) fn observation(&self, id: i64) -> rusqlite::Result<ObservationItem> {
        let mut item: ObservationItem = self.connection.one(
            "select o.*,
                    1 + (select count(*) from repeats where observation_id = o.id) as times,
                    (select json_group_array(path order by path) from observation_files
                     where observation_id = o.id and role = 'read') as files_read,
                    (select json_group_array(path order by path) from observation_files
                     where observation_id = o.id and role = 'modified') as files_modified,
                    (select json_group_array(id order by id) from observations
                     where superseded_by = o.id) as supersedes
             from observations o
             where o.id = :id",
            named_params! {":id": id},
        )?;
        item.fact_origins.resize(item.facts.len(), item.origin);
        Ok(item)
    }
}

/// Makes an observation that the agent wrote by `remember` one of the turn in which it did. The server
/// that stored it knew neither the turn nor, after the user cleared the session, the session.
pub(super) fn give_to_turn(
    tx: &Transaction<'_>,
    id: i64,
    session: &SessionRow,
    prompt: i64,
) -> rusqlite::Result<()> {
    tx.execute(
        "update or ignore observations
         set session_id = :session, prompt_id = :prompt
         where id = :id and provider = :provider and prompt_id is null",
        named_params! {
            ":id": id,
            ":session": session.id,
            ":prompt": prompt,
            ":provider": Origin::Agent.to_string(),
        },
    )?;
    Ok(())
}
