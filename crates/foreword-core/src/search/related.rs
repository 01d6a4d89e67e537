//! Finds related observations: of other sessions of the same project, with the same files or
//! concepts, or close in meaning if there are vectors.
//!
//! A shared file counts more than a shared concept, and most if both observations changed it. One
//! shared concept alone is not enough: "testing" is everywhere.

use rusqlite::named_params;
use serde::{Deserialize, Serialize};

use super::vectors::Vectors;
use crate::db::Rows as _;
use crate::model::ObservationType;
use crate::store::Store;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    pub id: i64,
    pub r#type: ObservationType,
    pub title: String,
    /// `same file src/a.rs`, `concepts auth, jwt`
    pub why: String,
}

/// The least cosine of two observations that are close in meaning.
const CLOSE: f32 = 0.55;
/// The least cosine of two observations with nearly the same content. They are not merged, since
/// two tests that fail in the same way are two observations.
const NEARLY_THE_SAME: f32 = 0.9;
/// How many of the nearest vectors are compared.
const NEAREST: usize = 60;

/// The most related observations that are returned.
const RELATED_MAX: usize = 5;

/// Only this many of the latest items are compared, since half of all may share a common concept.
const LATEST: i64 = 20_000;

impl Store {
    /// The five observations of other sessions that have most in common with this one, the best first.
    pub fn related(&self, id: i64) -> rusqlite::Result<Vec<Related>> {
        let rows: Vec<Shared> = self.connection.all(
            "with shared (id, file, concept, points) as (
                 select theirs.observation_id, theirs.path, null,
                        max(iif(ours.role = 'modified' and theirs.role = 'modified', 6, 2))
                 from observation_files ours
                 join observation_files theirs on theirs.path = ours.path
                 where ours.observation_id = :id
                   and theirs.observation_id > (select max(id) from items) - :latest
                 group by theirs.observation_id, theirs.path
                 union all
                 select theirs.observation_id, null, theirs.concept, 1
                 from observation_concepts ours
                 join observation_concepts theirs on theirs.concept = ours.concept
                 where ours.observation_id = :id
                   and theirs.observation_id > (select max(id) from items) - :latest
             )
             select o.id, o.type, o.title,
                    json_group_array(file order by file) filter (where file is not null) as files,
                    json_group_array(concept order by concept) filter (where concept is not null) as concepts
             from shared
             join observations o on o.id = shared.id
             join observations this on this.id = :id
             where o.project_id is this.project_id and o.session_id <> this.session_id
             group by o.id
             having sum(points) >= 2
             order by sum(points) desc, o.id desc
             limit 5",
            named_params! {":id": id, ":latest": LATEST},
        )?;
        Ok(rows.into_iter().map(Shared::related).collect())
    }

    /// `related`, with observations that are close in meaning; those with nearly the same content
    /// come first.
    pub fn related_by_meaning(&self, id: i64, vectors: &Vectors) -> rusqlite::Result<Vec<Related>> {
        let mut related = self.related(id)?;
        let Some(question) = vectors.of(id) else {
            return Ok(related);
        };
        let mut same = 0;
        for (other, cosine) in vectors.nearest(&question, NEAREST) {
            let is_same = cosine >= NEARLY_THE_SAME;
            let known = related.iter().position(|it| it.id == other);
            let is_enough = !is_same && (known.is_some() || related.len() >= RELATED_MAX);
            if other == id || cosine < CLOSE || is_enough || known.is_some_and(|at| at < same) {
                continue;
            }
            let why = if is_same {
                "nearly the same"
            } else {
                "close in meaning"
            };
            if let Some(at) = known {
                related.remove(at);
            }
            let found: Option<Related> = self.connection.first(
                "select o.id, o.type, o.title, :why as why
                 from observations o
                 join observations this on this.id = :id
                 where o.id = :other and o.project_id is this.project_id
                   and o.session_id <> this.session_id",
                named_params! {":id": id, ":other": other, ":why": why},
            )?;
            if let Some(found) = found {
                let at = if is_same { same } else { related.len() };
                same += usize::from(is_same);
                related.insert(at, found);
            }
        }
        related.truncate(RELATED_MAX);
        Ok(related)
    }
}

/// An observation, and the files and concepts that it shares with another.
#[derive(Deserialize)]
struct Shared {
    id: i64,
    r#type: ObservationType,
    title: String,
    files: Vec<String>,
    concepts: Vec<String>,
}

impl Shared {
    fn related(self) -> Related {
        let files = match self.files.as_slice() {
            [] => None,
            [file] => Some(format!("same file {file}")),
            [file, others @ ..] => Some(format!("same file {file} and {} more", others.len())),
        };
        let concepts = match self.concepts.as_slice() {
            [] => None,
            [concept] => Some(format!("concept {concept}")),
            concepts => Some(format!("concepts {}", concepts.join(", "))),
        };
        let why: Vec<_> = files.into_iter().chain(concepts).collect();
        Related {
            id: self.id,
            r#type: self.r#type,
            title: self.title,
            why: why.join("; "),
        }
    }
}
