//! `foreword show ID`: everything about an item, or about a session and its items.

use clap::ValueEnum;
use foreword_core::model::Kind;
use foreword_core::search::{Filter, same_turn, sessions};
use foreword_core::store::{HostSession, Store};
use serde_json::json;

use crate::service::named::{Named, named};
use crate::service::{Reader, embed_client};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// The number of an item, as in #12, or the id of a session or the beginning of it
    id: String,
    #[arg(long, value_enum, default_value_t = ShowFormat::Full)]
    format: ShowFormat,
    /// Add what was changed by hand, and what it was before
    #[arg(long)]
    history: bool,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
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
    let as_json = args.json || args.format == ShowFormat::Json;
    match named(&store, &args.id)? {
        Named::Item(id) => item(&reader, &store, id, args.history, as_json),
        Named::Session(it) => session(&reader, &store, &it, as_json),
    }
}

fn item(
    reader: &Reader,
    store: &Store,
    id: i64,
    with_history: bool,
    as_json: bool,
) -> anyhow::Result<()> {
    let item = reader.item(store, id)?;
    let related = embed_client::related(&reader.home, store, item.id)?;
    let turn = same_turn(store, item.id)?;
    let history = match with_history {
        true => Some((store.editable(item.id).ok(), store.history(item.id)?)),
        false => None,
    };
    let to_json = || {
        let mut value = json!(item);
        value["same_turn"] = turn.iter().map(|it| it.id).collect();
        if item.body.kind() == Kind::Observation {
            value["related"] = json!(related);
        }
        if let Some((_, changes)) = &history {
            value["history"] = json!(changes);
        }
        value
    };
    show::print_recalled(as_json, to_json, || {
        let history = history.as_ref();
        let history = history.map(|(now, changes)| show::history(now.as_ref(), changes));
        show::item(&item)
            + &show::same_turn(&turn)
            + &show::related(&related)
            + &history.unwrap_or_default()
    });
    Ok(())
}

fn session(
    reader: &Reader,
    store: &Store,
    session: &HostSession,
    as_json: bool,
) -> anyhow::Result<()> {
    let filter = Filter {
        session: Some(session.id.clone()),
        ..Filter::default()
    };
    let title = sessions(store, &filter, 1)?.pop();
    let items = reader.items_of(store, session)?;
    let to_json = || {
        let mut value = title
            .as_ref()
            .map_or(json!({"session": session.id}), |it| json!(it));
        value["items"] = show::hits_json(&items);
        value
    };
    show::print_recalled(as_json, to_json, || {
        show::session(&session.id, title.as_ref(), &items)
    });
    Ok(())
}
