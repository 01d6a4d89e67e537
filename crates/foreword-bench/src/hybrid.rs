//! Times of search by meaning, through a worker that has the model and the vectors: from a process
//! that keeps the memory open, and from a command that starts, searches and ends (`cold_ms`).
//!
//! The vectors are random: embedding a hundred thousand texts takes half an hour, and the time of a
//! search does not depend on their values. The queries are embedded by the real model.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::search::LoadedVectors;
use foreword_core::search::Query;
use foreword_core::search::vectors::DIMENSIONS;
use foreword_core::store::Store;
use serde_json::{Value, json};

use super::process::sleep;
use super::random::Random;
use super::statistics::{median, milliseconds, percentile};
use super::vectors::near;
use super::{machine, process, server};
use foreword::home::Home;
use foreword::platform::Lock;
use foreword::service::embed_client::{self, Ranking};
use foreword::service::home_to_look_at;
use foreword::service::sentence_model;
use foreword::start::end_running;

/// Measures all queries; none if the sentence model is not installed.
pub fn measure(
    home: &Home,
    queries: &[String],
    query: impl Fn(&str) -> Query<'_>,
) -> anyhow::Result<Option<Value>> {
    let model = home_to_look_at()?.model();
    if !model.exists() {
        return Ok(None);
    }
    make_up(&mut Store::open(&home.memory(), &home.backups())?)?;
    std::fs::create_dir_all(home.models())?;
    if !home.model().exists() {
        std::os::unix::fs::symlink(std::path::absolute(model)?, home.model())?;
    }
    let mut start = Command::new(machine::beside()?);
    start
        .args(["worker", "start"])
        .env("FOREWORD_HOME", home.dir());
    let started = start.stdout(Stdio::null()).status()?;
    ensure!(started.success(), "could not start a worker");
    let measured = with_worker(home, queries, query);
    end_running(home)?;
    measured.map(Some)
}

fn with_worker(
    home: &Home,
    queries: &[String],
    query: impl Fn(&str) -> Query<'_>,
) -> anyhow::Result<Value> {
    let store = Store::look(&home.memory())?.context("the memory that was made is gone")?;
    let ask = |words: &str| -> anyhow::Result<(f64, bool)> {
        let started = Instant::now();
        let (_, ranking) = embed_client::search(home, &store, &query(words))?;
        Ok((
            milliseconds(started.elapsed()),
            ranking == Ranking::WordsAndMeaning { percent: 100 },
        ))
    };
    let started = Instant::now();
    while !ask("are you there")?.1 {
        let waited = started.elapsed() < Duration::from_secs(60);
        ensure!(waited, "the worker does not answer in time on this machine");
        sleep(Duration::from_millis(50));
    }
    let (mut times, mut cold, mut by_words) = (Vec::new(), Vec::new(), 0);
    for words in queries {
        let (took, by_meaning) = ask(words)?;
        times.push(took);
        by_words += usize::from(!by_meaning);
    }
    for words in queries.iter().take(20) {
        let started = Instant::now();
        let mut command = Command::new(machine::beside()?);
        command.args(["search", "--all-projects", words.as_str()]);
        command
            .env("FOREWORD_HOME", home.dir())
            .stdout(Stdio::null());
        ensure!(command.status()?.success(), "a search failed");
        cold.push(milliseconds(started.elapsed()));
    }
    // The process that `worker start` ran has exited; the worker it started holds the lock.
    let worker = Lock::holder(&home.lock())?.context("the worker is gone")?;
    Ok(json!({
        "ms": {"p50": percentile(&times, 50), "p95": percentile(&times, 95)},
        "load_ms": load(&store)?,
        "cold_ms": {"p50": percentile(&cold, 50), "p95": percentile(&cold, 95)},
        "by_words_only": by_words,
        "mcp_peak_bytes": server::peak_memory(home, queries)?,
        "worker_peak_bytes": process::peak_kilobytes(worker) * 1024,
        "raw_ms": {"ours": times, "cold": cold},
    }))
}

/// Milliseconds to read all vectors, as the worker does at its start.
fn load(store: &Store) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        store.load_vectors(sentence_model::NAME, &mut LoadedVectors::default())?;
        times.push(milliseconds(started.elapsed()));
    }
    Ok(median(&times))
}

/// Gives every chunk a random vector.
fn make_up(store: &mut Store) -> anyhow::Result<()> {
    let mut random = Random::new(1);
    loop {
        let items = store.unembedded(sentence_model::NAME, 4096)?;
        let made = items.into_iter().map(|it| {
            let vectors = it
                .chunks
                .iter()
                .map(|_| near(&mut random, &[0.0; DIMENSIONS], 1.0))
                .collect();
            (it, vectors)
        });
        let made: Vec<_> = made.collect();
        if made.is_empty() {
            return Ok(());
        }
        store.put_vectors(sentence_model::NAME, &made)?;
    }
}
