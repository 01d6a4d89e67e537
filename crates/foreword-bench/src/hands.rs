//! `foreword-bench hands`: what a person's changes cost in a large memory, and whether a change that is
//! killed is made wholly or not at all.
//!
//! The times are those of the store, in this process, and of the whole command. With `--kills`
//! `forget` and `undo` are killed instead: at each named point in turn, in a build that has them, else
//! at random moments. Then every item must be as before or as after, in all tables.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foreword_core::fault;
use foreword_core::search::{self, Filter};
use foreword_core::store::{Item, Store};
use rusqlite::Connection;
use serde::Serialize;
use serde_json::json;

use super::database;
use super::machine;
use super::memories::{self, WORK};
use super::process::sleep;
use super::random::Random;
use super::report;
use super::sandbox::BenchSandbox;
use super::statistics::{milliseconds, percentile};
use foreword::home;
use foreword::platform;

#[derive(clap::Args)]
pub struct Args {
    /// Observations in the memory
    #[arg(long, default_value_t = 100_000)]
    observations: u32,
    /// How often each change is made
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// Kill `forget` and `undo` this often instead, and check what is left
    #[arg(long)]
    kills: Option<u32>,
    /// Decides what is killed, and when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    platform::make_files_private();
    let program = machine::beside()?;
    if let Some(rounds) = args.kills {
        let kills = kill(&program, rounds, args.seed)?;
        report::print("hands", json!(kills), args.json);
        ensure!(kills.halves == 0, "a killed change was made by half");
        return Ok(());
    }
    let sandbox = BenchSandbox::new(&program)?;
    memories::fill(
        &sandbox.home,
        &sandbox.project_key(),
        args.observations,
        WORK,
    )?;
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut store = Store::open(&sandbox.home.memory(), &sandbox.home.backups())?;
    let ids = observations(&store)?;
    let step = (ids.len() / (args.rounds * 2)).max(1);
    let mut chosen = ids.iter().copied().step_by(step);
    for _ in 0..args.rounds {
        let id = chosen.next().context("too few observations")?;
        let mut wanted = store.editable(id)?;
        wanted.title = format!("{} (corrected)", wanted.title);
        let now = home::now();
        let mut time = |name, began: Instant| {
            times
                .entry(name)
                .or_default()
                .push(milliseconds(began.elapsed()));
        };
        let began = Instant::now();
        store.edit(&[(id, wanted)], "shell", now)?;
        time("edit", began);
        let began = Instant::now();
        store.pin(&[id], true, "shell", now)?;
        time("pin", began);
        let began = Instant::now();
        store.undo(2)?;
        time("undo", began);
        let began = Instant::now();
        store.forget(&[id], now)?;
        time("forget", began);
    }
    drop(store);
    for _ in 0..args.rounds {
        let id = chosen.next().context("too few observations")?.to_string();
        for (name, arguments) in [
            ("foreword edit", &["edit", &id, "--title", "Corrected"][..]),
            ("foreword pin", &["pin", &id]),
            ("foreword undo", &["undo", "2"]),
            ("foreword forget", &["forget", &id, "--yes"]),
        ] {
            let began = Instant::now();
            sandbox.run(arguments)?;
            let took = milliseconds(began.elapsed());
            times.entry(name).or_default().push(took);
        }
    }
    let summed_up = times.iter().map(|(name, times)| {
        let p = |percent| percentile(times, percent).unwrap_or_default();
        (*name, json!({"p50_ms": p(50), "p95_ms": p(95)}))
    });
    let summed_up: BTreeMap<_, _> = summed_up.collect();
    let report = json!({"observations": ids.len(), "rounds": args.rounds, "times": summed_up});
    report::print("hands", report, args.json);
    Ok(())
}

fn observations(store: &Store) -> anyhow::Result<Vec<i64>> {
    let only = Filter {
        kind: Some(foreword_core::model::Kind::Observation),
        ..Filter::default()
    };
    let mut ids = search::ids(store, &only)?;
    ids.sort_unstable();
    Ok(ids)
}

/// What came of killing changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Kills {
    pub rounds: u32,
    /// How often the process died before it ended by itself.
    pub killed: u32,
    /// How often the change was made, and how often it was not.
    pub made: u32,
    pub not_made: u32,
    /// How often something was changed and something else was not.
    pub halves: u32,
}

