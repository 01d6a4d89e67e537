//! Reads and writes rows of the table `observations`; no other file knows all its columns.

use rusqlite::{Transaction, named_params};

use super::commit::DerivedTurn;
use super::sessions::SessionRow;
use super::{ItemBody, Store, json, list};
use crate::model::Observation;

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
    tx.prepare_cached(
        r#"insert into observations
               (id, session_id, project_id, prompt_id, seed, type, title, subtitle, facts, narrative, concepts,
                origin, agent_id, branch, "commit", provider, model, prompt_version, events, at, retracted)
           values
               (:id, :session, :project, :prompt, :seed, :type, :title, :subtitle, :facts, :narrative, :concepts,
                :origin, :agent_id, :branch, :commit, :provider, :model, :prompt_version, :events, :at, :retracted)
           on conflict (id) do update
           set prompt_id = excluded.prompt_id, type = excluded.type, title = excluded.title,
               subtitle = excluded.subtitle, facts = excluded.facts, narrative = excluded.narrative,
               concepts = excluded.concepts, origin = excluded.origin, agent_id = excluded.agent_id,
               branch = excluded.branch, "commit" = excluded."commit", provider = excluded.provider,
               model = excluded.model, prompt_version = excluded.prompt_version, events = excluded.events,
               at = excluded.at, retracted = excluded.retracted"#,
    )?
    .execute(named_params! {
        ":id": id,
        ":session": session.id,
        ":project": session.project_id,
        ":prompt": prompt,
        ":seed": observation.seed,
        ":type": observation.kind,
        ":title": observation.title,
        ":subtitle": observation.subtitle,
        ":facts": json(&observation.facts)?,
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
    })?;
    replace_files_and_concepts(tx, id, observation)
}

fn replace_files_and_concepts(
    tx: &Transaction<'_>,
    id: i64,
    observation: &Observation,
) -> rusqlite::Result<()> {
    for table in ["observation_files", "observation_concepts"] {
        tx.prepare_cached(&format!("delete from {table} where observation_id = :id"))?
            .execute(named_params! {":id": id})?;
    }
    for file in &observation.files {
        tx.prepare_cached(
            "insert into observation_files (observation_id, path, role, size, mtime, hash)
             values (:id, :path, :role, :size, :mtime, :hash)
             on conflict do nothing",
        )?
        .execute(named_params! {
            ":id": id,
            ":path": file.path,
            ":role": file.role,
            ":size": file.size.and_then(|size| i64::try_from(size).ok()),
            ":mtime": file.mtime,
            ":hash": file.hash,
        })?;
    }
    for concept in &observation.concepts {
        tx.prepare_cached(
            "insert into observation_concepts (observation_id, concept)
             values (:id, :concept)
             on conflict do nothing",
        )?
        .execute(named_params! {":id": id, ":concept": concept})?;
    }
    Ok(())
}

impl Store {
    pub(super) fn observation(&self, id: i64) -> rusqlite::Result<ItemBody> {
        let mut statement = self.connection.prepare_cached(
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
        )?;
        statement.query_row(named_params! {":id": id}, |row| {
            Ok(ItemBody::Observation {
                r#type: row.get("type")?,
                title: row.get("title")?,
                subtitle: row.get("subtitle")?,
                facts: list(row, "facts")?,
                narrative: row.get("narrative")?,
                concepts: list(row, "concepts")?,
                files_read: list(row, "files_read")?,
                files_modified: list(row, "files_modified")?,
                origin: row.get("origin")?,
                agent_id: row.get("agent_id")?,
                branch: row.get("branch")?,
                commit: row.get("commit")?,
                provider: row.get("provider")?,
                model: row.get("model")?,
                prompt_version: row.get("prompt_version")?,
                events: list(row, "events")?,
                superseded_by: row.get("superseded_by")?,
                retracted: row.get("retracted")?,
                supersedes: list(row, "supersedes")?,
                times: row.get("times")?,
            })
        })
    }
}
