//! `foreword-bench search`: the time of a search as the memory grows.
//!
//! Made-up observations (`memories`) go into a memory on disk. The same queries are then run
//! by Foreword and by plain FTS5 (`order by bm25()`, any word), in turn, so that both see
//! the same machine. Foreword's first ten hits are compared with those of FTS5.
//!
//! Only SQLite's own caches last from one query to the next: read pages and
//! prepared statements. A command and a call of the MCP server open the memory anew, so each
//! query is also run that way, with the opening included (`first`).

use std::path::PathBuf;

use anyhow::Context as _;
use foreword_core::search::{Filter, Query, Sort, search};
use foreword_core::store::Store;
use serde_json::{Value, json};

use super::database::{self, rank_as_fts5_does};
use super::memories::{self, Shape};
use super::plot::{self, Series};
use super::statistics::Rounds;
use super::{hybrid, report, server, speech};
use foreword::home::Home;

#[derive(clap::Args)]
pub struct Args {
    /// How many observations, one run for each; a million take minutes to make
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    rows: Vec<u32>,
    /// How many queries
    #[arg(long, default_value_t = 100)]
    queries: u32,
    /// How often all of them are run
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Keep the made-up memories in this folder, and use those that are there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Draw how the times grow, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Hits that are compared.
const TOP: usize = 10;
/// Few and large sessions, which are quickly made.
const SHAPE: Shape = Shape {
    prompts: 1,
    observations: 500,
};
/// The drawn series: the title, and the place of the figure in the report.
const DRAWN: [(&str, &str); 3] = [
    ("Foreword, ms", "/ms/p50"),
    ("Foreword, memory opened anew, ms", "/first_ms/p50"),
    ("FTS5 alone, ms", "/stock_ms/p50"),
];

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut sizes = Vec::new();
    for &rows in &args.rows {
        eprintln!("{rows} observations …");
        sizes.push(measure(rows, args)?);
    }
    if let Some(path) = &args.plot {
        let series = DRAWN.map(|(name, pointer)| Series {
            name,
            points: sizes
                .iter()
                .filter_map(|it| Some((it["rows"].as_f64()?, it.pointer(pointer)?.as_f64()?)))
                .collect(),
        });
        let title = "one query by words, by observations";
        plot::write(path, title, "observations", series.iter(), &[])?;
    }
    let report = json!({"queries": args.queries, "rounds": args.rounds, "sizes": sizes});
    report::print("search", report, args.json);
    Ok(())
}

fn measure(rows: u32, args: &Args) -> anyhow::Result<Value> {
    let dir = tempfile::Builder::new()
        .prefix("foreword-bench-")
        .tempdir()?;
    let home = match &args.keep {
        Some(keep) => Home::at(keep.join(rows.to_string())),
        None => Home::at(dir.path()),
    };
    if !home.memory().exists() {
        memories::fill(&home, "/bench", rows, SHAPE)?;
    }
    // A worker merges the full text when it is idle.
    Store::open(&home.memory(), &home.backups())?.merge_texts()?;
    let open = || -> anyhow::Result<Store> {
        Store::look(&home.memory())?.context("the memory that was made is gone")
    };
    let ask = |store: &Store, words: &str| -> anyhow::Result<Vec<i64>> {
        let found = search(store, &query(words))?;
        Ok(found.hits.iter().map(|hit| hit.id).collect())
    };

    let store = open()?;
    let memory = database::look(&home.memory())?;
    let queries = speech::queries(args.queries);
    let [mut ours, mut first, mut stock] = [const { Rounds(Vec::new()) }; 3];
    for _ in 0..args.rounds {
        for side in [&mut ours, &mut first, &mut stock] {
            side.0.push(Vec::new());
        }
        for words in &queries {
            ours.add(|| ask(&store, words))?;
            stock.add(|| Ok(rank_as_fts5_does(&memory, words, TOP as u32)?))?;
            first.add(|| ask(&open()?, words))?;
        }
    }
    let (mut strict, mut with_ties) = (Vec::new(), Vec::new());
    for words in &queries {
        // Includes the rows that have the same score as the tenth.
        let truth = rank_as_fts5_does(&memory, words, TOP as u32 * 10)?;
        let (strictly, with_tied) = recall(&ask(&store, words)?, &truth);
        strict.push(strictly);
        with_ties.push(with_tied);
    }
    let mean = |parts: &[f64]| parts.iter().sum::<f64>() / parts.len() as f64;
    Ok(json!({
        "rows": rows,
        "ms": ours.percentiles(),
        "first_ms": first.percentiles(),
        "stock_ms": stock.percentiles(),
        "ratio_p50": ours.ratio(50, &stock, 50),
        "recall@10": mean(&strict),
        "recall_with_ties@10": mean(&with_ties),
        "mcp_peak_bytes": server::peak_memory(&home, &queries)?,
        "by_meaning": hybrid::measure(&home, &queries, query)?,
        "raw_ms": {"ours": ours.0, "first": first.0, "stock": stock.0},
    }))
}

fn query(words: &str) -> Query<'_> {
    Query {
        words,
        filter: Filter::default(),
        sort: Sort::Relevance,
        limit: TOP as u32,
    }
}

/// The share of FTS5's first ten that are among the hits; and the same, counting every row that
/// scores at least as much as the tenth, since FTS5 chooses among equals at will.
fn recall(hits: &[i64], truth: &[(i64, f64)]) -> (f64, f64) {
    let ten = truth.len().min(TOP);
    let Some(&(_, tenth)) = truth[..ten].last() else {
        return (1.0, 1.0);
    };
    let among = |rows: &[(i64, f64)]| rows.iter().filter(|(id, _)| hits.contains(id)).count();
    let tied = truth
        .iter()
        .take_while(|(_, score)| *score >= tenth)
        .count();
    let part = |count: usize| count as f64 / ten as f64;
    (part(among(&truth[..ten])), part(among(&truth[..tied])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_ties_with_the_tenth_counts_only_where_ties_do() {
        let mut truth: Vec<(i64, f64)> = (0..9).map(|id| (id, 5.0)).collect();
        truth.extend([(9, 2.0), (10, 2.0), (11, 1.0)]);
        let nine = |last| (0..9).chain([last]).collect::<Vec<i64>>();
        assert_eq!(recall(&nine(9), &truth), (1.0, 1.0));
        assert_eq!(recall(&nine(10), &truth), (0.9, 1.0));
        assert_eq!(recall(&nine(11), &truth), (0.9, 0.9));
    }
}
