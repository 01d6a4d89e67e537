//! The one way to search the memory: for the commands, the MCP server and `why`.
//!
//! All of them get the same hits in the same order for the same request. Only the text differs:
//! `show/found.rs` formats it for people, `mcp/answer.rs` for agents.

use clap::ValueEnum;
use foreword_core::search::{
    Filter, Found, Group, Query, SessionTitle, Sort, complete, freshen, grouped, sessions_of,
};
use foreword_core::store::Item;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer as _, value::Error};

use super::Reader;
use super::embed_client::{self, Ranking};

/// The number of hits if the request does not give one.
pub const LIMIT: u32 = 10;

/// How much of each hit is shown, the cheapest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The sessions that the hits are from
    Sessions,
    /// The sessions, with the outcome of each prompt
    Summaries,
    /// One line for each hit
    #[default]
    Index,
    /// The facts of each hit
    Facts,
    /// Everything about each hit
    Full,
    Json,
}

pub struct SearchRequest {
    /// If empty, everything that the filter lets through is listed.
    pub words: String,
    pub filter: Filter,
    pub sort: Sort,
    pub format: Format,
    /// The number of groups: turns, or sessions for a format that shows sessions.
    pub limit: u32,
    pub offset: u32,
}

#[derive(Default)]
pub struct SearchAnswer {
    /// What was found, with only the hits of the wanted page.
    pub found: Found,
    pub total: Total,
    pub ranking: Ranking,
    /// The sessions of the hits, for the formats that show them.
    pub sessions: Vec<SessionTitle>,
    /// The hits in full, for the formats that show them.
    pub items: Vec<Item>,
    /// The number of events that are not processed yet, and so cannot be found.
    pub waiting: u64,
    /// The number of the project's notes that are not copied yet, and so cannot be found.
    pub notes_left: usize,
    /// Whether only the reader's project was searched.
    pub in_current_project: bool,
}

/// How many groups a search found in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    pub count: usize,
    /// Whether the search stopped counting there.
    pub or_more: bool,
}

impl SearchRequest {
    /// A search with nothing but words and a filter.
    pub fn new(words: &str, filter: Filter) -> SearchRequest {
        SearchRequest {
            words: words.to_owned(),
            filter,
            sort: Sort::default(),
            format: Format::default(),
            limit: LIMIT,
            offset: 0,
        }
    }

    /// What a hit stands for. Whoever asks for one kind of items wants to see each of them.
    fn group(&self) -> Group {
        match self.format {
            Format::Sessions | Format::Summaries => Group::Sessions,
            _ if self.filter.is_about_items() => Group::Items,
            Format::Index | Format::Facts | Format::Full | Format::Json => Group::Turns,
        }
    }

    fn query(&self) -> Query<'_> {
        let groups = self.offset.saturating_add(self.limit);
        Query {
            words: &self.words,
            filter: self.filter.clone(),
            sort: self.sort,
            limit: self.group().reach(groups),
        }
    }
}

/// Searches the memory together with the project's notes: by words and, if the worker can answer
/// at once, by meaning. Hits whose files changed since are marked and ranked lower, in every format.
pub fn search(reader: &Reader, request: &SearchRequest) -> anyhow::Result<SearchAnswer> {
    let projects = request.filter.projects.as_deref().unwrap_or_default();
    let mut answer = SearchAnswer {
        waiting: super::waiting(&reader.home),
        in_current_project: matches!(projects, [one] if Some(one.as_str()) == reader.project()),
        ..SearchAnswer::default()
    };
    let (store, notes_left) = reader.memory_with_notes()?;
    answer.notes_left = notes_left;
    let Some(store) = store else {
        return Ok(answer);
    };
    reader.check_projects(&store, &request.filter)?;
    let query = request.query();
    (answer.found, answer.ranking) = embed_client::search(&reader.home, &store, &query)?;
    let hits = &mut answer.found.hits;
    let or_more = hits.len() >= query.limit as usize;
    *hits = grouped(std::mem::take(hits), request.group());
    answer.total = Total {
        count: hits.len(),
        or_more,
    };
    hits.drain(..hits.len().min(request.offset as usize));
    hits.truncate(request.limit as usize);
    if request.group() == Group::Turns {
        complete(&store, hits)?;
    }
    freshen(&store, &reader.place, query.sort, hits)?;
    match request.format {
        Format::Sessions | Format::Summaries => {
            answer.sessions = sessions_of(&store, &query, hits, request.limit)?;
        }
        Format::Facts | Format::Full => {
            (answer.items, _) = reader.items(&store, hits.iter().map(|hit| hit.id))?;
        }
        Format::Index | Format::Json => {}
    }
    Ok(answer)
}

/// Parses a type, kind, origin or sort order by its name in JSON.
pub fn named<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    T::deserialize(name.into_deserializer()).map_err(|error: Error| error.to_string())
}
