//! Forgets items for good, and keeps what was forgotten from coming back.
//!
//! The row goes, with its full text, vectors, receipts, journal and repeats, and with every
//! conversation with a model that may repeat it. A forgotten prompt takes along its turn: what was
//! derived from it, and its events. What stays is a row in `forgotten` that names the item and has
//! nothing of its text; `commit` and an import check it.
//!
//! These rows are recorded a second time, in a file beside memory.db: if memory.db is damaged
//! beyond reading it is restored from older copies, which still have the items. The file has
//! the ids of items, sessions, seeds and events, and nothing of their content.

use std::collections::{BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, named_params};
use serde::{Deserialize, Serialize};

use super::commit::OFFLINE;
use super::observations::TOUCHED;
use super::sessions::{SessionRow, name_session};
use super::{Store, json};
use crate::db::{self, Rows as _};
use crate::fault;
use crate::model::{Millis, Observation, SessionDigest};
use crate::text;

impl Store {
    /// The items that go if these are forgotten, in order: also everything of a prompt's turn. Notes
    /// are left out, because the files are theirs.
    pub fn would_forget(&self, ids: &[i64]) -> rusqlite::Result<Vec<i64>> {
        would_forget(&self.connection, ids)
    }

    /// Deletes these items for good. Returns the numbers of those that existed, with everything of a
    /// prompt's turn.
    pub fn forget(&mut self, ids: &[i64], now: Millis) -> rusqlite::Result<Vec<i64>> {
        // Deleted rows are overwritten in the file, not only unlinked.
        self.connection.execute_batch("pragma secure_delete = on")?;
        let tx = self.connection.transaction()?;
        let gone = would_forget(&tx, ids)?;
        let at = next_time(&tx, now)?;
        forget_items(&tx, &gone, at)?;
        fault::point("forget:before-file");
        note_forgotten(&tx, at)?;
        fault::point("forget:before-commit");
        tx.commit()?;
        fault::point("forget:after-commit");
        Ok(gone)
    }

    /// Forgets all items of a project, and the project itself with its name and keys.
    pub fn forget_project(&mut self, project: i64, now: Millis) -> rusqlite::Result<Vec<i64>> {
        self.connection.execute_batch("pragma secure_delete = on")?;
        let tx = self.connection.transaction()?;
        let ids = items_of_project(&tx, project)?;
        let gone = would_forget(&tx, &ids)?;
        let at = next_time(&tx, now)?;
        forget_items(&tx, &gone, at)?;
        for leave in [
            // The rows stay, as something for the marks to refer to.
            "update sessions set project_id = null where project_id = :project",
            "delete from projects where id = :project",
        ] {
            tx.execute(leave, named_params! {":project": project})?;
        }
        fault::point("forget:before-file");
        note_forgotten(&tx, at)?;
        fault::point("forget:before-commit");
        tx.commit()?;
        fault::point("forget:after-commit");
        Ok(gone)
    }

    /// The items that `forget_project` would forget.
    pub fn items_of_project(&self, project: i64) -> rusqlite::Result<Vec<i64>> {
        items_of_project(&self.connection, project)
    }

    /// The sources of a session's forgotten items: keys of the events that observations were
    /// derived from, and the host's ids of prompts that were forgotten or whose summary was.
    pub fn forgotten(&self, session: &str) -> rusqlite::Result<HashSet<String>> {
        let sources = self.connection.all(
            "select p.key
             from sessions s
             join forgotten f on f.session_id = s.id
             join json_each(f.events) e
             join processed_events p on p.event_id = e.value
             where s.host_session_id = :session
             union
             select p.host_prompt_id
             from sessions s
             join forgotten f on f.session_id = s.id
             join prompts p on p.session_id = s.id and f.seed = 'summary:' || p.id
             where s.host_session_id = :session and p.host_prompt_id is not null
             union
             select substr(f.seed, length('prompt:') + 1)
             from sessions s
             join forgotten f on f.session_id = s.id
             where s.host_session_id = :session and f.seed glob 'prompt:*'",
            named_params! {":session": session},
        )?;
        Ok(sources.into_iter().collect())
    }
}

