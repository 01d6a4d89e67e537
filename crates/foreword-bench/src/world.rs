//! A throw-away home with a project, and the program in it.
//!
//! The worker here is the program's own, started and ended as a user would. It is
//! ended when the world goes, so that a bench leaves no process and no folder.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use foreword_core::capture::{self, CaptureSettings, Captured, Hook};
use foreword_core::model::Event;
use foreword_core::project::{self, Rules};
use foreword_core::queue::Queue;
use uuid::Uuid;

use super::host::Host;
use foreword::home::{self, Home};
use foreword::platform::{self, Lock};
use foreword::start;
use foreword::start::control::wait_for_lock;

pub struct World {
    pub program: PathBuf,
    pub home: Home,
    pub host: Host,
    /// What every program gets to know besides.
    pub environment: Vec<(&'static str, String)>,
    dir: tempfile::TempDir,
}

impl World {
    pub fn new(program: &Path) -> anyhow::Result<World> {
        let dir = tempfile::Builder::new()
            .prefix("foreword-")
            .tempdir()
            .context("could not make a throw-away home")?;
        let project = std::fs::canonicalize(dir.path())?.join("user/work/pay");
        std::fs::create_dir_all(&project)?;
        make_repository(&project)?;
        Ok(World {
            program: program.to_owned(),
            home: Home::at(dir.path().join("user/.foreword")),
            host: Host::new(project),
            environment: Vec::new(),
            dir,
        })
    }

    /// A program in the environment that hooks get; the same for the reference.
    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", self.user())
            .env("FOREWORD_HOME", self.home.dir())
            .env("CLAUDE_PROJECT_DIR", &self.host.project)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The folder of the made-up user.
    fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// Recorded input, with this world's folders in it.
    pub fn with_folders(&self, input: &str) -> String {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        input
            .replace("${PROJECT}", &text(&self.host.project))
            .replace("${USER}", &text(&self.user()))
    }

    /// What the resolver will call the project.
    pub fn project_key(&self) -> String {
        let place = project::resolve(&self.host.project, &Rules::default());
        place.project.unwrap_or_default()
    }

    /// Sees to it that a worker runs and has nothing left to do.
    pub fn drain(&self) -> anyhow::Result<()> {
        self.start_worker()?;
        let said = self.run(&["worker", "drain"])?;
        ensure!(said.starts_with("everything is processed"), "{said}");
        Ok(())
    }

    /// Queues so many events behind the worker's back, then wakes it.
    pub fn pile_up(&mut self, count: u32) -> anyhow::Result<()> {
        let queue = Queue::open(&self.home.queue(), &self.home.backups())?;
        for _ in 0..count {
            let input = self.host.bash(5_000);
            queue.push(&captured(&input, Some(&self.host.project))?)?;
        }
        // `start::wake_worker` would start this program as a worker if none lives.
        UnixDatagram::unbound()?.send_to(start::WAKE, self.home.socket())?;
        Ok(())
    }

    pub fn start_worker(&self) -> anyhow::Result<()> {
        self.run(&["worker", "start"]).map(drop)
    }

    /// Has hooks believe that a worker was started just now and failed often.
    pub fn keep_workers_away(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.home.dir())?;
        let stamp = format!("10 {}", home::now());
        Ok(std::fs::write(self.home.start_stamp(), stamp)?)
    }

    /// Ends the worker, if there is one, and clears what would delay the next.
    pub fn end_worker(&self) -> anyhow::Result<()> {
        if let Some(pid) = Lock::holder(&self.home.lock())? {
            platform::terminate(pid)?;
            wait_for_lock(&self.home, |holder| holder != Some(pid))?;
        }
        start::clear_stamp(&self.home);
        Ok(())
    }

    /// Ends the worker that a hook has just started, once it has done its work. One that
    /// is ended while it comes up dies without closing its files, and the next hook finds
    /// a log there that an idle worker's end might have removed.
    pub fn end_started_worker(&self) -> anyhow::Result<()> {
        let started = wait_for_lock(&self.home, |holder| holder.is_some())?;
        ensure!(started.is_some(), "the hook did not start a worker");
        self.drain()?;
        self.end_worker()
    }

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

impl Drop for World {
    fn drop(&mut self) {
        // A hook may have started a worker that does not hold the lock yet.
        if self.home.start_stamp().exists() {
            let _ = self.end_started_worker();
        }
        let _ = self.end_worker();
    }
}

/// What a hook would make of an input, with the default settings.
pub fn captured(input: &str, project: Option<&Path>) -> anyhow::Result<Event> {
    let context = capture::CaptureContext {
        host: &foreword_core::host::HOSTS[0],
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
        Captured::Dropped(reason) => bail!("an input of ours was dropped: {reason}"),
    }
}

/// A repository as a hook sees it: the few files that it reads.
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
