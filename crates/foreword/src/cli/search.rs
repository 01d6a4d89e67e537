//! `foreword search [WORDS]`

use clap::ValueEnum;
use foreword_core::model::{Kind, ObservationType, Origin};
use foreword_core::search::{
    Answer, Filter, Found, HITS_PER_SESSION, Query, Sort, freshen, sessions_of,
};

use super::scope::Scope;
use crate::service;
use crate::service::embed_client;
use crate::{home, show};

#[derive(clap::Args)]
pub struct Args {
    /// What to look for; without words, everything that the filters let through
    #[arg(required_unless_present_any = FILTERS)]
    words: Vec<String>,
    /// decision, bugfix, feature, refactor or discovery
    #[arg(long = "type", value_name = "TYPE", value_parser = observation_type)]
    observation_type: Option<ObservationType>,
    /// What it is about, as in "concepts" of `foreword show`
    #[arg(long)]
    concept: Option<String>,
    /// A file by its path or the end of it, or a folder
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// observation, summary, prompt or note
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// The number of a prompt in its session
    #[arg(long, value_name = "NUMBER")]
    prompt: Option<u32>,
    /// Whose word it rests on: user, agent, read or import
    #[arg(long, value_parser = origin)]
    origin: Option<Origin>,
    #[command(flatten)]
    scope: Scope,
    /// How many hits at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How many of the best to leave out
    #[arg(long, default_value_t = 0)]
    offset: u32,
    #[arg(long, value_enum, default_value_t = By::Relevance)]
    sort: By,
    #[arg(long, value_enum, default_value_t = Format::Index)]
    format: Format,
}

const FILTERS: [&str; 13] = [
    "observation_type",
    "concept",
    "file",
    "kind",
    "prompt",
    "origin",
    "session",
    "branch",
    "since",
    "until",
    "project",
    "all_projects",
    "sort",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Relevance,
    /// The newest first
    Date,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The sessions that the hits are from
    Sessions,
    /// And what their prompts came to
    Summaries,
    /// One line each
    Index,
    /// The facts of each
    Facts,
    /// Everything about each
    Full,
    Json,
}

fn observation_type(word: &str) -> Result<ObservationType, String> {
    one_of(word, ObservationType::parse(word), ObservationType::ALL)
}

fn kind(word: &str) -> Result<Kind, String> {
    one_of(word, Kind::parse(word), Kind::ALL)
}

fn origin(word: &str) -> Result<Origin, String> {
    one_of(word, Origin::parse(word), Origin::ALL)
}

fn one_of<T: ToString>(word: &str, parsed: Option<T>, all: &[T]) -> Result<T, String> {
    let all: Vec<_> = all.iter().map(ToString::to_string).collect();
    parsed.ok_or_else(|| format!("'{word}' is none of {}", all.join(", ")))
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let words = args.words.join(" ");
    let here = service::current_place().unwrap_or_default();
    let filter = args.scope.filter(home::now()).map(|filter| Filter {
        kind: args.kind,
        observation_type: args.observation_type,
        concept: args.concept.clone(),
        file: args.file.as_deref().and_then(|file| here.name_of(file)),
        prompt: args.prompt,
        origin: args.origin,
        ..filter
    });
    let store = service::memory_with_notes(&home, &here)?;
    args.scope.check(store.as_ref())?;
    let in_scope = filter.is_some();
    let query = Query {
        words: &words,
        filter: filter.unwrap_or_default(),
        sort: match args.sort {
            By::Relevance => Sort::Relevance,
            By::Date => Sort::Date,
        },
        limit: match args.format {
            Format::Sessions | Format::Summaries => args.limit.saturating_mul(HITS_PER_SESSION),
            _ => args.limit,
        },
        offset: args.offset,
    };
    let mut note = String::new();
    let found = match &store {
        Some(store) if in_scope => {
            let mut found;
            (found, note) = embed_client::search(&home, store, &query)?;
            freshen(store, &here, query.sort, &mut found.hits)?;
            found
        }
        _ => Found {
            hits: Vec::new(),
            answer: Answer::Nothing,
            unknown: Vec::new(),
            looser: Vec::new(),
        },
    };
    let with_project = query.filter.spans_projects();
    match args.format {
        Format::Json => {
            println!("{}", show::json(&show::hits_json(&found.hits)));
            return Ok(());
        }
        _ if !in_scope => {
            println!("{}", show::no_project());
            return Ok(());
        }
        _ if found.hits.is_empty() && args.offset > 0 => {
            println!("--offset {} leaves out all hits", args.offset);
        }
        _ if found.hits.is_empty() => print!(
            "{}",
            show::no_hits(&words, &found, args.scope.is_current_project())
        ),
        Format::Index => print!("{}", show::hits(&found.hits, with_project)),
        Format::Sessions | Format::Summaries => {
            let sessions = store.map(|store| sessions_of(&store, &query, &found.hits, args.limit));
            let sessions = sessions.transpose()?.unwrap_or_default();
            let summaries = args.format == Format::Summaries;
            print!("{}", show::sessions(&sessions, summaries, with_project));
        }
        Format::Facts | Format::Full => {
            let items = found.hits.iter().map(|hit| hit.id);
            let items = items.filter_map(|id| store.as_ref()?.item_from(id, &here).transpose());
            for item in items {
                let item = item?;
                if args.format == Format::Facts {
                    print!("{}", show::facts(&item));
                } else {
                    println!("{}", show::item(&item));
                }
            }
        }
    }
    let notes = show::how(&words, &found) + &note + &show::waiting(service::waiting(&home));
    let gap = !notes.is_empty() && !found.hits.is_empty();
    print!("{}{notes}", if gap { "\n" } else { "" });
    Ok(())
}
