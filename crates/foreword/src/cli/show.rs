//! `foreword show ID`

use anyhow::Context as _;
use clap::ValueEnum;
use foreword_core::store::{Item, Store};

use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Its number, as in #12
    #[arg(value_parser = number)]
    id: i64,
    #[arg(long, value_enum, default_value_t = Format::Full)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Full,
    Json,
}

pub fn number(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    digits
        .parse()
        .map_err(|_| format!("'{text}' is not a number; write it as in #12"))
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = super::home()?;
    let store = Store::look(&home.memory())?.context("nothing is remembered yet")?;
    let item = find(&store, args.id)?;
    match args.format {
        Format::Full => print!("{}", show::item(&item)),
        Format::Json => println!("{}", show::json(&show::item_json(&item))),
    }
    Ok(())
}

pub fn find(store: &Store, id: i64) -> anyhow::Result<Item> {
    let item = store.item(id)?;
    item.with_context(|| format!("there is no #{id}; find numbers with `foreword search WORDS`"))
}
