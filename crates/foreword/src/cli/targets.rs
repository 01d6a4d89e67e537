//! The items that a command changes: by their numbers, or by the filters of `search` after showing how
//! many they are.

use anyhow::{bail, ensure};
use foreword_core::search::{self, Filter};
use foreword_core::store::Store;

use super::filters::{ItemFlags, ScopeFlags};
use super::notes::confirm;
use super::show::number;
use crate::service::Reader;
use crate::show;

#[derive(clap::Args)]
pub struct TargetFlags {
    /// Numbers, as in #12; without numbers, everything that passes the filters
    #[arg(value_name = "ID", value_parser = number)]
    pub ids: Vec<i64>,
    #[command(flatten)]
    items: ItemFlags,
    #[command(flatten)]
    scope: ScopeFlags,
}

/// Flags of every command that changes something.
#[derive(clap::Args)]
pub struct ChangeFlags {
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl TargetFlags {
    /// Whether items are chosen by filters.
    pub fn by_filter(&self) -> bool {
        self.ids.is_empty()
    }

    /// The numbers that were given or that pass the filters, in order; an error if there is neither a
    /// number nor a filter, or if nothing passes.
    pub fn resolve(&self, reader: &Reader, store: &Store) -> anyhow::Result<Vec<i64>> {
        let filter = self.filter(reader)?;
        let is_narrowed = self.scope.names_projects() || !filter.is_only_projects();
        if !self.ids.is_empty() {
            ensure!(
                !is_narrowed,
                "give either numbers or filters, not both: the numbers alone choose the items"
            );
            let mut ids = self.ids.clone();
            ids.sort_unstable();
            ids.dedup();
            return Ok(ids);
        }
        ensure!(
            is_narrowed,
            "name items by their numbers, or by filters such as --session ID or --since 7d"
        );
        reader.check_projects(store, &filter)?;
        let mut ids = search::ids(store, &filter)?;
        ids.sort_unstable();
        ensure!(!ids.is_empty(), "nothing passes these filters");
        Ok(ids)
    }

    /// The filter of an export: of every project unless some are named.
    pub fn filter_everywhere(&self, reader: &Reader) -> anyhow::Result<Filter> {
        let scope = self.scope.filter_everywhere(reader)?;
        Ok(self.items.filter(reader, scope))
    }

    fn filter(&self, reader: &Reader) -> anyhow::Result<Filter> {
        let scope = match (self.ids.is_empty(), self.scope.filter(reader)) {
            (_, Ok(scope)) => scope,
            // Numbers need no project.
            (false, Err(_)) => Filter::default(),
            (true, Err(error)) => return Err(error),
        };
        Ok(self.items.filter(reader, scope))
    }
}

impl ChangeFlags {
    /// Whether to go on. Asks on a terminal unless `--yes` was given; without a terminal it is an error.
    pub fn agreed(&self, question: &str) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        match confirm(question)? {
            Some(true) => Ok(true),
            Some(false) => {
                println!("Nothing was changed.");
                Ok(false)
            }
            None => bail!(
                "{question} Nobody can be asked here: add --yes, or --dry-run to see what it would be"
            ),
        }
    }

    /// Prints what would change or did, as text or as JSON.
    pub fn print(&self, report: &show::HandsReport) {
        show::print(self.json, || report.json(self.dry_run), || report.text());
        if self.dry_run && !self.json {
            eprintln!("Nothing was changed: this was a dry run.");
        }
    }
}