fn items_of_project(memory: &Connection, project: i64) -> rusqlite::Result<Vec<i64>> {
    memory.all(
        "select id from observations where project_id = :project
         union
         select id from summaries where project_id = :project
         union
         select id
         from prompts
         where session_id in (select id from sessions where project_id = :project)",
        named_params! {":project": project},
    )
}

fn would_forget(memory: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<i64>> {
    memory.all(
        "with named as (select value as id from json_each(:ids))
         select id from observations where id in named
         union
         select id from summaries where id in named
         union
         select id from prompts where id in named
         union
         select id from observations where prompt_id in named
         union
         select id from summaries where prompt_id in named
         order by 1",
        named_params! {":ids": json(&ids)?},
    )
}

/// The time of a change: later than that of every earlier one, so that it names the change.
fn next_time(tx: &Transaction<'_>, now: Millis) -> rusqlite::Result<Millis> {
    let last = "select coalesce(max(at) + 1, 0) from forgotten";
    Ok(tx.one::<Millis>(last, [])?.max(now))
}

fn forget_items(tx: &Transaction<'_>, ids: &[i64], at: Millis) -> rusqlite::Result<()> {
    // All marks come first: deleting a prompt deletes its summary, too.
    mark_forgotten(tx, ids, at)?;
    let mut sessions = BTreeSet::new();
    for &id in ids {
        sessions.extend(delete_item(tx, id)?);
    }
    for session in sessions {
        empty_session(tx, session, at)?;
    }
    // A conversation may repeat what was forgotten.
    tx.execute("delete from conversations", [])?;
    Ok(())
}

fn mark_forgotten(tx: &Connection, ids: &[i64], at: Millis) -> rusqlite::Result<()> {
    tx.run(
        "insert or replace into forgotten (session_id, seed, events, at, uuid)
         with named as (select id, uuid from items where id in (select value from json_each(:ids)))
         select o.session_id, o.seed, o.events, :at, n.uuid
         from named n
         join observations o on o.id = n.id
         union all
         select m.session_id, 'summary:' || m.prompt_id, '[]', :at, n.uuid
         from named n
         join summaries m on m.id = n.id
         union all
         select p.session_id, 'prompt:' || coalesce(p.host_prompt_id, p.id), '[]', :at, n.uuid
         from named n
         join prompts p on p.id = n.id
         union all
         select r.session_id, r.seed, r.events, :at, null
         from named n
         join repeats r on r.observation_id = n.id",
        named_params! {":ids": json(&ids)?, ":at": at},
    )?;
    Ok(())
}

/// Deletes an item with everything that is kept about it. Returns its session.
fn delete_item(tx: &Connection, id: i64) -> rusqlite::Result<Option<i64>> {
    let item: Option<(i64, String, Option<String>)> = tx.first(
        "select session_id, title, null from observations where id = :id
         union all
         select session_id, request, null from summaries where id = :id
         union all
         select session_id, text, host_prompt_id from prompts where id = :id",
        named_params! {":id": id},
    )?;
    for delete in [
        "delete from receipts where item_id = :id",
        "delete from journal where item_id = :id",
        "delete from observations where id = :id",
        "delete from summaries where id = :id",
        "delete from prompts where id = :id",
    ] {
        tx.run(delete, named_params! {":id": id})?;
    }
    let Some((session, title, prompt)) = item else {
        return Ok(None);
    };
    if prompt.is_some() {
        tx.run(
            "delete from events where session_id = :session and turn = :prompt",
            named_params! {":session": session, ":prompt": prompt},
        )?;
    }
    take_out_of_digest(tx, session, &title)?;
    Ok(Some(session))
}

/// Takes a forgotten title out of what the session's own row says.
fn take_out_of_digest(tx: &Connection, session: i64, title: &str) -> rusqlite::Result<()> {
    let digest: (String, String, Vec<String>, Vec<String>) = tx.one(
        "select coalesce(title, ''), coalesce(subtitle, ''), open, given_up
         from sessions
         where id = :session",
        named_params! {":session": session},
    )?;
    let (digest_title, subtitle, open, given_up) = digest;
    let before = SessionDigest {
        title: digest_title,
        subtitle,
        open,
        given_up,
    };
    let after = without_titles(&before, &[title]);
    if after != before {
        tx.run(
            "update sessions
             set title = nullif(:title, ''), subtitle = nullif(:subtitle, ''),
                 open = :open, given_up = :given_up
             where id = :session",
            named_params! {
                ":title": after.title,
                ":subtitle": after.subtitle,
                ":open": json(&after.open)?,
                ":given_up": json(&after.given_up)?,
                ":session": session,
            },
        )?;
    }
    name_session(tx, session)
}

/// A digest without the lines that repeat one of these titles.
pub(crate) fn without_titles(digest: &SessionDigest, titles: &[&str]) -> SessionDigest {
    let titles: Vec<String> = titles
        .iter()
        .map(|title| text::normalised(&text::title(title)))
        .filter(|title| !title.is_empty())
        .collect();
    let repeats = |line: &str| {
        let line = text::normalised(line);
        titles.iter().any(|title| line.contains(title.as_str()))
    };
    let unless_repeated = |line: &str| match repeats(line) {
        true => String::new(),
        false => line.to_owned(),
    };
    let list = |lines: &[String]| {
        let lines = lines.iter().filter(|line| !repeats(line));
        lines.cloned().collect()
    };
    SessionDigest {
        title: unless_repeated(&digest.title),
        subtitle: unless_repeated(&digest.subtitle),
        open: list(&digest.open),
        given_up: list(&digest.given_up),
    }
}

/// If nothing is left of a session but prompts of which nothing came, forgets those, too, and leaves
/// only its id, for the marks to refer to.
fn empty_session(tx: &Connection, session: i64, at: Millis) -> rusqlite::Result<()> {
    let emptied = tx.run(
        "update sessions
         set title = null, subtitle = null, open = '[]', given_up = '[]', branch = null,
             root = null, transcript_path = null
         where id = :session
           and not exists (select 1 from prompts where session_id = :session and kept)
           and not exists (select 1 from observations where session_id = :session)
           and not exists (select 1 from summaries where session_id = :session)",
        named_params! {":session": session},
    )?;
    if emptied == 0 {
        return Ok(());
    }
    let of_session = named_params! {":session": session};
    let left: Vec<i64> = tx.all(
        "select id from prompts where session_id = :session",
        of_session,
    )?;
    mark_forgotten(tx, &left, at)?;
    for delete in [
        "delete from prompts where session_id = :session",
        "delete from events where session_id = :session",
    ] {
        tx.run(delete, of_session)?;
    }
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Forgotten {
    host: String,
    session: String,
    seed: String,
    events: String,
    at: Millis,
    /// None for a repeat, and in lines of older programs.
    uuid: Option<String>,
}

fn forgotten_file(memory: &Connection) -> Option<PathBuf> {
    memory
        .path()
        .map(|path| db::beside(path.as_ref(), ".forgotten"))
}

/// Appends the items that were forgotten at this time. They are on disk before the memory changes.
fn note_forgotten(memory: &Connection, at: Millis) -> rusqlite::Result<()> {
    let rows: Vec<Forgotten> = memory.all(
        "select s.host, s.host_session_id as session, f.seed, f.events, f.at, f.uuid
         from forgotten f
         join sessions s on s.id = f.session_id
         where f.at = :at",
        named_params! {":at": at},
    )?;
    let mut lines = String::new();
    for row in rows {
        lines += &(json(&row)? + "\n");
    }
    let Some(path) = forgotten_file(memory).filter(|_| !lines.is_empty()) else {
        return Ok(());
    };
    let written = OpenOptions::new().create(true).append(true).open(path);
    let written = written.and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Adds the entries of the file beside the memory at `path` that the memory lacks.
pub(crate) fn recall_forgotten(memory: &Connection, path: &Path) -> rusqlite::Result<()> {
    let Ok(text) = std::fs::read_to_string(db::beside(path, ".forgotten")) else {
        return Ok(());
    };
    let lines = text.lines();
    for it in lines.filter_map(|line| serde_json::from_str::<Forgotten>(line).ok()) {
        // The session's row may be lost, and the session read again from its transcript.
        memory.execute(
            "insert or ignore into sessions (host, host_session_id, state, started_at, last_event_at)
             values (:host, :session, 'interrupted', :at, :at)",
            named_params! {":host": it.host, ":session": it.session, ":at": it.at},
        )?;
        memory.execute(
            "insert or ignore into forgotten (session_id, seed, events, at, uuid)
             select id, :seed, :events, :at, :uuid
             from sessions
             where host = :host and host_session_id = :session",
            named_params! {
                ":host": it.host, ":session": it.session, ":seed": it.seed,
                ":events": it.events, ":at": it.at, ":uuid": it.uuid,
            },
        )?;
    }
    Ok(())
}

/// Deletes the forgotten items that an older copy brought back.
pub(crate) fn stay_forgotten(memory: &Connection) -> rusqlite::Result<()> {
    let prompts: Vec<i64> = memory.all(
        "select p.id
         from forgotten f
         join prompts p on p.session_id = f.session_id
             and f.seed = 'prompt:' || coalesce(p.host_prompt_id, p.id)
         where f.at >= p.at",
        [],
    )?;
    let mut back = would_forget(memory, &prompts)?;
    back.extend(memory.all::<i64>(
        "select o.id
         from forgotten f
         join observations o on o.session_id = f.session_id and o.seed = f.seed
         where f.at >= o.at
         union
         select m.id
         from forgotten f
         join summaries m on m.session_id = f.session_id and f.seed = 'summary:' || m.prompt_id
         where f.at >= m.at",
        [],
    )?);
    let mut sessions = BTreeSet::new();
    for id in back {
        sessions.extend(delete_item(memory, id)?);
    }
    for session in sessions {
        empty_session(memory, session, 0)?;
    }
    Ok(())
}

/// Whether this observation is not to be stored: it was forgotten, or a person changed it by hand and
/// it stays as it is. Another model, or the same one a second time, writes it differently and under
/// another seed; so an observation that was derived only from events of such a one counts as that one.
/// The offline provider gives the same insight the same seed, and several insights the same events.
pub(super) fn is_settled(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
    provider: &str,
) -> rusqlite::Result<bool> {
    let sql = format!(
        "with settled (seed, events, only_seed) as (
             select seed, events, false
             from forgotten
             where session_id = :session
             union all
             select seed, events, provider = :offline and :provider = :offline
             from observations
             where session_id = :session and {TOUCHED}
             union all
             select r.seed, r.events, r.provider = :offline and :provider = :offline
             from repeats r
             where r.session_id = :session
               and exists (select 1 from observations where id = r.observation_id and {TOUCHED})
         )
         select exists (
             select 1
             from settled
             where seed = :seed
                or not only_seed
                   and json_array_length(:events) > 0
                   and not exists (
                       select 1
                       from json_each(:events) as event
                       where event.value not in (select value from json_each(settled.events))
                   )
         )"
    );
    tx.one(
        &sql,
        named_params! {
            ":session": session.id,
            ":seed": observation.seed,
            ":events": json(&observation.events)?,
            ":provider": provider,
            ":offline": OFFLINE,
        },
    )
}

/// The host's ids of a session's prompts that were forgotten.
pub(super) fn forgotten_prompts(
    tx: &Transaction<'_>,
    session: i64,
) -> rusqlite::Result<HashSet<String>> {
    let prompts = tx.all(
        "select substr(seed, length('prompt:') + 1)
         from forgotten
         where session_id = :session and seed glob 'prompt:*'",
        named_params! {":session": session},
    )?;
    Ok(prompts.into_iter().collect())
}
