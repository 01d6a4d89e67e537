//! What other sessions learned about the same: observations of the same project that share files
//! or concepts.
//!
//! A shared file says more than a shared concept, and most if both changed it. One concept alone
//! says nothing: "testing" is everywhere.

use std::collections::HashMap;

use rusqlite::named_params;
use serde::Serialize;

use super::Store;
use crate::model::ObservationType;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    pub id: i64,
    #[serde(rename = "type")]
    pub kind: ObservationType,
    pub title: String,
    /// `same file src/a.rs`, `concepts auth, jwt`
    pub why: String,
}

/// What one shared thing counts. Two concepts are as good as a file that was only read.
const MODIFIED: u32 = 6;
const READ: u32 = 2;
const CONCEPT: u32 = 1;
/// Fewer points are no relation.
const LEAST: u32 = 2;
const SHOWN: usize = 5;

/// What an observation shares with another one.
#[derive(Default)]
struct Shared {
    files: Vec<String>,
    concepts: Vec<String>,
    points: u32,
}

impl Store {
    /// The observations of other sessions that have most in common with this one, the best first.
    pub fn related(&self, id: i64) -> rusqlite::Result<Vec<Related>> {
        let mut shared: HashMap<i64, Shared> = HashMap::new();
        let mut files = self.connection.prepare_cached(
            "select o.id, theirs.path, ours.role = 'modified' and theirs.role = 'modified' as modified
             from observation_files ours
             join observation_files theirs on theirs.path = ours.path
             join observations o on o.id = theirs.observation_id
             join observations this on this.id = ours.observation_id
             where this.id = :id
               and o.project_id is this.project_id
               and o.session_id <> this.session_id
             order by modified desc, o.id desc
             limit :max",
        )?;
        let mut rows = files.query(named_params! {":id": id, ":max": LOOKED_AT})?;
        while let Some(row) = rows.next()? {
            let path: String = row.get(1)?;
            let with = shared.entry(row.get(0)?).or_default();
            // A file that was read and then changed is there twice.
            if !with.files.contains(&path) {
                with.points += if row.get(2)? { MODIFIED } else { READ };
                with.files.push(path);
            }
        }
        let mut concepts = self.connection.prepare_cached(
            "select o.id, theirs.concept
             from observation_concepts ours
             join observation_concepts theirs on theirs.concept = ours.concept
             join observations o on o.id = theirs.observation_id
             join observations this on this.id = ours.observation_id
             where this.id = :id
               and o.project_id is this.project_id
               and o.session_id <> this.session_id
             order by o.id desc, theirs.concept
             limit :max",
        )?;
        let mut rows = concepts.query(named_params! {":id": id, ":max": LOOKED_AT})?;
        while let Some(row) = rows.next()? {
            let with = shared.entry(row.get(0)?).or_default();
            with.points += CONCEPT;
            with.concepts.push(row.get(1)?);
        }
        let mut best: Vec<_> = shared
            .into_iter()
            .filter(|(_, shared)| shared.points >= LEAST)
            .collect();
        best.sort_unstable_by_key(|(id, shared)| std::cmp::Reverse((shared.points, *id)));
        best.truncate(SHOWN);
        let related = best.into_iter().map(|(id, shared)| {
            self.connection.query_row(
                "select type, title from observations where id = :id",
                named_params! {":id": id},
                |row| {
                    Ok(Related {
                        id,
                        kind: row.get(0)?,
                        title: row.get(1)?,
                        why: shared.why(),
                    })
                },
            )
        });
        related.collect()
    }
}

/// Pairs that are looked at: of a file that everything touches, the latest are enough.
const LOOKED_AT: u32 = 1000;

impl Shared {
    fn why(&self) -> String {
        let mut why = Vec::new();
        match self.files.as_slice() {
            [] => {}
            [file] => why.push(format!("same file {file}")),
            [file, others @ ..] => why.push(format!("same file {file} and {} more", others.len())),
        }
        match self.concepts.as_slice() {
            [] => {}
            [concept] => why.push(format!("concept {concept}")),
            concepts => why.push(format!("concepts {}", concepts.join(", "))),
        }
        why.join("; ")
    }
}
