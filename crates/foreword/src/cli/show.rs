//! `foreword show ID`

use clap::ValueEnum;
use foreword_core::model::Kind;
use foreword_core::search::same_turn;
use serde_json::json;

use crate::service::{Reader, embed_client};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// Its number, as in #12
    #[arg(value_parser = number)]
    id: i64,
    #[arg(long, value_enum, default_value_t = ShowFormat::Full)]
    format: ShowFormat,
    /// Add what was changed by hand, and what it was before
    #[arg(long)]
    history: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShowFormat {
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
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let item = reader.item(&store, args.id)?;
    let related = embed_client::related(&reader.home, &store, item.id)?;
    let turn = same_turn(&store, item.id)?;
    let history = match args.history {
        true => Some((store.editable(item.id).ok(), store.history(item.id)?)),
        false => None,
    };
    match args.format {
        ShowFormat::Full => {
            print!(
                "{}{}{}",
                show::item(&item),
                show::same_turn(&turn),
                show::related(&related)
            );
            if let Some((now, changes)) = &history {
                print!("{}", show::history(now.as_ref(), changes));
            }
        }
        ShowFormat::Json => {
            let mut value = json!(item);
            value["same_turn"] = turn.iter().map(|it| it.id).collect();
            if item.body.kind() == Kind::Observation {
                value["related"] = json!(related);
            }
            if let Some((_, changes)) = &history {
                value["history"] = json!(changes);
            }
            println!("{}", show::json(&value));
        }
    }
    Ok(())
}
