//! `foreword demo`: capture and recall in a throw-away home.
//!
//! Everything is real: the hooks are processes of this program with a recorded session
//! (`demo/session.jsonl`) on their standard input, a worker drains the queue, and the last text is the
//! one that the host would get.

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
struct RecordedEvent {
    hook: String,
    /// A line for the viewer.
    says: String,
    /// A file that the agent had just written.
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
        // A closed pipe (`| head`) is no error; the throw-away home is removed all the same.
        Err(error) if is_closed_pipe(&error) => Ok(()),
        ended => ended,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Like `println!`, but a closed pipe is an error instead of a panic, so that the home is removed.
macro_rules! say {
    ($($text:tt)*) => { writeln!(std::io::stdout(), $($text)*)? };
}

fn perform() -> anyhow::Result<()> {
    let stage = Stage::new()?;
    std::fs::create_dir(stage.project.join("src"))?;
    say!("Two recorded sessions of a coding agent, sent to Foreword's real hooks.\n");
    for line in SESSION.lines() {
        send(
            &stage,
            &serde_json::from_str(line).context("the recording is damaged")?,
        )?;
    }
    stage.run(&["worker", "drain"])?;

    heading("What was remembered (no model, no key, no network)")?;
    show(&stage, &["sessions"])?;
    say!("");
    show(&stage, &["search", "expiry"])?;
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

fn send(stage: &Stage, event: &RecordedEvent) -> anyhow::Result<()> {
    if let Some(Write { path, content }) = &event.write {
        std::fs::write(stage.project.join(path), content)?;
    }
    let (_, took) = stage.run_with(&[&event.hook], &event.input.to_string())?;
    let took = took.as_secs_f64() * 1000.0;
    say!("  {took:5.1} ms  {:<8} {}", event.hook, event.says);
    Ok(())
}

fn first_bugfix(stage: &Stage) -> anyhow::Result<String> {
    let search = ["search", "token", "--type", "bugfix", "--format", "json"];
    let hits: Vec<Value> = serde_json::from_str(&stage.run(&search)?)?;
    let bugfix = hits.first().context("the demo's bugfix was not found")?;
    Ok(bugfix["id"].to_string())
}

fn next_session(stage: &Stage) -> anyhow::Result<String> {
    let start = played::start("a-session-that-starts-now", &stage.project);
    let (answer, _) = stage.run_with(&["context"], &start.to_string())?;
    played::added_context(&answer).context("the next session was shown nothing")
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
