//! `foreword export` and `foreword import file`: the memory as a file, to carry away and to read in.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Subcommand, ValueEnum};
use foreword_core::export::Export;
use foreword_core::files::{self, ReadError};
use foreword_core::search;
use serde_json::json;

use super::targets::TargetFlags;
use crate::service::{Reader, hands};
use crate::show;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// Everything, to be read in again by `foreword import file`
    #[default]
    Json,
    /// To read
    Markdown,
}

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    targets: TargetFlags,
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormat,
}

pub fn export(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let mut ids = args.targets.ids.clone();
    if args.targets.by_filter() {
        let filter = args.targets.filter_everywhere(&reader)?;
        reader.check_projects(&store, &filter)?;
        ids = search::ids(&store, &filter)?;
    }
    ids.sort_unstable();
    ids.dedup();
    if let Some(id) = args
        .targets
        .ids
        .iter()
        .find(|id| !matches!(store.item(**id), Ok(Some(_))))
    {
        anyhow::bail!("there is no #{id}; find numbers with `foreword search WORDS`");
    }
    let export = hands::export(&store, &ids)?;
    match args.format {
        ExportFormat::Json => println!("{}", show::json(&json!(export))),
        ExportFormat::Markdown => print!("{}", show::export_markdown(&export)),
    }
    Ok(())
}

#[derive(clap::Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    source: ImportSource,
}

#[derive(Subcommand)]
enum ImportSource {
    /// Read in a file that `foreword export` wrote
    File(FileArgs),
}

#[derive(clap::Args)]
struct FileArgs {
    path: PathBuf,
    /// It is your own memory, of another data directory: keep its origins, pins and rules
    #[arg(long)]
    mine: bool,
    /// Show what would be read in, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The largest file that is read.
const FILE_MAX: u64 = 512 * 1024 * 1024;

pub fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let ImportSource::File(args) = &args.source;
    let path = args.path.display().to_string();
    let bytes = match files::read(&args.path, FILE_MAX) {
        Err(ReadError::TooLarge(_)) => {
            bail!("{path} is larger than 512 MB; export fewer items at a time, with filters")
        }
        read => read.with_context(|| format!("could not read {path}"))?,
    };
    let export = Export::read(&bytes).with_context(|| path.clone())?;
    let reader = Reader::here()?;
    let from = args.path.file_name().unwrap_or_default().to_string_lossy();
    let imported = hands::import(&reader, &export, &from, args.mine, args.dry_run)?;
    show::print(
        args.json,
        || {
            let mut value = json!(imported);
            value["dry_run"] = args.dry_run.into();
            value
        },
        || show::imported(&imported, args.dry_run),
    );
    Ok(())
}
