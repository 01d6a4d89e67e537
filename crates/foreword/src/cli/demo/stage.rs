//! A throw-away home with a project, in which the demo runs this program.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::host;

pub struct Stage {
    pub project: PathBuf,
    user: PathBuf,
    /// Removed with the stage.
    _dir: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> anyhow::Result<Stage> {
        let dir = tempfile::Builder::new().prefix("foreword-").tempdir();
        let dir = dir.context("could not make a throw-away home")?;
        let user = std::fs::canonicalize(dir.path())?.join("user");
        let project = user.join("work/pay");
        std::fs::create_dir_all(&project)?;
        Ok(Stage {
            project,
            user,
            _dir: dir,
        })
    }

    /// Runs a command and returns what it printed.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        Ok(self.run_with(arguments, "")?.0)
    }

    /// Runs a command or a hook with recorded input; returns what it printed and how long it took.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> anyhow::Result<(String, Duration)> {
        let input = input
            .replace("${PROJECT}", &self.project.to_string_lossy())
            .replace("${USER}", &self.user.to_string_lossy());
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(arguments)
            .current_dir(&self.project)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", &self.user)
            .env("FOREWORD_HOME", self.user.join(".foreword"))
            .env(host::default_client().project_variable, &self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {error}");
        Ok((String::from_utf8(output.stdout)?, began.elapsed()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A worker that a hook has just started does not hold its lock yet; `start` waits for it.
        let _ = self.run(&["worker", "start"]);
        let _ = self.run(&["worker", "stop"]);
    }
}
