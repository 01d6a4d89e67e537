//! `foreword projects`: lists projects, and renames, merges, moves or forgets them.

use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use foreword_core::store::{Project, Store};
use foreword_core::text::{count, one_line};
use serde_json::json;

use super::JsonArgs;
use super::targets::ChangeFlags;
use crate::service::{self, Reader, hands};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<ProjectsAction>,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Subcommand)]
enum ProjectsAction {
    /// Give a project another name
    Rename {
        /// Its name, one of its keys, or a folder of it
        project: String,
        name: String,
    },
    /// Make two projects one: everything of the first belongs to the second from now on
    Merge { from: String, into: String },
    /// Delete a project with all its items for good
    Forget {
        /// Its name, one of its keys, or a folder of it
        project: String,
        #[command(flatten)]
        change: ChangeFlags,
    },
    /// Set where a project is now: a repository that was moved, or that got a remote
    Move {
        project: String,
        /// Its new folder
        folder: String,
    },
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let Some(action) = &args.action else {
        let projects = match service::memory(&home)? {
            Some(store) => store.projects()?,
            None => Vec::new(),
        };
        show::print_recalled(
            args.json.json(),
            || json!(projects),
            || show::projects(&projects),
        );
        return Ok(());
    };
    let mut store = Store::open(&home.memory(), &home.backups())?;
    let projects = store.projects()?;
    match action {
        ProjectsAction::Rename { project, name } => {
            let project = find(&projects, project)?;
            store.rename_project(project.id, name)?;
            let (old, new) = (one_line(&project.name), one_line(name));
            println!("{old} is called {new} now");
        }
        ProjectsAction::Merge { from, into } => {
            let (from, into) = (find(&projects, from)?, find(&projects, into)?);
            if from.id == into.id {
                bail!("these are one project already");
            }
            store.merge_projects(from.id, into.id)?;
            println!(
                "{} is part of {} now: {}, {}",
                one_line(&from.name),
                one_line(&into.name),
                count(from.sessions, "session", "sessions"),
                count(from.observations, "observation", "observations")
            );
        }
        ProjectsAction::Forget { project, change } => {
            let project = find(&projects, project)?;
            let ids = store.items_of_project(project.id)?;
            let name = one_line(&project.name);
            let items = count(ids.len() as u64, "item", "items");
            let mut changed = Vec::new();
            if !change.dry_run {
                if !change.agreed(&format!("Forget {name} with its {items} for good?"))? {
                    return Ok(());
                }
                drop(store);
                changed = hands::forget_project(&Reader::here()?, project.id)?;
            }
            let would = if change.dry_run {
                "Would forget"
            } else {
                "Forgotten for good:"
            };
            show::print(
                change.json,
                || json!({"action": "forget", "project": project.name, "count": ids.len(), "changed": changed, "dry_run": change.dry_run}),
                || format!("{would} {name} with its {items}.\n"),
            );
        }
        ProjectsAction::Move { project, folder } => {
            let project = find(&projects, project)?;
            let key = service::project_of(Path::new(folder)).with_context(|| {
                format!("{folder} is not a project; a home or temporary directory never is")
            })?;
            let name = one_line(&project.name);
            match projects.iter().find(|other| other.keys.contains(&key)) {
                Some(other) if other.id == project.id => println!("{name} is known to be there"),
                Some(other) => {
                    store.merge_projects(other.id, project.id)?;
                    println!("{name} is there now; what was remembered there is part of it");
                }
                None => {
                    store.add_project_key(project.id, &key)?;
                    println!("{name} is found at {} too", one_line(&key));
                }
            }
        }
    }
    Ok(())
}

/// The project with this name (if only one has it), key or folder.
fn find<'a>(projects: &'a [Project], wanted: &str) -> anyhow::Result<&'a Project> {
    let by_key = |key: &str| {
        projects
            .iter()
            .find(|project| project.keys.iter().any(|it| it == key))
    };
    let named = projects.iter().filter(|project| project.name == wanted);
    let named: Vec<&Project> = named.collect();
    match named.as_slice() {
        [one] => return Ok(one),
        [_, ..] => {
            let keys: Vec<_> = named.iter().flat_map(|it| it.keys.clone()).collect();
            let keys = keys.join(", ");
            bail!("several projects are called {wanted}; name one by its key: {keys}");
        }
        [] => {}
    }
    by_key(wanted)
        .or_else(|| by_key(&service::project_of(Path::new(wanted))?))
        .with_context(|| format!("there is no project {wanted}; `foreword projects` lists them"))
}
