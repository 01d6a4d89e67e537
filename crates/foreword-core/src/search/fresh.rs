//! Whether what was found still fits the files that it is about.
//!
//! Only the hits that are shown are looked at: each costs a `stat` or two. What no longer fits
//! is not hidden, since it may be just what somebody is looking for, but stands lower.

use super::{Hit, Sort};
use crate::model::{Freshness, Kind};
use crate::project::Place;
use crate::store::Store;

/// The score of a hit whose files are no longer as they were is multiplied by this.
#[must_use]
pub fn stale_factor(freshness: Option<Freshness>) -> f64 {
    match freshness {
        Some(Freshness::Changed) => 0.9,
        Some(Freshness::Gone) => 0.75,
        Some(Freshness::Fresh) | None => 1.0,
    }
}

/// Fills in how the files of these hits are now, seen from `here`; by relevance, what no longer
/// fits moves down.
pub fn freshen(store: &Store, here: &Place, sort: Sort, hits: &mut [Hit]) -> rusqlite::Result<()> {
    for hit in hits.iter_mut().filter(|it| it.kind == Kind::Observation) {
        let root = store.root_of(hit.id, here)?;
        hit.freshness = store.freshness(hit.id, root.as_deref())?;
    }
    if sort == Sort::Relevance {
        // Rows with every word come first, so that scores may rise once: nobody overtakes there.
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
