//! `foreword-bench vectors`: the vector index alone, without the database.
//!
//! Vectors are made up around a few hundred centres, since texts on one subject are near each other.
//! With the installed model the centres are vectors of made-up texts, else they are random; with
//! `--data` all vectors are of real texts. They are read from pages as the database stores them,
//! searched for the nearest of similar queries, and compared with an exact search. With the model,
//! embedding is measured too.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use foreword_core::search::vectors::{DIMENSIONS, Vector, Vectors};
use foreword_core::text;
use foreword_embed::SentenceModel;
use serde_json::{Value, json};

use super::random::Random;
use super::statistics::{median, milliseconds, percentile};
use super::{machine, process, speech};
use foreword::home;
use foreword::service;

#[derive(clap::Args)]
pub struct Args {
    /// How many vectors
    #[arg(long, default_value_t = 100_000)]
    count: usize,
    /// How many queries
    #[arg(long, default_value_t = 100)]
    queries: usize,
    /// Embed real texts: the questions and sessions that `foreword-bench retrieval` takes
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The number of centres that made-up vectors are near to.
const CENTRES: u32 = 400;
/// Hits that are compared.
const TOP: usize = 20;
/// How often loading and embedding are timed.
const ROUNDS: usize = 10;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let model = SentenceModel::open(&service::home_to_look_at()?.model());
    let model = model
        .inspect_err(|error| eprintln!("without the model: {error}"))
        .ok();
    let machine = machine::this();
    let report = json!({
        "bench": "vectors",
        "at": text::rfc3339(home::now()),
        "machine": {"cores": machine.cores, "cpu": machine.cpu, "kernel": machine.kernel},
        "index": index(args, model.as_ref())?,
        "embedding": model.as_ref().map(embedding),
    });
    if args.json {
        println!("{report:#}");
        return Ok(());
    }
    for part in ["index", "embedding"] {
        for (name, value) in report[part].as_object().into_iter().flatten() {
            println!("{name:24} {value}");
        }
    }
    Ok(())
}

/// The vectors of the index, and those of the queries.
fn vectors(args: &Args, model: Option<&SentenceModel>) -> anyhow::Result<[Vec<Vector>; 2]> {
    if let Some(file) = &args.data {
        let model = model.context("real texts need the model: `foreword model install`")?;
        let (mut texts, mut questions) = (BTreeSet::new(), Vec::new());
        let data = std::fs::read(file)?;
        for line in serde_json::Deserializer::from_slice(&data).into_iter::<Value>() {
            let line = line?;
            let sessions = line["sessions"].as_array().into_iter().flatten();
            let turns = sessions.filter_map(|it| it["text"].as_str());
            texts.extend(turns.flat_map(str::lines).map(str::to_owned));
            questions.extend(line["question"].as_str().map(str::to_owned));
        }
        let embed = |texts: Vec<String>, count: usize| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).take(count).collect();
            model.embed_all(&texts, 2)
        };
        let texts = texts.into_iter().collect();
        return Ok([embed(texts, args.count), embed(questions, args.queries)]);
    }
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let centres: Vec<Vector> = match model {
        Some(model) => {
            let texts = speech::queries(CENTRES);
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            model.embed_all(&texts, 2)
        }
        None => (0..CENTRES)
            .map(|_| near(&mut random, &[0.0; DIMENSIONS], 1.0))
            .collect(),
    };
    let mut neighbour = |centre| {
        // From nearly equal to barely similar.
        let far = 0.05 + 0.045 * random.sign();
        near(&mut random, centre, far)
    };
    let mut made = |count| {
        let centres = centres.iter().cycle().take(count);
        centres.map(&mut neighbour).collect()
    };
    Ok([made(args.count), made(args.queries)])
}

fn index(args: &Args, model: Option<&SentenceModel>) -> anyhow::Result<Value> {
    let [all, queries] = vectors(args, model)?;
    let numbered: Vec<(i64, &Vector)> = (0..).zip(&all).collect();
    let pages = numbered.iter().map(|(owner, vector)| {
        let mut page = Vectors::default();
        page.push(*owner, vector);
        page.to_page()
    });
    let pages: Vec<Vec<u8>> = pages.collect();
    let memory = || process::kilobytes(std::process::id()).context("no /proc here");
    let before = memory()?;
    let mut vectors = Vectors::default();
    let mut loads = Vec::new();
    for _ in 0..ROUNDS {
        vectors = Vectors::default();
        let started = Instant::now();
        vectors.reserve(all.len());
        for page in &pages {
            vectors.add_page(page)?;
        }
        loads.push(milliseconds(started.elapsed()));
    }
    let took = memory()?.saturating_sub(before);
    let (mut searches, mut found) = (Vec::new(), 0);
    for query in &queries {
        let started = Instant::now();
        black_box(vectors.nearest(query, TOP));
        searches.push(milliseconds(started.elapsed()));
    }
    for query in &queries {
        let hits = vectors.nearest(query, TOP);
        let cosine =
            |vector: &Vector| -> f32 { query.iter().zip(vector).map(|(a, b)| a * b).sum() };
        let mut exact: Vec<(f32, i64)> = numbered
            .iter()
            .map(|(owner, it)| (cosine(it), *owner))
            .collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        let nearest = exact.iter().take(TOP);
        found += nearest
            .filter(|(_, owner)| hits.iter().any(|hit| hit.0 == *owner))
            .count();
    }
    let wanted = queries.len() * TOP.min(all.len());
    Ok(json!({
        "vectors": all.len(),
        "of": match (&args.data, model) {
            (Some(_), _) => "real texts",
            (None, Some(_)) => "near texts of made-up words",
            (None, None) => "chance",
        },
        "load_ms": median(&loads),
        "search_ms_p50": percentile(&searches, 50),
        "search_ms_p95": percentile(&searches, 95),
        "memory_mb_per_100k": took as f64 / 1000.0 * 1e5 / all.len() as f64,
        "recall_at_20": found as f64 / wanted as f64,
    }))
}

fn embedding(model: &SentenceModel) -> Value {
    // `word` is one token; one token is added at each end.
    let text = |tokens: usize| "word ".repeat(tokens - 2);
    let one = |tokens: usize| {
        let text = text(tokens);
        let times = (0..ROUNDS).map(|_| {
            let started = Instant::now();
            black_box(model.embed(&text));
            milliseconds(started.elapsed())
        });
        median(&times.collect::<Vec<f64>>())
    };
    let text = text(61);
    let texts = vec![text.as_str(); 200];
    let started = Instant::now();
    black_box(model.embed_all(&texts, 2));
    let per_second = texts.len() as f64 / started.elapsed().as_secs_f64();
    json!({
        "tokens_16_ms": one(16),
        "tokens_61_ms": one(61),
        "tokens_256_ms": one(256),
        "texts_per_s_2_threads": per_second,
    })
}

/// A vector of length one, at about the distance `far` from another.
pub fn near(random: &mut Random, centre: &Vector, far: f32) -> Vector {
    let vector = centre.map(|number| number + far * random.sign());
    let length = vector
        .iter()
        .map(|number| number * number)
        .sum::<f32>()
        .sqrt();
    vector.map(|number| number / length)
}
