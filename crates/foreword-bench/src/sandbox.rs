//! A throw-away home with a project, in which benches run the program.
//!
//! The worker is a real one, started and ended as a user would. Dropping the sandbox ends it
//! and removes the folder.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use foreword_core::capture::{self, CaptureSettings, Captured, Hook};
use foreword_core::host::DEFAULT_HOST;
use foreword_core::model::Event;
use foreword_core::project::{self, Rules};
use foreword_core::queue::Queue;
use uuid::Uuid;

use super::host::{FakeHost, PROJECT_VARIABLE};
use foreword::home::{self, Home};
use foreword::platform::{self, Lock};
use foreword::start;
use foreword::start::wait_for_lock;

/// A data directory, a fake host with its project, and the program to run.
pub struct BenchSandbox {
    pub program: PathBuf,
    pub home: Home,
    pub host: FakeHost,
    /// Further variables for every program.
    pub environment: Vec<(&'static str, String)>,
    dir: tempfile::TempDir,
}

impl BenchSandbox {
    pub fn new(program: &Path) -> anyhow::Result<BenchSandbox> {
        let dir = tempfile::Builder::new()
            .prefix("foreword-")
            .tempdir()
            .context("could not make a throw-away home")?;
        let project = std::fs::canonicalize(dir.path())?.join("user/work/pay");
        std::fs::create_dir_all(&project)?;
        make_repository(&project)?;
        Ok(BenchSandbox {
            program: program.to_owned(),
            home: Home::at(dir.path().join("user/.foreword")),
            host: FakeHost::new(project),
            environment: Vec::new(),
            dir,
        })
    }

    /// A command in the environment of a hook; `program` may be the reference.
    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", self.user())
            .env("FOREWORD_HOME", self.home.dir())
            .env(PROJECT_VARIABLE, &self.host.project)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The folder of the made-up user.
    fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// Recorded input with its placeholders replaced by this sandbox's folders.
    pub fn with_folders(&self, input: &str) -> String {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        input
            .replace("${PROJECT}", &text(&self.host.project))
            .replace("${USER}", &text(&self.user()))
    }

    /// The key of the project.
    pub fn project_key(&self) -> String {
        let place = project::resolve(&self.host.project, &Rules::default());
        place.project.unwrap_or_default()
    }

    /// Starts a worker if none runs, and waits until it has processed everything.
    pub fn drain(&self) -> anyhow::Result<()> {
        self.start_worker()?;
        let printed = self.run(&["worker", "drain"])?;
        ensure!(printed.starts_with("everything is processed"), "{printed}");
        Ok(())
    }

    /// Puts `count` events into the queue, then wakes the worker.
    pub fn pile_up(&mut self, count: u32) -> anyhow::Result<()> {
        let queue = Queue::open(&self.home.queue(), &self.home.backups())?;
        for _ in 0..count {
            let input = self.host.bash(5_000);
            queue.push(&captured(&input, Some(&self.host.project))?)?;
        }
        // `start::wake_worker` would start this program as a worker if none runs.
        UnixDatagram::unbound()?.send_to(start::WAKE, self.home.socket())?;
        Ok(())
    }

    pub fn start_worker(&self) -> anyhow::Result<()> {
        self.run(&["worker", "start"]).map(drop)
    }

    /// Keeps hooks from starting a worker, with a stamp of one that just failed for the tenth time.
    pub fn keep_workers_away(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.home.dir())?;
        let stamp = format!("10 {}", home::now());
        Ok(std::fs::write(self.home.start_stamp(), stamp)?)
    }

    /// Ends the worker, if there is one, and removes the stamp that would delay the next.
    pub fn end_worker(&self) -> anyhow::Result<()> {
        if let Some(pid) = Lock::holder(&self.home.lock())? {
            platform::terminate(pid)?;
            wait_for_lock(&self.home, |holder| holder != Some(pid))?;
        }
        start::clear_stamp(&self.home);
        Ok(())
    }

    /// Ends the worker that a hook has just started, after it has processed everything. A worker
    /// that is ended while it starts does not close its databases, so the next hook would find a
    /// write-ahead log that an idle worker removes at its end.
    pub fn end_started_worker(&self) -> anyhow::Result<()> {
        let started = wait_for_lock(&self.home, |holder| holder.is_some())?;
        ensure!(started.is_some(), "the hook did not start a worker");
        self.drain()?;
        self.end_worker()
    }

    /// Runs a command of the program, which must succeed; returns its output.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self
            .command(&self.program, arguments)
            .current_dir(&self.host.project)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("could not run {}", self.program.display()))?;
        ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for BenchSandbox {
    fn drop(&mut self) {
        // A hook may have started a worker that does not hold the lock yet.
        if self.home.start_stamp().exists() {
            let _ = self.end_started_worker();
        }
        let _ = self.end_worker();
    }
}

/// The event that a hook makes of an input, with the default settings.
pub fn captured(input: &str, project: Option<&Path>) -> anyhow::Result<Event> {
    let context = capture::CaptureContext {
        host: DEFAULT_HOST,
        now: home::now(),
        event_id: Uuid::now_v7(),
        project_dir: project.map(Path::to_owned),
        rules: Rules::default(),
    };
    match capture::capture(
        Hook::Save,
        input.as_bytes(),
        &context,
        &CaptureSettings::default(),
    ) {
        Captured::Event(event) => Ok(*event),
        Captured::Dropped(reason) => bail!("capture dropped the input of the bench: {reason}"),
    }
}

/// Writes the few files of a git repository that a hook reads.
fn make_repository(project: &Path) -> anyhow::Result<()> {
    let git = project.join(".git");
    std::fs::create_dir_all(git.join("refs/heads"))?;
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(
        git.join("refs/heads/main"),
        "0123456789abcdef0123456789abcdef01234567\n",
    )?;
    std::fs::write(
        git.join("config"),
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/acme/pay.git\n",
    )?;
    Ok(())
}
