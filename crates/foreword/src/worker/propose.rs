//! Proposes a master where enough notes came together, for those who want that
//! (`notes.auto_synthesize_after`).
//!
//! It runs `foreword synthesize` as a person would who does not say yes: what comes of it is
//! `_memory/proposal.md`, and the master stays as it is. A process of its own, so that the
//! worker goes on meanwhile, and one that does not outlive it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use foreword_core::notes::Folder;
use tokio::process::{Child, Command};

use super::Worker;
use crate::log::Log;
use crate::platform;
use crate::switch::Switches;

/// A proposal that is being made, and where one was made already.
#[derive(Default)]
pub struct Proposals {
    running: Option<Child>,
    made: Vec<PathBuf>,
}

impl Worker<'_> {
    /// Begins a proposal if one is due; says whether one is being made.
    pub(super) fn propose(&mut self) -> bool {
        let running = self.proposals.running.as_mut();
        if let Some(Ok(None)) = running.map(Child::try_wait) {
            return true;
        }
        self.proposals.running = None;
        let after = self.config.notes.auto_synthesize_after;
        if after == 0 {
            return false;
        }
        let places = self.deriver.store.roots().unwrap_or_default();
        let switches = Switches::read(self.home);
        let due = places.into_iter().find(|(project, root)| {
            !switches.covers(Some(project), "")
                && !self.proposals.made.iter().any(|it| it == Path::new(root))
                && is_due(Path::new(root), after)
        });
        let Some((project, root)) = due else {
            return false;
        };
        self.proposals.made.push(root.clone().into());
        self.proposals.running = platform::program()
            .and_then(|(program, _)| start(&program, Path::new(&root)))
            .inspect_err(|error| self.log(&format!("no master was proposed: {error}")))
            .ok();
        let line = format!("a master is proposed in {project}");
        Log::Work.line(self.home, &line);
        self.proposals.running.is_some()
    }
}

fn is_due(root: &Path, after: usize) -> bool {
    Folder::at(root, None).is_ok_and(|folder| {
        !folder.path.join("proposal.md").exists() && folder.newer().len() >= after
    })
}

fn start(program: &Path, root: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command
        .arg("synthesize")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    platform::bind_to_us(&mut command);
    command.spawn()
}
