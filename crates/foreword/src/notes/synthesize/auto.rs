//! Proposals that the worker makes, if `[notes] auto_synthesize_after` is set.
//!
//! A worker that ends with nothing left to do leaves a proposal in each project that got that
//! many notes since its last synthesis. It replaces no file.

use foreword_core::notes::Folder;
use foreword_core::notes::record::hash;
use foreword_core::project;
use foreword_core::store::Store;

use super::{Options, Synthesis, files};
use crate::config::Config;
use crate::config::policy::ProjectPolicy;
use crate::home::{self, Home};
use crate::log::Log;
use crate::switch::{self, Switches};

pub fn propose(home: &Home, config: &Config) {
    let after = config.notes.auto_synthesize_after as usize;
    if after == 0 || switch::off_in_environment() {
        return;
    }
    let roots = Store::look(&home.memory()).ok().flatten();
    let roots = roots.and_then(|it| it.roots().ok()).unwrap_or_default();
    let rules = home::project_rules(config.project.separate_worktrees);
    let switches = Switches::read(home);
    for root in roots {
        let Ok(folder) = Folder::at(&root, None) else {
            continue;
        };
        let project = project::resolve(&root, &rules).project;
        let policy = ProjectPolicy::of(Some(&root), project.as_deref(), &config.projects);
        let is_off = switches.covers(project.as_deref(), "") || policy.off().is_some();
        let notes = folder.notes().0.into_iter();
        let notes = notes.map(|it| (it.session, hash(&it.text))).collect();
        let news = files::last(&folder).news(&notes).len();
        if is_off || news < after {
            continue;
        }
        let root = root.display();
        let line = match leave_proposal(home, config, &folder) {
            Ok(false) => continue,
            Ok(true) => format!("left a proposal for {news} notes in {root}"),
            Err(error) => format!("could not make a proposal in {root}: {error:#}"),
        };
        Log::Work.line(home, &line);
    }
}

/// True if there is a new proposal.
fn leave_proposal(home: &Home, config: &Config, folder: &Folder) -> anyhow::Result<bool> {
    let options = Options::default();
    let synthesis = Synthesis::begin(home, config, folder, options, &|_| {})?;
    if synthesis.waiting()?.is_some() {
        return Ok(false);
    }
    let proposal = synthesis.propose()?;
    let is_new = synthesis.unchanged(&proposal)?.is_none();
    if is_new {
        proposal.leave(folder)?;
    }
    Ok(is_new)
}
