//! Which projects, sessions and times a command looks at: the same flags wherever one looks back.

use anyhow::Context as _;
use foreword_core::search::Filter;

use crate::service::Reader;
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
            session: self.session.clone(),
            branch: self.branch.clone(),
            since: self.since.map(|when| when.start(reader.now)),
            until: self.until.map(|when| when.end(reader.now)),
            ..Filter::default()
        })
    }
}
