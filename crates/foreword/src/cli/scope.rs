//! Which projects, sessions and times a command looks at: the same flags wherever one looks back.

use anyhow::bail;
use foreword_core::model::Millis;
use foreword_core::search::Filter;
use foreword_core::store::Store;

use crate::service;
use crate::service::when::{When, when};

#[derive(clap::Args)]
pub struct Scope {
    /// A project by name or key instead of the current one; may be given several times
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,
    /// Every project, not only the current one
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// A session, by its id or how that begins
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What was done on a branch
    #[arg(long)]
    branch: Option<String>,
    /// Not before: 30d, 12h, today or 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<When>,
    /// Not after: 30d, 12h, today or 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = when)]
    until: Option<When>,
}

impl Scope {
    /// None where there is no project to look at: the current directory belongs to none.
    pub fn filter(&self, now: Millis) -> Option<Filter> {
        let projects = if self.all_projects {
            None
        } else if self.project.is_empty() {
            Some(vec![service::current_project()?])
        } else {
            Some(self.project.clone())
        };
        Some(Filter {
            projects,
            session: self.session.clone(),
            branch: self.branch.clone(),
            since: self.since.map(|when| when.start(now)),
            until: self.until.map(|when| when.end(now)),
            ..Filter::default()
        })
    }

    /// Projects that nobody knows are a slip of the hand.
    pub fn check(&self, store: Option<&Store>) -> anyhow::Result<()> {
        let unknown = store.map(|store| store.unknown_project(&self.project));
        match unknown.transpose()?.flatten() {
            Some(name) => bail!("no project is called '{name}'; `foreword projects` lists them"),
            None => Ok(()),
        }
    }

    pub fn is_current_project(&self) -> bool {
        !self.all_projects && self.project.is_empty()
    }
}
