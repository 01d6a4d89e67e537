//! The tools: each takes its arguments and returns the text for the agent.

use anyhow::{Context as _, bail, ensure};
use foreword_core::model::{Kind, ObservationType, Origin};
use foreword_core::redact::thorough;
use foreword_core::search::same_turn;
use foreword_core::store::{HostSession, Item, ItemBody, Store, ToRemember};

use super::answer;
use super::arguments::{Forget, Observations, Recall, Remember, Scope, Search, Timeline};
use crate::config::provider;
use crate::host::claude_code::agent_files;
use crate::notes::recall;
use crate::output::{Part, SafeText, framed};
use crate::service::search::{Format, SearchRequest};
use crate::service::{self, Reader, embed_client};
use crate::{show, start};

/// The reader for one call; an error if Foreword is switched off.
pub fn reader() -> anyhow::Result<Reader> {
    let reader = Reader::of_host()?;
    if let Some(why) = reader.off_reason() {
        bail!("Foreword is off here: {why}");
    }
    Ok(reader)
}

/// Opens the memory for writing.
fn store_to_write() -> anyhow::Result<Store> {
    // This creates the data directory, and refuses one where SQLite is not safe.
    let home = service::home_to_write()?;
    Ok(Store::open(&home.memory(), &home.backups())?)
}

pub fn search(reader: &Reader, arguments: &Search) -> anyhow::Result<SafeText> {
    let request = arguments.request(reader)?;
    let answer = service::search::search(reader, &request)?;
    Ok(answer::found(&request, &answer))
}

/// The most ids in one call.
const IDS_MAX: usize = 50;

pub fn get_observations(reader: &Reader, arguments: &Observations) -> anyhow::Result<SafeText> {
    check_ids(&arguments.ids)?;
    let store = reader.memory()?;
    let (items, missing) = reader.items(&store, arguments.ids.iter().copied())?;
    let parts = items.iter().map(|item| {
        let related = embed_client::related(&reader.home, &store, item.id)?;
        let turn = same_turn(&store, item.id)?;
        let part = answer::item(item, Format::Full);
        Ok(part.with(&(answer::same_turn(&turn) + &answer::related(&related))))
    });
    let parts: Vec<Part> = parts.collect::<anyhow::Result<_>>()?;
    Ok(framed(&parts, &answer::missing(&missing)))
}

fn check_ids(ids: &[i64]) -> anyhow::Result<()> {
    ensure!(!ids.is_empty(), "ids is empty; `search` gives some");
    ensure!(ids.len() <= IDS_MAX, "at most {IDS_MAX} ids at once");
    Ok(())
}

pub fn timeline(reader: &Reader, arguments: &Timeline) -> anyhow::Result<SafeText> {
    let mut note = String::new();
    let id = match (arguments.id, &arguments.query) {
        (Some(id), _) => id,
        (None, Some(words)) => {
            let filter = Search::default().filter(reader)?;
            let request = SearchRequest::new(words, filter);
            let found = service::search::search(reader, &request)?;
            note = show::ranking(&found);
            match found.found.hits.first() {
                Some(hit) => hit.id,
                None => return Ok(answer::no_hits(&request, &found)),
            }
        }
        (None, None) => bail!("give an id or a query"),
    };
    let hits = reader.timeline(&reader.memory()?, id, arguments.around())?;
    let lines = hits.iter().map(|hit| answer::timeline_line(hit, id));
    let parts: Vec<Part> = lines.collect();
    Ok(framed(&parts, &note))
}

/// The longest text to remember, in characters. A document belongs in the repository.
const TEXT_MAX: usize = 4_000;

