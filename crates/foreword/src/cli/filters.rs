//! Flags that choose projects, sessions and times; several commands share them.

use anyhow::Context as _;
use foreword_core::search::Filter;

use crate::service::when::{When, when};
use crate::service::{self, Reader, named};

#[derive(clap::Args)]
pub struct ScopeFlags {
    /// A project by name or key instead of the current one; may be given several times
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,
    /// Every project, not only the current one
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// A session, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only what was done on this branch
    #[arg(long)]
    branch: Option<String>,
    /// From this time on: 30d, 12h, today or 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<When>,
    /// Up to this time: 30d, 12h, today or 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = when)]
    until: Option<When>,
}

impl ScopeFlags {
    /// An error in a directory that belongs to no project, unless the flags name projects.
    pub fn filter(&self, reader: &Reader) -> anyhow::Result<Filter> {
        let projects = if self.all_projects {
            None
        } else if self.project.is_empty() {
            let current = reader.place.project.clone();
            Some(vec![current.context(
                "not a project directory; --all-projects looks at every project",
            )?])
        } else {
            Some(self.project.clone())
        };
        Ok(Filter {
            projects,
            session: self.session(reader)?,
            branch: self.branch.clone(),
            since: self.since.map(|when| when.start(reader.now)),
            until: self.until.map(|when| when.end(reader.now)),
            ..Filter::default()
        })
    }

    /// The whole id of the session; an error if there is none, or several begin so.
    fn session(&self, reader: &Reader) -> anyhow::Result<Option<String>> {
        let Some(id) = &self.session else {
            return Ok(None);
        };
        Ok(match service::memory(&reader.home)? {
            Some(store) => Some(named::session(&store, id)?.id),
            None => Some(id.clone()),
        })
    }
}
