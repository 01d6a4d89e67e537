//! The index: the few lines that a session starts with.
//!
//! It is a table of contents, not the memory: what the user pinned and laid down, what is open, the latest
//! sessions, and one line per observation with its number and the tokens that reading it would
//! cost. All of the project's memory is weighed, and lines are taken by worth until the budget is
//! used (`page`). While nothing changed the text is byte for byte the same (absolute dates, the
//! session id on the last line only), so that the host's prompt cache holds. Superseded, retracted,
//! hidden and expired observations are never in it.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{OptionalExtension as _, named_params};

use super::line::IndexLines;
pub(crate) use super::line::{Line, lines};
pub use super::page::FRAME;
use super::page::{self, Frame};
pub(crate) use super::page::{HOW_TO_GET_MORE, attribute};
use super::worth;
pub use super::worth::{Fate, Reason, Weighed};
use crate::model::{Millis, SessionDigest};
use crate::notes::Folder;
use crate::store::{Store, list, without_titles};
use crate::text;

/// Why a session starts; it decides what the index contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartReason {
    Startup,
    Resume,
    Clear,
    Compact,
    /// The conversation already contains everything but its new id.
    Fork,
}

impl StartReason {
    /// Reads the host's `source` field. Unknown values are treated as a fresh start.
    #[must_use]
    pub fn parse(source: Option<&str>) -> StartReason {
        match source {
            Some("resume") => StartReason::Resume,
            Some("clear") => StartReason::Clear,
            Some("compact") => StartReason::Compact,
            Some("fork") => StartReason::Fork,
            _ => StartReason::Startup,
        }
    }

    /// Whether the session itself is part of its index: its conversation has lost the details.
    pub(super) fn shows_this_session(self) -> bool {
        matches!(self, StartReason::Resume | StartReason::Compact)
    }

    /// The most tokens of the index.
    fn budget(self) -> usize {
        match self {
            StartReason::Compact => 1_600,
            _ => 800,
        }
    }

    /// How many of the latest sessions are listed with their digests.
    fn sessions(self) -> usize {
        match self {
            StartReason::Resume => 1,
            StartReason::Compact => 12,
            _ => 6,
        }
    }
}

/// The session that an index is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexRequest<'a> {
    pub project: Option<&'a str>,
    pub host_session_id: &'a str,
    pub start_reason: StartReason,
    pub branch: Option<&'a str>,
    /// The top of the working tree, to check files.
    pub root: Option<&'a Path>,
    pub now: Millis,
    /// If set, an older observation is left out unless an agent opened it within this time.
    pub unopened_kept: Option<Millis>,
    /// Whether the agent is asked to write the memory itself.
    pub asks_agent: bool,
}

/// Asks the agent to write the memory, if the user chose that.
const ASK_AGENT: &str = "You write this project's memory: at the end of a turn that decided, learned or finished something, call Foreword's `remember` once, with a title, facts and files.\n";

/// The most lines of what the user laid down that are read; the rest is only counted.
const RULES_READ: usize = 24;
/// The most older lines of each type that are weighed.
const OLDER_PER_TYPE: usize = 20;
/// The files of this many lines are checked, about as many as can be shown.
const LOOKED_AT: usize = 60;

/// The text for a session, and how its lines were chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    pub text: String,
    /// Every line that was considered, the worthiest first.
    pub weighed: Vec<Weighed>,
}

/// What an index may show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// What the user pinned.
    pub pins: Vec<Line>,
    /// What the user laid down, the worthiest first.
    pub rules: Vec<Line>,
    /// How many such observations there are in all.
    pub rules_in_all: usize,
    /// The latest sessions, the newest first.
    pub sessions: Vec<IndexSession>,
    /// Lines of earlier sessions.
    pub older: Vec<Line>,
}

/// A session by its digest, or by its first prompt and its last summary while it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexSession {
    pub id: i64,
    pub title: String,
    pub subtitle: String,
    pub at: Millis,
    pub open: Vec<String>,
    pub given_up: Vec<String>,
    /// Without those that the user laid down, which stand above all sessions.
    pub lines: Vec<Line>,
}

