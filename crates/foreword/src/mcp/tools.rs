//! The tools: each takes its arguments and returns the text for the agent.

use anyhow::{Context as _, bail, ensure};
use foreword_core::model::{Kind, ObservationType, Origin};
use foreword_core::search::same_turn;
use foreword_core::store::{Item, ItemBody};

use super::answer;
use super::arguments::{Forget, Observations, Recall, Remember, Scope, Search, Timeline};
use crate::config::provider;
use crate::notes::recall;
use crate::output::{Part, SafeText, framed};
use crate::service::hands::{self, RememberRequest, Who};
use crate::service::search::{Format, SearchRequest};
use crate::service::when::until;
use crate::service::{self, Reader, embed_client};
use crate::show;

/// The reader for one call; an error if Foreword is switched off.
pub fn reader() -> anyhow::Result<Reader> {
    let reader = Reader::of_host()?;
    if let Some(why) = reader.off_reason() {
        bail!("Foreword is off here: {why}");
    }
    Ok(reader)
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

pub fn remember(reader: &Reader, arguments: &Remember) -> anyhow::Result<SafeText> {
    ensure!(
        arguments.scope == Scope::User,
        "no team is set up; leave scope out, and it is kept for this user"
    );
    let limit = arguments.until.as_deref();
    let limit = limit.map(|it| until(it, reader.now)).transpose();
    let request = RememberRequest {
        text: arguments.text.clone(),
        title: arguments.title.clone(),
        kind: arguments.r#type.unwrap_or(ObservationType::Decision),
        // The agent's own words, if it writes the memory; else it passes on what the user wants kept.
        origin: match provider::is_agent(&reader.home) {
            true => Origin::Agent,
            false => Origin::User,
        },
        facts: arguments.facts.clone(),
        concepts: arguments.concepts.clone(),
        files: arguments.files.clone(),
        pin: false,
        until: limit.map_err(anyhow::Error::msg)?,
    };
    let remembered = hands::remember(reader, &request, Who::Agent, false)?;
    let id = remembered.id;
    Ok(SafeText::plain(&match remembered.redacted {
        0 => format!("Remembered as #{id}.\n"),
        count => format!("Remembered as #{id}, without {count} secret or private parts.\n"),
    }))
}

pub fn forget(reader: &Reader, arguments: &Forget) -> anyhow::Result<SafeText> {
    check_ids(&arguments.ids)?;
    let store = reader.memory()?;
    let (items, missing) = reader.items(&store, arguments.ids.iter().copied())?;
    let missing = answer::missing(&missing);
    // A prompt would take along everything of its turn: that is for the user to decide.
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
    let gone = hands::forget(reader, &arguments.ids)?;
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
