//! A throw-away home with a project, in which the demo runs this program.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

pub struct Stage {
    pub project: PathBuf,
    program: PathBuf,
    dir: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> anyhow::Result<Stage> {
        let dir = tempfile::Builder::new().prefix("foreword-").tempdir();
        let dir = dir.context("could not make a throw-away home")?;
        let project = std::fs::canonicalize(dir.path())?.join("user/work/pay");
        std::fs::create_dir_all(&project)?;
        let program = std::env::current_exe()?;
        Ok(Stage {
            project,
            program,
            dir,
        })
    }

    /// Runs a hook with recorded input; returns its answer and how long it took.
    pub fn hook(&self, hook: &str, input: &Value) -> anyhow::Result<(String, Duration)> {
        let input = input
            .to_string()
            .replace("${PROJECT}", &self.project.to_string_lossy())
            .replace("${USER}", &self.user().to_string_lossy());
        let began = Instant::now();
        let output = self.output(&[hook], &input)?;
        Ok((String::from_utf8(output.stdout)?, began.elapsed()))
    }

    /// Runs a command and returns what it printed.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.output(arguments, "")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {error}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The home directory of the made-up user.
    fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    fn output(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(&self.project)
            .env_clear();
        command.envs([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LANG", "C.UTF-8"),
        ]);
        command
            .env("HOME", self.user())
            .env("FOREWORD_HOME", self.user().join(".foreword"));
        command.env("CLAUDE_PROJECT_DIR", &self.project);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take().context("its input is a pipe")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        Ok(child.wait_with_output()?)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A worker that a hook has just started does not hold its lock yet; `start` waits for it.
        let _ = self.run(&["worker", "start"]);
        let _ = self.run(&["worker", "stop"]);
    }
}
