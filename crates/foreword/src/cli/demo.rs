//! `foreword demo`: the main job, in a throw-away home.
//!
//! Nothing is pretended: the hooks are this very program, run as processes with a
//! recorded session (`demo/session.jsonl`) on their standard input; a real worker
//! drains the queue; the last text is what the host would be given.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::home::Home;

#[derive(clap::Args)]
pub struct Args {}

const SESSION: &str = include_str!("demo/session.jsonl");

/// One line of the recording.
#[derive(Deserialize)]
struct Told {
    hook: String,
    /// For the person who watches.
    says: String,
    /// What the agent had just done to a file.
    write: Option<Write>,
    input: serde_json::Value,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    content: String,
}

pub fn run(_args: &Args) -> anyhow::Result<()> {
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
    say!("Two recorded sessions of a coding agent, told to Foreword's real hooks.\n");
    for line in SESSION.lines() {
        stage.tell(&serde_json::from_str(line).context("the recording is damaged")?)?;
    }
    stage.foreword(&["worker", "drain"])?;

    heading("What was remembered (no model, no key, no network)")?;
    stage.show(&["search", "token", "health", "deploy", "database"])?;
    heading("One of them in full")?;
    let number = stage.first_bugfix()?;
    stage.show(&["show", &number])?;
    heading("What the next session opens with")?;
    say!("{}", indent(&stage.next_session()?));
    stage.foreword(&["worker", "stop"])?;
    say!(
        "\nThis was a throw-away home; nothing of it is left. To use Foreword: `foreword install`."
    );
    Ok(())
}

/// A home, a user and a project that go away with it.
struct Stage {
    dir: tempfile::TempDir,
    program: PathBuf,
}

impl Stage {
    fn new() -> anyhow::Result<Stage> {
        let stage = Stage {
            dir: tempfile::Builder::new()
                .prefix("foreword-demo-")
                .tempdir()?,
            program: std::env::current_exe()?,
        };
        std::fs::create_dir_all(stage.project().join("src"))?;
        std::fs::create_dir_all(stage.user())?;
        Ok(stage)
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    fn project(&self) -> PathBuf {
        self.user().join("pay")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.user())
            .env("FOREWORD_HOME", self.home())
            .env("CLAUDE_PROJECT_DIR", self.project())
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    fn foreword(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output()?;
        if !output.status.success() {
            bail!(
                "`foreword {}` failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn show(&self, arguments: &[&str]) -> anyhow::Result<()> {
        say!("  $ foreword {}", arguments.join(" "));
        say!("{}", indent(&self.foreword(arguments)?));
        Ok(())
    }

    fn tell(&self, told: &Told) -> anyhow::Result<()> {
        if let Some(Write { path, content }) = &told.write {
            std::fs::write(self.project().join(path), content)?;
        }
        let before = Instant::now();
        self.hook(&told.hook, &self.fill(&told.input))?;
        let milliseconds = before.elapsed().as_secs_f64() * 1000.0;
        say!("  {milliseconds:5.1} ms  {:<8} {}", told.hook, told.says);
        Ok(())
    }

    /// The recorded input, with this stage's folders in it.
    fn fill(&self, input: &serde_json::Value) -> String {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        input
            .to_string()
            .replace("${PROJECT}", &text(&self.project()))
            .replace("${USER}", &text(&self.user()))
    }

    fn hook(&self, hook: &str, input: &str) -> anyhow::Result<String> {
        let mut child = self
            .command(&[hook])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child
            .stdin
            .take()
            .context("no pipe to the hook")?
            .write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    fn first_bugfix(&self) -> anyhow::Result<String> {
        let hits: Vec<serde_json::Value> =
            serde_json::from_str(&self.foreword(&["search", "token", "--format", "json"])?)?;
        let bugfix = hits
            .iter()
            .find(|hit| hit["type"] == "bugfix")
            .context("the demo's bugfix was not found")?;
        Ok(bugfix["id"].to_string())
    }

    fn next_session(&self) -> anyhow::Result<String> {
        let start = serde_json::json!({
            "session_id": "a-session-that-starts-now",
            "cwd": self.project(),
            "hook_event_name": "SessionStart",
            "source": "startup",
        });
        let answer: serde_json::Value =
            serde_json::from_str(&self.hook("context", &start.to_string())?)?;
        let text = answer["hookSpecificOutput"]["additionalContext"].as_str();
        Ok(text
            .context("the next session was told nothing")?
            .to_owned())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Also when the demo ended half-way: no worker stays behind. One that is on its
        // way would come back to a folder that is gone, so it is waited for.
        let coming = Home::at(self.home()).start_stamp();
        for _ in 0..500 {
            if !coming.exists() {
                break;
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a file that goes cannot be waited on"
            )]
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.command(&["worker", "stop"]).output();
    }
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