/// The points at which each command is killed.
const POINTS: [(&str, &[&str]); 2] = [
    (
        "forget",
        &[
            "forget:before-file",
            "forget:before-commit",
            "forget:after-commit",
        ],
    ),
    (
        "undo",
        &[
            "undo:after-item",
            "undo:after-item:2",
            "undo:before-commit",
            "undo:after-commit",
        ],
    ),
];

/// Kills `forget` and `undo` in turn.
pub fn kill(program: &Path, rounds: u32, seed: u64) -> anyhow::Result<Kills> {
    const ITEMS: usize = 3;
    let sandbox = BenchSandbox::new(program)?;
    let wanted = rounds * ITEMS as u32 + 20;
    memories::fill(&sandbox.home, &sandbox.project_key(), wanted, WORK)?;
    sandbox.keep_workers_away()?;
    let mut random = Random::new(seed);
    let mut kills = Kills::default();
    for round in 0..rounds {
        let (command, points) = POINTS[round as usize % POINTS.len()];
        let mut store = Store::open(&sandbox.home.memory(), &sandbox.home.backups())?;
        let ids: Vec<i64> = observations(&store)?.into_iter().take(ITEMS).collect();
        let untouched = state(&sandbox, &store, &ids)?;
        store.pin(&ids, true, "shell", home::now())?;
        let before = state(&sandbox, &store, &ids)?;
        drop(store);
        let numbers: Vec<String> = ids.iter().map(i64::to_string).collect();
        let mut arguments = vec![command];
        if command == "forget" {
            arguments.extend(numbers.iter().map(String::as_str));
            arguments.push("--yes");
        }
        let mut process = sandbox.command(program, &arguments);
        process.stdout(Stdio::null()).stdin(Stdio::null());
        // Every other time at a random moment, also if the build has points.
        let turn = round as usize / POINTS.len();
        let named =
            (fault::BUILT_IN && turn.is_multiple_of(2)).then(|| points[turn / 2 % points.len()]);
        if let Some(point) = named {
            process.env(super::trial::FAULT, point);
        }
        let mut child = process.spawn().context("could not start the program")?;
        if named.is_none() {
            sleep(random.moment(Duration::from_millis(30)));
            let _ = child.kill();
        }
        let status = child.wait()?;
        kills.killed += u32::from(status.signal() == Some(9));
        let store = Store::open(&sandbox.home.memory(), &sandbox.home.backups())?;
        let after = state(&sandbox, &store, &ids)?;
        let gone = TableState::gone(ids.len());
        let is_made = match command {
            "forget" => after == gone,
            _ => after == untouched,
        };
        kills.rounds += 1;
        kills.made += u32::from(is_made);
        kills.not_made += u32::from(after == before);
        kills.halves += u32::from(!is_made && after != before);
        drop(store);
        // Nothing stays pinned, so that ten are never reached.
        let _ = sandbox.run(&["undo"]);
    }
    Ok(kills)
}

/// Some items as all tables have them.
#[derive(Debug, PartialEq, Eq)]
struct TableState {
    items: Vec<Option<Item>>,
    texts: usize,
    journal: usize,
    forgotten: usize,
}

impl TableState {
    /// These items when they are forgotten.
    fn gone(items: usize) -> TableState {
        TableState {
            items: vec![None; items],
            texts: 0,
            journal: 0,
            forgotten: items,
        }
    }
}

fn state(sandbox: &BenchSandbox, store: &Store, ids: &[i64]) -> anyhow::Result<TableState> {
    let memory = database::look(&sandbox.home.memory())?;
    let count = |sql: &str| count(&memory, sql, ids);
    let items = ids.iter().map(|id| {
        // A forgotten item has no row but its number.
        let there = count_one(&memory, *id)? > 0;
        Ok(if there { store.item(*id)? } else { None })
    });
    Ok(TableState {
        items: items.collect::<anyhow::Result<_>>()?,
        texts: count("select count(*) from texts where rowid = ?1")?,
        journal: count("select count(*) from journal where item_id = ?1")?,
        forgotten: count(
            "select count(*) from forgotten where uuid = (select uuid from items where id = ?1)",
        )?,
    })
}

fn count(memory: &Connection, sql: &str, ids: &[i64]) -> anyhow::Result<usize> {
    let counts = ids
        .iter()
        .map(|id| memory.query_row(sql, [id], |row| row.get::<_, usize>(0)));
    Ok(counts.sum::<rusqlite::Result<usize>>()?)
}

fn count_one(memory: &Connection, id: i64) -> anyhow::Result<usize> {
    count(
        memory,
        "select count(*) from observations where id = ?1",
        &[id],
    )
}
