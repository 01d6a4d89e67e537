//! Explains why the index, a search or a reminder shows, ranks or marks an item as it does.

use foreword_core::model::Freshness;
use foreword_core::recall::freshness;
use foreword_core::recall::index::{self, IndexRequest, StartReason, Weighed};
use foreword_core::search::ShownItem;
use foreword_core::search::{Filter, Hit};
use foreword_core::store::Item;

use super::Reader;
use super::embed_client::Ranking;
use super::search::{SearchRequest, search};

/// All reasons for how an item is shown, ranked and marked.
pub struct Explanation {
    pub item: Item,
    /// The item's weight in the index; none if the index of this project does not consider it.
    pub weighed: Option<Weighed>,
    pub files: Vec<(Option<Freshness>, String)>,
    pub rank: Option<Rank>,
    pub receipts: Vec<ShownItem>,
}

/// The rank of an item in a search.
pub struct Rank {
    pub id: i64,
    pub words: String,
    /// The rank from 1, and the hit; none if it was not found.
    pub place: Option<(usize, Hit)>,
    /// The score of the first hit.
    pub best_score: f64,
    /// The number of hits that were searched for the item.
    pub seen: usize,
    pub ranking: Ranking,
}

/// The most hits that are searched for the item.
const RANKS_MAX: usize = 100;
/// The most receipts that are shown.
const RECEIPTS_MAX: u32 = 10;

pub fn why(reader: &Reader, id: i64, words: &str) -> anyhow::Result<Explanation> {
    let store = reader.memory()?;
    let item = reader.item(&store, id)?;
    let root = reader.place.root.as_deref();
    let request = IndexRequest {
        asks_agent: false,
        project: reader.project(),
        host_session_id: "",
        start_reason: StartReason::Startup,
        branch: reader.place.head.branch.as_deref(),
        root,
        now: reader.now,
        unopened_kept: reader.unopened_kept(),
    };
    let index = index::index(Some(&store), &request)?.unwrap_or_default();
    let files = store.touched(id)?.into_iter();
    Ok(Explanation {
        item,
        weighed: index.weighed.into_iter().find(|line| line.id == id),
        files: files
            .map(|file| (freshness::look(root, &file), file.path))
            .collect(),
        rank: match words {
            "" => None,
            words => Some(rank(reader, id, words)?),
        },
        receipts: store.receipts(&Filter::default(), Some(id), RECEIPTS_MAX)?,
    })
}

/// Searches as `foreword search WORDS` does, page by page, until the item is found. A larger page
/// could have another order: hits whose files changed move down within their page.
fn rank(reader: &Reader, id: i64, words: &str) -> anyhow::Result<Rank> {
    let filter = Filter {
        projects: reader.project().map(|project| vec![project.to_owned()]),
        ..Filter::default()
    };
    let mut request = SearchRequest::new(words, filter);
    let mut best_score = None;
    loop {
        let answer = search(reader, &request)?;
        let mut hits = answer.found.hits;
        best_score = best_score.or_else(|| hits.first()?.score);
        let before = request.offset as usize;
        let (seen, is_last) = (before + hits.len(), hits.len() < request.limit as usize);
        let at = hits.iter().position(|hit| hit.items.contains(&id));
        let place = at.map(|at| (before + at + 1, hits.swap_remove(at)));
        if place.is_some() || is_last || seen >= RANKS_MAX {
            return Ok(Rank {
                id,
                words: words.to_owned(),
                place,
                best_score: best_score.unwrap_or_default(),
                seen,
                ranking: answer.ranking,
            });
        }
        request.offset += request.limit;
    }
}
