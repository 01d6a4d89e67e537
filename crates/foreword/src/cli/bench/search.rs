//! `foreword bench search`: what finding costs as the memory grows.
//!
//! Made-up observations, whose words are as unevenly spread as those of a language, go
//! into a memory on disk. The same queries are then asked of Foreword and of FTS5 as it
//! comes (`order by bm25()`, any word), in turn, so that both see the same machine. What
//! FTS5 says is taken as the truth that Foreword's first ten are held against.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use foreword_core::model::{
    Derived, Event, EventKind, Observation, ObservationType, Origin, Payload, Turn,
};
use foreword_core::search::{Filter, Query, Sort, rank_as_fts5_does, search};
use foreword_core::store::{Batch, Replaces, Store, Told};
use foreword_core::text;
use serde_json::{Value, json};
use uuid::Uuid;

use super::machine;
use super::statistics::{median, milliseconds, percentile};
use crate::home::{self, Home};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// How many observations, one run for each
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    rows: Vec<u32>,
    /// How many queries
    #[arg(long, default_value_t = 100)]
    queries: u32,
    /// How often all of them are asked
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Keep the made-up memories in this folder, and use those that are there: a million
    /// observations take minutes to make
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One size of memory: times in milliseconds, by round.
struct Measured {
    rows: u32,
    ours: Vec<Vec<f64>>,
    stock: Vec<Vec<f64>>,
    recall: f64,
}

const TOP: u32 = 10;
const VOCABULARY: usize = 20_000;
const OBSERVATIONS_PER_TURN: u32 = 500;
/// Where chance begins: for what is remembered and for what is asked.
const WRITTEN: u64 = 0x9e37_79b9_7f4a_7c15;
const ASKED: u64 = 0xd1b5_4a32_d192_ed03;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut sizes = Vec::new();
    for &rows in &args.rows {
        let measured = measure(rows, args)?;
        if !args.json {
            println!("{}", line(&measured));
        }
        sizes.push(measured);
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
    if !home.memory().exists() {
        std::fs::create_dir_all(home.dir())?;
        let mut store = Store::open(&home.memory(), &home.backups())?;
        fill(&mut store, &mut Speech::new(WRITTEN), rows)?;
    }
    let mut speech = Speech::new(ASKED);
    let store = Store::look(&home.memory())?.expect("it was just made");

    let queries: Vec<String> = (0..args.queries).map(|_| speech.words(6)).collect();
    let (mut ours, mut stock, mut recalls) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        let (mut our_times, mut stock_times) = (Vec::new(), Vec::new());
        for words in &queries {
            let query = Query {
                words,
                filter: Filter::default(),
                sort: Sort::Relevance,
                limit: TOP,
                offset: 0,
            };
            let (found, took) = timed(|| search(&store, &query))?;
            our_times.push(milliseconds(took));
            let (truth, took) = timed(|| rank_as_fts5_does(&store, words, TOP))?;
            stock_times.push(milliseconds(took));
            if round == 0 {
                let hits: Vec<i64> = found.hits.iter().map(|hit| hit.id).collect();
                let kept = truth.iter().filter(|id| hits.contains(id)).count();
                recalls.push(kept as f64 / truth.len().max(1) as f64);
            }
        }
        ours.push(our_times);
        stock.push(stock_times);
    }
    Ok(Measured {
        rows,
        ours,
        stock,
        recall: recalls.iter().sum::<f64>() / recalls.len().max(1) as f64,
    })
}

