//! Finds what a person names on the command line: an item by its number, a session by its id or by
//! the beginning of it, as lists print it.

use anyhow::bail;
use foreword_core::search::{Filter, Hit, Query, Sort, freshen, search};
use foreword_core::store::{HostSession, Store};
use foreword_core::text::one_line;

use super::{Reader, no_item};

/// What a person named.
#[derive(Debug)]
pub enum Named {
    Item(i64),
    Session(HostSession),
}

/// The item with this number, or else the session whose id begins so.
pub fn named(store: &Store, what: &str) -> anyhow::Result<Named> {
    let number = what.strip_prefix('#');
    // A session's id may be all digits, too; a number does not begin with 0.
    if let Ok(id) = number.unwrap_or(what).parse::<i64>()
        && !what.starts_with('0')
        && (number.is_some() || store.item(id)?.is_some())
    {
        return Ok(Named::Item(id));
    }
    if number.is_some() {
        bail!("'{}' is not a number such as #12", one_line(what));
    }
    match session_or_none(store, what)? {
        Some(session) => Ok(Named::Session(session)),
        None => match what.parse() {
            Ok(id) => bail!(no_item(id)),
            Err(_) => bail!(no_session(what)),
        },
    }
}

/// The session whose id begins so; an error if there is none.
pub fn session(store: &Store, id: &str) -> anyhow::Result<HostSession> {
    match session_or_none(store, id)? {
        Some(session) => Ok(session),
        None => bail!(no_session(id)),
    }
}

/// The session whose id begins so, if there is one. An error that lists them if there are several.
pub fn session_or_none(store: &Store, id: &str) -> anyhow::Result<Option<HostSession>> {
    if id.is_empty() {
        return Ok(None);
    }
    let mut sessions = store.sessions_named(id)?;
    if sessions.len() > 1 {
        bail!(several_sessions(
            id,
            sessions.iter().map(|it| it.id.as_str())
        ));
    }
    Ok(sessions.pop())
}

/// The whole id of a session that is remembered. Another id is taken as it is: the session may not
/// have been captured, or not have begun yet.
pub fn whole_id(id: &str) -> anyhow::Result<String> {
    let store = super::memory(&super::home_to_look_at()?)?;
    let session = match &store {
        Some(store) => session_or_none(store, id)?,
        None => None,
    };
    Ok(session.map_or_else(|| id.to_owned(), |it| it.id))
}

/// The error that lists the sessions whose ids begin alike.
fn several_sessions<'a>(id: &str, ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<_> = ids.map(one_line).collect();
    format!(
        "several sessions begin with '{}'; write more of the id: {}",
        one_line(id),
        ids.join(", ")
    )
}

fn no_session(id: &str) -> String {
    format!(
        "there is no session '{}'; `foreword sessions` lists them",
        one_line(id)
    )
}

/// The most items of a session that are listed.
const ITEMS_MAX: u32 = 1000;

impl Reader {
    /// The items of a session, the oldest first, with the state of their files.
    pub fn items_of(&self, store: &Store, session: &HostSession) -> anyhow::Result<Vec<Hit>> {
        let query = Query {
            words: "",
            filter: Filter {
                session: Some(session.id.clone()),
                ..Filter::default()
            },
            sort: Sort::Date,
            limit: ITEMS_MAX,
        };
        let mut hits = search(store, &query)?.hits;
        hits.retain(|hit| hit.session == session.id);
        hits.reverse();
        freshen(store, &self.place, Sort::Date, &mut hits)?;
        Ok(hits)
    }
}
