//! `foreword bench search`: what finding costs as the memory grows.
//!
//! Made-up observations (`speech`) go into a memory on disk. The same queries are then asked of
//! Foreword and of FTS5 as it comes (`order by bm25()`, any word), in turn, so that both see
//! the same machine. What FTS5 says is taken as the truth that Foreword's first ten are held
//! against.
//!
//! Nothing is kept from one query to the next but what SQLite keeps by itself: read pages and
//! prepared statements. A command and a call of the MCP server open the memory anew, so each
//! query is also asked that way, with the opening counted (`first`).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use foreword_core::search::{Filter, Query, Sort, rank_as_fts5_does, search};
use foreword_core::store::Store;
use foreword_core::text;
use serde_json::{Value, json};

use super::statistics::{median, milliseconds, percentile};
use super::{hybrid, machine, plot, server, speech};
use crate::home::{self, Home};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// How many observations, one run for each; a million take minutes to make
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    rows: Vec<u32>,
    /// How many queries
    #[arg(long, default_value_t = 100)]
    queries: u32,
    /// How often all of them are asked
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

/// One size of memory: times in milliseconds, by round.
pub struct Measured {
    pub rows: u32,
    ours: Vec<Vec<f64>>,
    first: Vec<Vec<f64>>,
    stock: Vec<Vec<f64>>,
    /// How many of FTS5's first ten are among ours.
    recall: f64,
    /// The same, where a row with the score of the tenth is as good as the tenth.
    recall_with_ties: f64,
    /// The most memory that the MCP server had while it answered the queries.
    server_bytes: u64,
    /// By meaning too, if the model is installed.
    hybrid: Option<Value>,
}

const TOP: usize = 10;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut sizes = Vec::new();
    for &rows in &args.rows {
        let measured = measure(rows, args)?;
        if !args.json {
            println!("{}", line(&measured));
            if let Some(by_meaning) = &measured.hybrid {
                println!("         by meaning too: {}", summed_up(by_meaning));
            }
        }
        sizes.push(measured);
    }
    if let Some(path) = &args.plot {
        std::fs::write(path, plot::svg(&sizes))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    if args.json {
        let machine = machine::this();
        let report = json!({
            "bench": "search",
            "at": text::rfc3339(home::now()),
            "machine": {"cores": machine.cores, "cpu": machine.cpu, "kernel": machine.kernel},
            "queries": args.queries,
            "rounds": args.rounds,
            "sizes": sizes.iter().map(size_json).collect::<Value>(),
        });
        println!("{}", show::json(&report));
    }
    Ok(())
}

fn measure(rows: u32, args: &Args) -> anyhow::Result<Measured> {
    let dir = tempfile::Builder::new()
        .prefix("foreword-bench-")
        .tempdir()?;
    let home = match &args.keep {
        Some(keep) => Home::at(keep.join(rows.to_string())),
        None => Home::at(dir.path()),
    };
    let kept = home.memory().exists();
    std::fs::create_dir_all(home.dir())?;
    let mut store = Store::open(&home.memory(), &home.backups())?;
    if !kept {
        speech::fill(&mut store, rows)?;
    }
    // As a worker leaves it.
    store.merge_texts()?;
    drop(store);
    let open = || -> anyhow::Result<Store> {
        Store::look(&home.memory())?.context("the memory that was made is gone")
    };
    let ours = |store: &Store, words: &str| -> anyhow::Result<Vec<i64>> {
        let found = search(store, &query(words))?;
        Ok(found.hits.iter().map(|hit| hit.id).collect())
    };

    let store = open()?;
    let queries = speech::queries(args.queries);
    let mut measured = Measured {
        rows,
        ours: Vec::new(),
        first: Vec::new(),
        stock: Vec::new(),
        recall: 0.0,
        recall_with_ties: 0.0,
        server_bytes: server::most_memory(&home, &queries)?,
        hybrid: None,
    };
    for _ in 0..args.rounds {
        let (mut our_times, mut first_times, mut stock_times) =
            (Vec::new(), Vec::new(), Vec::new());
        for words in &queries {
            our_times.push(timed(|| ours(&store, words))?);
            stock_times.push(timed(|| Ok(rank_as_fts5_does(&store, words, TOP as u32)?))?);
            first_times.push(timed(|| ours(&open()?, words))?);
        }
        measured.ours.push(our_times);
        measured.first.push(first_times);
        measured.stock.push(stock_times);
    }
    for words in &queries {
        let hits = ours(&store, words)?;
        // Enough to see the rows that tie with the tenth.
        let truth = rank_as_fts5_does(&store, words, TOP as u32 * 10)?;
        let (strict, with_ties) = recall(&hits, &truth);
        measured.recall += strict / queries.len() as f64;
        measured.recall_with_ties += with_ties / queries.len() as f64;
    }
    measured.hybrid = hybrid::measure(&home, &queries, query)?;
    Ok(measured)
}

