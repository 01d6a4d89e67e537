//! The projects in the memory: list, rename, merge and move them.
//!
//! A project is identified by its keys, which `crate::project` derives; its name is for people.
//! Merging moves everything over and leaves the old keys pointing at the new project, so that the
//! next session there is shown the merged memory.

use std::path::PathBuf;

use rusqlite::{OptionalExtension as _, Transaction, named_params};

use super::{Store, list};
use crate::model::Millis;
use crate::project;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: i64,
    pub name: String,
    pub keys: Vec<String>,
    pub sessions: u64,
    pub observations: u64,
    pub last_event_at: Option<Millis>,
}

impl Store {
    /// All projects, the one used last first.
    pub fn projects(&self) -> rusqlite::Result<Vec<Project>> {
        let mut statement = self.connection.prepare_cached(
            "select p.id, p.name,
                    (select json_group_array(key order by key) from project_keys k where k.project_id = p.id) as keys,
                    (select count(*) from sessions s where s.project_id = p.id) as sessions,
                    (select count(*) from observations o where o.project_id = p.id) as observations,
                    (select max(last_event_at) from sessions s where s.project_id = p.id) as last_event_at
             from projects p
             order by last_event_at desc, p.id",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(Project {
                id: row.get("id")?,
                name: row.get("name")?,
                keys: list(row, "keys")?,
                sessions: row.get("sessions")?,
                observations: row.get("observations")?,
                last_event_at: row.get("last_event_at")?,
            })
        })?;
        rows.collect()
    }

    /// The working trees of sessions, the latest first.
    pub fn roots(&self) -> rusqlite::Result<Vec<PathBuf>> {
        let mut statement = self.connection.prepare_cached(
            "select root
             from sessions
             where root is not null
             group by root
             order by max(id) desc
             limit 50",
        )?;
        let roots = statement.query_map([], |row| row.get::<_, String>("root"))?;
        roots.map(|root| root.map(PathBuf::from)).collect()
    }

    /// The first of these names or keys that no project has.
    pub fn unknown_project(&self, projects: &[String]) -> rusqlite::Result<Option<String>> {
        let mut known = self.connection.prepare_cached(
            "select exists (select 1 from projects where name = :project)
                 or exists (select 1 from project_keys where key = :project)",
        )?;
        for project in projects {
            if !known.query_row(named_params! {":project": project}, |row| row.get(0))? {
                return Ok(Some(project.clone()));
            }
        }
        Ok(None)
    }

    pub fn rename_project(&self, id: i64, name: &str) -> rusqlite::Result<()> {
        self.connection.execute(
            "update projects set name = :name where id = :id",
            named_params! {":name": name, ":id": id},
        )?;
        Ok(())
    }

    /// Moves everything of project `from`, and its keys, to project `into`, and deletes `from`.
    pub fn merge_projects(&mut self, from: i64, into: i64) -> rusqlite::Result<()> {
        let tx = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for table in ["project_keys", "sessions", "observations", "summaries"] {
            tx.execute(
                &format!("update {table} set project_id = :into where project_id = :from"),
                named_params! {":into": into, ":from": from},
            )?;
        }
        tx.execute(
            "delete from projects where id = :from",
            named_params! {":from": from},
        )?;
        tx.commit()
    }

    /// Adds a key to a project, for a repository that was moved or got a remote.
    pub fn add_project_key(&self, id: i64, key: &str) -> rusqlite::Result<()> {
        self.connection.execute(
            "insert into project_keys (key, project_id) values (:key, :id)",
            named_params! {":key": key, ":id": id},
        )?;
        Ok(())
    }
}

/// The id of the project with this key; creates the project if there is none.
pub(crate) fn upsert_project(
    tx: &Transaction<'_>,
    key: &str,
    now: Millis,
) -> rusqlite::Result<i64> {
    let known = tx
        .prepare_cached("select project_id from project_keys where key = :key")?
        .query_row(named_params! {":key": key}, |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    let id = tx.query_row(
        "insert into projects (name, created_at) values (:name, :now) returning id",
        named_params! {":name": project::name(key), ":now": now},
        |row| row.get(0),
    )?;
    tx.execute(
        "insert into project_keys (key, project_id) values (:key, :id)",
        named_params! {":key": key, ":id": id},
    )?;
    Ok(id)
}