fn timed<T>(ask: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<(T, Duration)> {
    let started = Instant::now();
    let answer = ask()?;
    Ok((answer, started.elapsed()))
}

impl Measured {
    fn at(rounds: &[Vec<f64>], percent: u32) -> f64 {
        let times: Vec<f64> = rounds
            .iter()
            .filter_map(|it| percentile(it, percent))
            .collect();
        median(&times)
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

fn line(measured: &Measured) -> String {
    format!(
        "{:>8} rows  {:.2} ms (p95 {:.2}), FTS5 alone {:.2} ms (p95 {:.2}), ratio {:.2}, first ten as FTS5 {:.3}",
        measured.rows,
        Measured::at(&measured.ours, 50),
        Measured::at(&measured.ours, 95),
        Measured::at(&measured.stock, 50),
        Measured::at(&measured.stock, 95),
        measured.ratio(),
        measured.recall,
    )
}

fn size_json(measured: &Measured) -> Value {
    let times = |rounds: &[Vec<f64>]| {
        let [p50, p95] = [50, 95].map(|percent| Measured::at(rounds, percent));
        json!({"p50": p50, "p95": p95})
    };
    json!({
        "rows": measured.rows,
        "ms": times(&measured.ours),
        "stock_ms": times(&measured.stock),
        "ratio_p50": measured.ratio(),
        "recall@10": measured.recall,
    })
}

fn fill(store: &mut Store, speech: &mut Speech, rows: u32) -> anyhow::Result<()> {
    let now = home::now();
    for turn in 0..rows.div_ceil(OBSERVATIONS_PER_TURN) {
        let first = turn * OBSERVATIONS_PER_TURN;
        let numbers = first..rows.min(first + OBSERVATIONS_PER_TURN);
        let event = event(turn, now);
        let observations = numbers
            .map(|number| speech.observation(number, now))
            .collect();
        let derived = Derived {
            observations,
            summary: None,
        };
        let told = Turn {
            prompt_id: event.prompt_id.clone(),
            events: vec![event.clone()],
        };
        store.commit(&Batch {
            events: &[event],
            told: &[Told::offline(told, derived)],
            replaces: Replaces::Nothing,
            provider: "offline",
            now,
        })?;
    }
    Ok(())
}

fn event(turn: u32, now: i64) -> Event {
    Event {
        id: Uuid::now_v7(),
        key: format!("turn:{turn}"),
        kind: EventKind::Prompt,
        host: "bench".to_owned(),
        host_session_id: format!("session-{turn}"),
        prompt_id: Some(turn.to_string()),
        agent_id: None,
        tool_name: None,
        tool_use_id: None,
        cwd: None,
        project_dir: None,
        project: Some("/bench".to_owned()),
        root: None,
        transcript_path: None,
        branch: None,
        commit: None,
        files: Vec::new(),
        payload: Payload::default(),
        at: now,
    }
}

/// Made-up words: the second is half as common as the first, the third a third, and so on, as in
/// any language (Zipf). The same ones in every run.
struct Speech {
    /// How common each word and all before it are together.
    heights: Vec<f64>,
    state: u64,
}

impl Speech {
    fn new(state: u64) -> Speech {
        let mut height = 0.0;
        // A little flatter: the words that every sentence has are stop words and not here.
        let heights = (1..=VOCABULARY).map(|rank| {
            height += 1.0 / (rank as f64 + 20.0);
            height
        });
        Speech {
            heights: heights.collect(),
            state,
        }
    }

    /// xorshift: made-up words need no better chance.
    fn chance(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn word(&mut self) -> String {
        let height = self.chance() * self.heights[VOCABULARY - 1];
        let mut rank = self.heights.partition_point(|it| *it < height);
        // Syllables that no stemmer takes for an ending.
        let mut word = String::new();
        loop {
            word.push(char::from(b"bdfgklmnprtvz"[rank % 13]));
            word.push(char::from(b"aou"[rank / 13 % 3]));
            rank /= 39;
            if rank == 0 {
                return word + "k";
            }
        }
    }

    fn observation(&mut self, number: u32, at: i64) -> Observation {
        Observation {
            seed: number.to_string(),
            kind: ObservationType::ALL[number as usize % ObservationType::ALL.len()],
            title: self.words(7),
            subtitle: self.words(10),
            facts: (0..3).map(|_| self.words(10)).collect(),
            // Rows of one length would often tie.
            narrative: {
                let length = 20.0 + self.chance() * 40.0;
                self.words(length as usize)
            },
            concepts: vec![self.word(), self.word()],
            files: Vec::new(),
            origin: Origin::Agent,
            agent_id: None,
            events: Vec::new(),
            at,
        }
    }
}