/// The index for a session; none if there is nothing to show.
pub fn index(store: Option<&Store>, request: &IndexRequest<'_>) -> rusqlite::Result<Option<Index>> {
    let session = text::one_line(request.host_session_id);
    let id_line = format!("Foreword session id: {session}");
    if request.start_reason == StartReason::Fork {
        let (text, weighed) = (id_line, Vec::new());
        return Ok(Some(Index { text, weighed }));
    }
    // Outside of the frame, since it is an instruction, and what stands in the frame is not.
    let asked = if request.asks_agent { ASK_AGENT } else { "" };
    let id_line = format!("{asked}{id_line}");
    let nothing = request.asks_agent.then(|| Index {
        text: id_line.clone(),
        weighed: Vec::new(),
    });
    let (Some(store), Some(project)) = (store, request.project) else {
        return Ok(nothing);
    };
    let Some((project_id, name)) = project_row(store, project)? else {
        return Ok(nothing);
    };
    let contents = contents(store, project_id, request)?;
    if contents.lines().next().is_none() && contents.sessions.is_empty() {
        return Ok(nothing);
    }
    let frame = Frame {
        project: &name,
        new_notes: new_notes(store, request.root)?,
        has_master: request.root.is_some_and(has_master),
        budget: request.start_reason.budget(),
    };
    let mut index = page::render(&frame, &contents);
    index.text.push_str(&id_line);
    Ok(Some(index))
}

/// The row and the name of a project, by its key; none if nothing of it is stored.
fn project_row(store: &Store, key: &str) -> rusqlite::Result<Option<(i64, String)>> {
    let mut statement = store.connection.prepare_cached(
        "select id, name from projects
         where id = (select project_id from project_keys where key = :key)",
    )?;
    let parameters = named_params! {":key": key};
    statement
        .query_row(parameters, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// The name of a project, by its key.
pub(crate) fn project_name(store: &Store, key: &str) -> rusqlite::Result<String> {
    Ok(project_row(store, key)?.map(|it| it.1).unwrap_or_default())
}

fn contents(
    store: &Store,
    project_id: i64,
    request: &IndexRequest<'_>,
) -> rusqlite::Result<Contents> {
    let mut contents = Contents {
        sessions: sessions(store, project_id, request)?,
        ..Contents::default()
    };
    let last_work = last_work(store, &contents.sessions)?;
    let lines = IndexLines {
        store,
        project_id,
        last_work: &last_work,
        request,
    };
    // A session that is resumed has its first index still in its conversation.
    let only_this = request.start_reason == StartReason::Resume;
    if !only_this {
        contents.pins = lines.pinned()?;
        contents.rules = lines.of_user(RULES_READ)?;
        contents.rules_in_all = lines.count_of_user()?;
    }
    let above = contents.pins.iter().chain(&contents.rules);
    let mut seen: HashSet<i64> = above.map(|line| line.id).collect();
    // A repeated observation is listed under the latest session that derived it.
    for session in &mut contents.sessions {
        session.lines = lines.of_session(session.id)?;
        session.lines.retain(|line| seen.insert(line.id));
        session.leave_out(&lines.hidden_titles(session.id)?);
    }
    contents.sessions.retain(|it| !it.title.is_empty());
    if !only_this {
        contents.older = lines.of_project(OLDER_PER_TYPE)?;
        contents.older.retain(|line| seen.insert(line.id));
    }
    contents.look_at_files(store, request.root)?;
    contents.sort();
    Ok(contents)
}

impl Contents {
    /// Each line with the number of sessions since.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        let rules = self.pins.iter().chain(&self.rules).map(|line| (0, line));
        let of_sessions = self.sessions.iter().enumerate();
        let of_sessions =
            of_sessions.flat_map(|(ago, it)| it.lines.iter().map(move |line| (ago, line)));
        let older = self.older.iter().map(|line| (self.sessions.len(), line));
        rules.chain(of_sessions).chain(older)
    }

    /// Checks the files of the lines that are worth most.
    fn look_at_files(&mut self, store: &Store, root: Option<&Path>) -> rusqlite::Result<()> {
        let worth =
            |(ago, line): (usize, &Line)| (-worth::sum(&worth::reasons(line, ago)), -line.id);
        let mut worths: Vec<_> = self.lines().map(worth).collect();
        worths.sort_unstable();
        worths.truncate(LOOKED_AT);
        let chosen: HashSet<i64> = worths.into_iter().map(|(_, id)| -id).collect();
        let of_sessions = self.sessions.iter_mut().flat_map(|it| &mut it.lines);
        let rules = self.pins.iter_mut().chain(&mut self.rules);
        let lines = rules.chain(of_sessions).chain(&mut self.older);
        for line in lines.filter(|line| chosen.contains(&line.id)) {
            line.freshness = store.freshness(line.id, root)?;
        }
        Ok(())
    }

    /// Within each list, puts the lines that are worth most first; of equal ones the newest.
    fn sort(&mut self) {
        let of_sessions = self.sessions.iter_mut().map(|it| &mut it.lines);
        for lines in of_sessions.chain([&mut self.rules, &mut self.older]) {
            lines.sort_by_key(|line| (-line.worth(), -line.id));
        }
    }
}

impl IndexSession {
    /// Takes these titles out of what the session says about itself. Its best line then stands for its
    /// title; without any line the title is empty.
    fn leave_out(&mut self, titles: &[String]) {
        if titles.is_empty() {
            return;
        }
        let digest = SessionDigest {
            title: std::mem::take(&mut self.title),
            subtitle: std::mem::take(&mut self.subtitle),
            open: std::mem::take(&mut self.open),
            given_up: std::mem::take(&mut self.given_up),
        };
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let digest = without_titles(&digest, &titles);
        self.title = match (digest.title.as_str(), self.lines.first()) {
            ("", Some(line)) => line.title.clone(),
            (title, _) => title.to_owned(),
        };
        self.subtitle = digest.subtitle;
        self.open = digest.open;
        self.given_up = digest.given_up;
    }
}

/// The latest sessions in which something happened, the newest first, without their lines.
fn sessions(
    store: &Store,
    project_id: i64,
    request: &IndexRequest<'_>,
) -> rusqlite::Result<Vec<IndexSession>> {
    // A session is left out if what it came to was superseded; lines of it that hold are older lines.
    // Until a session has a digest, its last summary that is not empty says what it came to and what
    // is open: one of "Thanks!" must not hide the work before it.
    let mut statement = store.connection.prepare_cached(
        "with latest as (
             select s.id, s.title, s.subtitle, s.open, s.given_up, s.digest_by, s.last_event_at as at
             from sessions s
             where s.project_id = :project
               and (not :only_this or s.host_session_id = :session)
               and (:with_this or s.host_session_id <> :session)
               and s.title <> ''
               and (
                   exists (
                       select 1 from observations o
                       where o.session_id = s.id and o.superseded_by is null and o.retracted is null
                   )
                   or exists (select 1 from repeats r where r.session_id = s.id)
                   or not exists (select 1 from observations o where o.session_id = s.id)
                   and exists (
                       select 1 from summaries m
                       where m.session_id = s.id and m.completed || m.investigated || m.next_steps <> ''
                   )
               )
               and not exists (
                   select 1 from observations o
                   where o.session_id = s.id and o.title = s.title and o.superseded_by is not null
               )
             order by s.last_event_at desc, s.id desc
             limit :limit
         )
         select l.id, l.title, l.at, l.given_up,
             iif(l.digest_by is null, m.completed, l.subtitle) as subtitle,
             iif(l.digest_by is null and m.next_steps <> '', json_array(m.next_steps), l.open) as open
         from latest l
         left join summaries m on m.id = (
             select id from summaries
             where session_id = l.id and completed || investigated || next_steps <> ''
             order by at desc, id desc
             limit 1
         )
         order by l.at desc, l.id desc",
    )?;
    let parameters = named_params! {
        ":project": project_id,
        ":session": request.host_session_id,
        ":only_this": request.start_reason == StartReason::Resume,
        ":with_this": request.start_reason.shows_this_session(),
        ":limit": request.start_reason.sessions(),
    };
    let rows = statement.query_map(parameters, |row| {
        Ok(IndexSession {
            id: row.get("id")?,
            title: row.get("title")?,
            subtitle: row
                .get::<_, Option<String>>("subtitle")?
                .unwrap_or_default(),
            at: row.get("at")?,
            open: list(row, "open")?,
            given_up: list(row, "given_up")?,
            lines: Vec::new(),
        })
    })?;
    rows.collect()
}

