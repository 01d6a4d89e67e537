//! `foreword demo`: the main job, in a throw-away home.
//!
//! Nothing is pretended: the hooks are this very program, run as processes with a
//! recorded session (`demo/session.jsonl`) on their standard input; a real worker
//! drains the queue; the last text is what the host would be given.

mod stage;

use std::io::Write as _;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use crate::host::claude_code::played;
use stage::Stage;

const SESSION: &str = include_str!("demo/session.jsonl");

/// One line of the recording.
#[derive(Deserialize)]
struct Told {
    hook: String,
    /// For the person who watches.
    says: String,
    /// What the agent had just done to a file.
    write: Option<Write>,
    input: Value,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    content: String,
}

pub fn run() -> anyhow::Result<()> {
    match perform() {
        // `| head`: whoever watched has seen enough, and the stage is cleared all the same.
        Err(error) if is_closed_pipe(&error) => Ok(()),
        ended => ended,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Like `println!`, but a pipe that closed is an error, and the stage is cleared.
macro_rules! say {
    ($($text:tt)*) => { writeln!(std::io::stdout(), $($text)*)? };
}

fn perform() -> anyhow::Result<()> {
    let stage = Stage::new()?;
    std::fs::create_dir(stage.project.join("src"))?;
    say!("Two recorded sessions of a coding agent, told to Foreword's real hooks.\n");
    for line in SESSION.lines() {
        tell(
            &stage,
            &serde_json::from_str(line).context("the recording is damaged")?,
        )?;
    }
    stage.run(&["worker", "drain"])?;

    heading("What was remembered (no model, no key, no network)")?;
    show(&stage, &["search", "token", "health", "deploy", "database"])?;
    heading("One of them in full")?;
    show(&stage, &["show", &first_bugfix(&stage)?])?;
    heading("What the next session opens with")?;
    say!("{}", indent(&next_session(&stage)?));
    say!(
        "\nThis was a throw-away home; nothing of it is left. To use Foreword: `foreword install`."
    );
    Ok(())
}

fn show(stage: &Stage, arguments: &[&str]) -> anyhow::Result<()> {
    say!("  $ foreword {}", arguments.join(" "));
    say!("{}", indent(&stage.run(arguments)?));
    Ok(())
}

fn tell(stage: &Stage, told: &Told) -> anyhow::Result<()> {
    if let Some(Write { path, content }) = &told.write {
        std::fs::write(stage.project.join(path), content)?;
    }
    let (_, took) = stage.run_with(&[&told.hook], &told.input.to_string())?;
    let took = took.as_secs_f64() * 1000.0;
    say!("  {took:5.1} ms  {:<8} {}", told.hook, told.says);
    Ok(())
}

fn first_bugfix(stage: &Stage) -> anyhow::Result<String> {
    let found = stage.run(&["search", "token", "--format", "json"])?;
    let hits: Vec<Value> = serde_json::from_str(&found)?;
    let bugfix = hits.iter().find(|hit| hit["type"] == "bugfix");
    let bugfix = bugfix.context("the demo's bugfix was not found")?;
    Ok(bugfix["id"].to_string())
}

fn next_session(stage: &Stage) -> anyhow::Result<String> {
    let start = played::start("a-session-that-starts-now", &stage.project);
    let (answer, _) = stage.run_with(&["context"], &start.to_string())?;
    played::added_context(&answer).context("the next session was told nothing")
}

fn heading(text: &str) -> anyhow::Result<()> {
    say!("\n{text}\n");
    Ok(())
}

fn indent(text: &str) -> String {
    text.trim_end()
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect::<String>()
        .trim_end()
        .to_owned()
}
