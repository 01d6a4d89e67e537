//! `foreword show ID`

use anyhow::Context as _;
use clap::ValueEnum;
use foreword_core::model::Kind;
use foreword_core::project::Place;
use foreword_core::store::{Item, Store};
use serde_json::json;

use crate::service;
use crate::service::embed_client;
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
    let home = service::home_to_write()?;
    let store = service::memory(&home)?.context("nothing is remembered yet")?;
    let here = service::current_place().unwrap_or_default();
    let item = find(&store, args.id, &here)?;
    let related = embed_client::related(&home, &store, item.id)?;
    match args.format {
        Format::Full => print!("{}{}", show::item(&item), show::related(&related)),
        Format::Json => {
            let mut value = show::item_json(&item);
            if item.body.kind() == Kind::Observation {
                value["related"] = json!(related);
            }
            println!("{}", show::json(&value));
        }
    }
    Ok(())
}

pub fn find(store: &Store, id: i64, here: &Place) -> anyhow::Result<Item> {
    let item = store.item_from(id, here)?;
    item.with_context(|| format!("there is no #{id}; find numbers with `foreword search WORDS`"))
}
