//! `foreword-bench live`: what a real model behind an OpenAI-compatible address makes of recorded
//! sessions, and what it costs. The sessions are replayed through the real hooks, and the real worker
//! asks. The report says what came of each question, without the answers themselves.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

use super::super::sandbox::BenchSandbox;
use super::super::spawn::spawn;
use super::super::{database, machine, report, system};
use super::recording::Recording;
use foreword::platform;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The address of the server, for instance http://127.0.0.1:8080/v1
    #[arg(long)]
    url: String,
    /// The name of the model there
    #[arg(long)]
    model: String,
    /// Sessions that `scripts/record` recorded
    #[arg(long, default_values = [
        "testdata/sessions/bug-hunt.jsonl",
        "testdata/sessions/feature.jsonl",
        "testdata/sessions/refactor.jsonl",
        "testdata/sessions/research.jsonl",
        "testdata/sessions/failed-deployment.jsonl",
    ])]
    session: Vec<PathBuf>,
    /// The longest answer, in tokens
    #[arg(long, default_value = "1024")]
    answer_max: u32,
    /// Measure another build of Foreword than the one that runs
    #[arg(long)]
    program: Option<PathBuf>,
}

/// One row for each call: its outcome and its tokens.
const CALLS: &str = "select state || ' ' || coalesce(failure, '') || ', ' || input_tokens || ' in, ' \
                     || output_tokens || ' out' from ledger where provider <> 'offline' order by id";
const OFFLINE: &str = "select note from ledger where provider = 'offline' order by id";
const STORED: &str = "select provider || ': ' || count(*) from observations group by provider";

pub fn run(args: &Args) -> anyhow::Result<()> {
    system::note_interrupts();
    platform::make_files_private();
    let program = machine::program(args.program.as_deref())?;
    let mut sandbox = BenchSandbox::new(&program.path)?;
    sandbox.environment = vec![
        ("FOREWORD_PROVIDER", "openai".to_owned()),
        ("FOREWORD_OPENAI_BASE_URL", args.url.clone()),
        ("FOREWORD_OPENAI_MODEL", args.model.clone()),
        (
            "FOREWORD_MODEL_ANSWER_MAX_TOKENS",
            args.answer_max.to_string(),
        ),
    ];
    let begun = Instant::now();
    let mut turns = 0;
    for session in &args.session {
        eprintln!("{} …", session.display());
        let recording = Recording::read(session)?;
        turns += recording.count("new");
        sandbox.keep_workers_away()?;
        for (hook, input) in recording.lines(&sandbox) {
            ensure!(!system::interrupted(), "interrupted");
            let spawned = spawn(sandbox.command(&sandbox.program, &[hook]), &input)?;
            ensure!(spawned.success, "the hook {hook} failed");
        }
        sandbox.drain()?;
    }
    let seconds = begun.elapsed().as_secs();
    sandbox.end_worker()?;
    let memory = database::look(&sandbox.home.memory())?;
    let column = |sql: &str| -> anyhow::Result<Value> {
        let mut statement = memory.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        Ok(rows.collect::<Result<Vec<String>, _>>()?.into())
    };
    let cost: Value = serde_json::from_str(&sandbox.run(&["cost", "--json"])?)?;
    let status: Value = serde_json::from_str(&sandbox.run(&["status", "--json"])?)?;
    let report = json!({
        "program": program,
        "model": args.model,
        "turns": turns,
        "seconds": seconds,
        "calls": cost["calls"],
        "failed": cost["failed"],
        "input_tokens": cost["input_tokens"],
        "output_tokens": cost["output_tokens"],
        "skipped": status["skipped"],
        "unfit": status["unfit"],
        "observations": column(STORED)?,
        "questions": column(CALLS)?,
        "offline": column(OFFLINE)?,
    });
    report::print("live", report, args.json);
    Ok(())
}
