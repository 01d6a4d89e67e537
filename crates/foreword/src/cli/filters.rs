//! Flags that choose items, projects, sessions and times; several commands share them.

use anyhow::Context as _;
use foreword_core::model::{Kind, ObservationType, Origin};
use foreword_core::search::Filter;

use crate::service::search::named as named_value;
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
    /// Whether projects are named, or all of them are wanted.
    pub fn names_projects(&self) -> bool {
        self.all_projects || !self.project.is_empty()
    }

    /// An error in a directory that belongs to no project, unless the flags name projects.
    pub fn filter(&self, reader: &Reader) -> anyhow::Result<Filter> {
        let mut filter = self.filter_everywhere(reader)?;
        if !self.names_projects() {
            let current = reader.place.project.clone();
            filter.projects =
                Some(vec![current.context(
                    "not a project directory; --all-projects looks at every project",
                )?]);
        }
        Ok(filter)
    }

    /// The same, but of every project unless the flags name some.
    pub fn filter_everywhere(&self, reader: &Reader) -> anyhow::Result<Filter> {
        let named = Some(self.project.clone()).filter(|it| !it.is_empty());
        Ok(Filter {
            projects: named,
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

/// Flags that choose items by what they are.
#[derive(clap::Args)]
pub struct ItemFlags {
    /// decision, bugfix, feature, refactor or discovery
    #[arg(long = "type", value_name = "TYPE", value_parser = named_value::<ObservationType>)]
    observation_type: Option<ObservationType>,
    /// A concept, as in "concepts" of `foreword show`
    #[arg(long)]
    concept: Option<String>,
    /// A file by its path or the end of it, or a folder
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// observation, summary, prompt or note
    #[arg(long, value_parser = named_value::<Kind>)]
    kind: Option<Kind>,
    /// The number of a prompt in its session
    #[arg(long, value_name = "NUMBER")]
    prompt: Option<u32>,
    /// Where it comes from: user, agent, read or import
    #[arg(long, value_parser = named_value::<Origin>)]
    origin: Option<Origin>,
}

impl ItemFlags {
    /// A scope, narrowed to these items.
    pub fn filter(&self, reader: &Reader, scope: Filter) -> Filter {
        let file = self.file.as_deref();
        Filter {
            kind: self.kind,
            observation_type: self.observation_type,
            concept: self.concept.clone(),
            file: file.and_then(|file| reader.place.name_of(file)),
            prompt: self.prompt,
            origin: self.origin,
            ..scope
        }
    }
}