pub fn remember(reader: &Reader, arguments: &Remember) -> anyhow::Result<SafeText> {
    let kind = arguments.r#type.unwrap_or(ObservationType::Decision);
    ensure!(
        arguments.scope == Scope::User,
        "no team is set up; leave scope out, and it is kept for this user"
    );
    ensure!(!arguments.text.trim().is_empty(), "text is empty");
    let text = arguments.whole_text(reader.now)?;
    let length = text.chars().count();
    ensure!(
        length <= TEXT_MAX,
        "text has {length} characters, more than {TEXT_MAX}; shorten it"
    );
    let project = reader.project();
    let project = project.context("not a project directory, so there is nowhere to remember it")?;
    ensure!(
        !reader.is_excluded(),
        "the user's settings exclude this project; nothing is written here"
    );
    let redacted = thorough(&text);
    ensure!(
        !redacted.text.replace("[private]", "").trim().is_empty(),
        "all of it is private, so nothing was kept"
    );
    // The agent's own words, if it writes the memory; else it passes on what the user wants kept.
    let origin = if provider::is_agent(&reader.home) {
        Origin::Agent
    } else {
        Origin::User
    };
    // Without a session of the host, each project has one session for all that is remembered.
    let session = match &reader.session {
        Some(session) => session.clone(),
        None => HostSession {
            host: "mcp".to_owned(),
            id: format!("said in {project}"),
        },
    };
    let hash = blake3::hash(redacted.text.as_bytes()).to_hex();
    let id = store_to_write()?.remember(&ToRemember {
        origin,
        text: &redacted.text,
        kind,
        project,
        session: &session,
        seed: format!("said:{}", &hash[..16]),
        now: reader.now,
    })?;
    // The worker indexes it by meaning.
    if embed_client::is_installed(&reader.home) {
        start::wake_worker(&reader.home);
    }
    Ok(SafeText::plain(&match redacted.count {
        0 => format!("Remembered as #{id}.\n"),
        count => format!("Remembered as #{id}, without {count} secret or private parts.\n"),
    }))
}

pub fn forget(reader: &Reader, arguments: &Forget) -> anyhow::Result<SafeText> {
    check_ids(&arguments.ids)?;
    let store = reader.memory()?;
    let (items, missing) = reader.items(&store, arguments.ids.iter().copied())?;
    let missing = answer::missing(&missing);
    // A prompt cannot be forgotten: observations of its turn refer to it and quote it.
    let is_permanent = |it: &&Item| matches!(it.body.kind(), Kind::Prompt | Kind::Note);
    if let Some(item) = items.iter().find(is_permanent) {
        bail!(
            "#{} is a {}; only observations and summaries can be forgotten{}",
            item.id,
            item.body.kind(),
            match &item.body {
                ItemBody::Note(note) => format!(", a note by deleting {}", note.path),
                _ => String::new(),
            }
        );
    }
    if !arguments.confirm {
        let parts: Vec<Part> = items.iter().map(answer::title_and_project).collect();
        let note = format!(
            "{missing}Nothing is forgotten yet. Call this again with confirm to forget these for good.\n"
        );
        return Ok(framed(&parts, &note));
    }
    drop(store);
    let project = |id: i64| {
        let item = items.iter().find(|it| it.id == id);
        item.map_or(String::new(), answer::project)
    };
    let gone = store_to_write()?.forget(&arguments.ids, reader.now)?;
    // The memory agent's conversations may repeat it; the store has deleted its own part of them.
    agent_files::sweep(&reader.home, &[]);
    Ok(SafeText::plain(&match gone.as_slice() {
        [] => missing,
        gone => {
            let gone = gone.iter().map(|id| format!("#{id}{}", project(*id)));
            let gone: Vec<_> = gone.collect();
            format!("Forgotten: {}.\n{missing}", gone.join(", "))
        }
    }))
}

pub fn recall(reader: &Reader, arguments: &Recall) -> anyhow::Result<SafeText> {
    let root = reader.place.root.as_deref();
    let root = root.context("not a project directory, so there is no master.md")?;
    Ok(recall::recall(root, arguments.scope.as_deref(), reader.now)?.framed())
}