/// The edited files of the latest summary that names some, as JSON. Searched session by session,
/// since no index leads to the latest summaries of a project.
fn last_work(store: &Store, sessions: &[IndexSession]) -> rusqlite::Result<String> {
    let mut statement = store.connection.prepare_cached(
        "select files_edited
         from summaries
         where session_id = :session and files_edited <> '[]'
         order by at desc
         limit 1",
    )?;
    for session in sessions {
        let mut rows = statement.query(named_params! {":session": session.id})?;
        if let Some(row) = rows.next()? {
            return row.get(0);
        }
    }
    Ok("[]".to_owned())
}

fn has_master(root: &Path) -> bool {
    Folder::at(root, None).is_ok_and(|it| it.master().exists())
}

/// How many notes are not in the project's master yet, counting only sessions in this memory: notes
/// that came with a clone are somebody else's.
fn new_notes(store: &Store, root: Option<&Path>) -> rusqlite::Result<u64> {
    let folder = root.and_then(|root| Folder::at(root, None).ok());
    let sql = "select 1 from sessions where host_session_id = :session";
    let mut statement = store.connection.prepare_cached(sql)?;
    let mut count = 0;
    for session in folder.iter().flat_map(Folder::newer) {
        count += u64::from(statement.exists(named_params! {":session": session})?);
    }
    Ok(count)
}
