//! `foreword search WORDS`

use clap::ValueEnum;
use foreword_core::search::{Query, search};
use foreword_core::store::Store;

use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// What to look for
    #[arg(required = true)]
    words: Vec<String>,
    /// How many hits at most
    #[arg(long, default_value_t = 10)]
    limit: u32,
    /// Search every project, not only the current one
    #[arg(long)]
    all_projects: bool,
    #[arg(long, value_enum, default_value_t = Format::Index)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line each
    Index,
    /// Everything about each
    Full,
    Json,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = super::home()?;
    let words = args.words.join(" ");
    let project = super::current_project();
    let store = Store::look(&home.memory())?;
    let in_scope = args.all_projects || project.is_some();
    let hits = match &store {
        Some(store) if in_scope => search(
            store,
            &Query {
                words: &words,
                project: project.as_deref().filter(|_| !args.all_projects),
                limit: args.limit,
            },
        )?,
        _ => Vec::new(),
    };
    match args.format {
        Format::Json => println!("{}", show::json(&show::hits_json(&hits))),
        _ if hits.is_empty() => println!("{}", no_hits(&words, in_scope, args.all_projects)),
        Format::Index => print!("{}", show::hits(&hits)),
        Format::Full => {
            for hit in &hits {
                if let Some(item) = store
                    .as_ref()
                    .map(|it| it.item(hit.id))
                    .transpose()?
                    .flatten()
                {
                    println!("{}", show::item(&item));
                }
            }
        }
    }
    Ok(())
}

fn no_hits(words: &str, in_scope: bool, all_projects: bool) -> String {
    let words = foreword_core::text::one_line(words);
    if !in_scope {
        return "this directory is no project; search with --all-projects".to_owned();
    }
    let hint = if all_projects {
        ""
    } else {
        " in this project; try --all-projects"
    };
    format!("nothing about “{words}” is remembered{hint}")
}
