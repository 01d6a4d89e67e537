//! Checks whether the files of a hit have changed since it was recorded.
//!
//! Only the hits that are shown are checked: each costs a `stat` or two. A stale hit is not
//! hidden, since it may be the one that is looked for, but its score is lower.

use super::{Hit, Sort};
use crate::model::{Freshness, Kind};
use crate::project::Place;
use crate::store::Store;

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