fn query(words: &str) -> Query<'_> {
    Query {
        words,
        filter: Filter::default(),
        sort: Sort::Relevance,
        limit: TOP as u32,
        offset: 0,
    }
}

fn timed<T>(ask: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<f64> {
    let started = Instant::now();
    let answer = ask()?;
    let took: Duration = started.elapsed();
    drop(answer);
    Ok(milliseconds(took))
}

/// How many of the first ten of the truth are among the hits; and how many of the hits score
/// there as much as the tenth. FTS5 might as well have chosen any of those.
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

impl Measured {
    pub fn ours(&self, percent: u32) -> f64 {
        over_rounds(&self.ours, percent)
    }

    pub fn first(&self, percent: u32) -> f64 {
        over_rounds(&self.first, percent)
    }

    pub fn stock(&self, percent: u32) -> f64 {
        over_rounds(&self.stock, percent)
    }

    /// Ours as a part of FTS5's, by round; the median of those.
    fn ratio(&self) -> f64 {
        let rounds = self.ours.iter().zip(&self.stock);
        let ratios: Vec<f64> = rounds
            .filter_map(|(ours, stock)| Some(percentile(ours, 50)? / percentile(stock, 50)?))
            .collect();
        median(&ratios)
    }
}

fn over_rounds(rounds: &[Vec<f64>], percent: u32) -> f64 {
    let rounds = rounds.iter();
    let times: Vec<f64> = rounds.filter_map(|it| percentile(it, percent)).collect();
    median(&times)
}

fn line(measured: &Measured) -> String {
    format!(
        "{:>8} rows  {:.2} ms (p95 {:.2}), memory opened anew {:.2} ms (p95 {:.2}), FTS5 alone {:.2} ms (p95 {:.2}), \
         ratio {:.2}, first ten as FTS5 {:.3} ({:.3} with ties), MCP server {:.1} MB",
        measured.rows,
        measured.ours(50),
        measured.ours(95),
        measured.first(50),
        measured.first(95),
        measured.stock(50),
        measured.stock(95),
        measured.ratio(),
        measured.recall,
        measured.recall_with_ties,
        measured.server_bytes as f64 / 1e6,
    )
}

fn summed_up(by_meaning: &Value) -> String {
    let number = |name: &str| {
        by_meaning
            .pointer(name)
            .and_then(Value::as_f64)
            .unwrap_or_default()
    };
    format!(
        "{:.1} ms (p95 {:.1}), as a command {:.1} ms, {} answered by words only, MCP server {:.1} MB, worker {:.1} MB",
        number("/ms/p50"),
        number("/ms/p95"),
        number("/cold_ms/p50"),
        number("/by_words_only"),
        number("/mcp_peak_bytes") / 1e6,
        number("/worker_peak_bytes") / 1e6,
    )
}

fn size_json(measured: &Measured) -> Value {
    json!({
        "rows": measured.rows,
        "ms": {"p50": measured.ours(50), "p95": measured.ours(95)},
        "first_ms": {"p50": measured.first(50), "p95": measured.first(95)},
        "stock_ms": {"p50": measured.stock(50), "p95": measured.stock(95)},
        "ratio_p50": measured.ratio(),
        "recall@10": measured.recall,
        "recall_with_ties@10": measured.recall_with_ties,
        "mcp_peak_bytes": measured.server_bytes,
        "by_meaning": measured.hybrid,
        "raw_ms": {"ours": measured.ours, "first": measured.first, "stock": measured.stock},
    })
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
