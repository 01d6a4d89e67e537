//! For who wants it (`[notes] auto_synthesize_after`): a worker that ends with nothing left to do leaves a
//! proposal in projects where that many notes came since the last synthesis.
//!
//! It runs `foreword synthesize` there, which replaces nothing where nobody can be asked.

use std::process::{Command, Stdio};

use foreword_core::notes::Folder;
use foreword_core::notes::record::hash;
use foreword_core::project;
use foreword_core::store::Store;

use super::files;
use crate::config::Config;
use crate::home::{self, Home};
use crate::log::Log;
use crate::platform;
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
        let is_off = switches.covers(project::resolve(&root, &rules).project.as_deref(), "");
        let notes = folder.notes().0.into_iter();
        let notes = notes.map(|it| (it.session, hash(&it.text))).collect();
        let news = files::last(&folder).news(&notes).len();
        if is_off || news < after {
            continue;
        }
        let proposal = || std::fs::read(folder.path.join("proposal.md")).ok();
        let before = proposal();
        let Ok((program, _)) = platform::program() else {
            return;
        };
        let run = Command::new(program)
            .arg("synthesize")
            .current_dir(&root)
            .env("FOREWORD_HOME", home.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if run.is_ok() && proposal() != before {
            let root = root.display();
            Log::Work.line(home, &format!("left a proposal for {news} notes in {root}"));
        }
    }
}
