//! Turns the blocks of a reply into observations and summaries.
//!
//! The prompt asks for a form: one of five types, a title of a few words, relative paths. Models
//! mostly keep to it. Deviations are corrected here and long texts are cut; an observation is never
//! dropped because of a limit. Origin, time and file hashes are not known to the model and are taken
//! from the events of the question.

mod cut;
pub mod files;
#[cfg(test)]
mod tests;

use foreword_core::host::{self, ToolKind};
use foreword_core::model::{
    Event, EventKind, Observation, ObservationType, Origin, SessionDigest, Summary,
};
use foreword_core::text::{self, flat, shorten};

use super::question::is_tool;
use super::reply::{ReplyBlock, numbers, without_bullet};

/// All tags that a reply can have: of its blocks and of their fields. Some models write
/// `files_edited` in an observation and `files_modified` in a summary; `files` leaves open how
/// they were touched, and `text` stands for title and narrative.
pub const TAGS: &str = "observation summary nothing type title subtitle facts narrative concepts \
    files_read files_modified files_edited files events text request investigated learned \
    completed next_steps notes supersedes retract";

/// All tags of a reply about a whole session.
pub const CLOSING_TAGS: &str = "summary nothing title subtitle request investigated learned \
    completed next_steps given_up files_read files_edited files_modified notes retract supersede merge";

// The longest texts that are kept. The prompt asks for shorter ones.
const TITLE_CHARACTERS: usize = 80;
const SUBTITLE_WORDS: usize = 24;
const FACTS: usize = 7;
const FACT_CHARACTERS: usize = 300;
const NARRATIVE_WORDS: usize = 600;
const CONCEPTS: usize = 5;
const CONCEPT_CHARACTERS: usize = 40;
const SUMMARY_FIELD_CHARACTERS: usize = 1500;
const REASON_CHARACTERS: usize = 200;

/// None if neither title nor subtitle, narrative or facts are there.
///
/// `events` are those of the question, in the order in which it numbered them.
pub fn observation(found: &ReplyBlock, events: &[&Event], seed: String) -> Option<Observation> {
    let subtitle = found.short(&["subtitle"]);
    let facts = facts(&found.list(&["facts"], "fact"));
    let narrative = found.verbatim(&["narrative", "text"]);
    let other_texts = [&subtitle, &narrative].into_iter().chain(&facts);
    let cited = cited(&numbers(&found.verbatim(&["events"])), events);
    Some(Observation {
        seed,
        kind: kind(&found.short(&["type"])),
        title: title(&found.short(&["title"]), other_texts)?,
        subtitle: cut::words(&flat(without_marks(&subtitle)), SUBTITLE_WORDS),
        narrative: cut::words(&narrative, NARRATIVE_WORDS),
        facts,
        concepts: concepts(&found.list(&["concepts"], "concept")),
        files: files::of_observation(found, events),
        origin: origin(&cited),
        agent_id: agent_id(&cited),
        events: cited.iter().map(|event| event.id).collect(),
        at: cited.iter().map(|event| event.at).max().unwrap_or_default(),
        retracted: None,
    })
}

/// The number and the reason of `#12: the run shows that it fails`.
pub fn retraction(content: &str) -> Option<(i64, String)> {
    let content = flat(content);
    let rest = content.trim_start_matches('#');
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let id = rest[..digits].parse().ok()?;
    let reason = rest[digits..].trim_start_matches([':', ',', ' ', '-', '–']);
    let reason = if reason.is_empty() {
        "the session as a whole shows otherwise"
    } else {
        reason
    };
    Some((id, shorten(reason, REASON_CHARACTERS).into_owned()))
}

/// None if all of its fields are empty.
pub fn summary(found: &ReplyBlock, events: &[&Event]) -> Option<Summary> {
    let field = |name| plain(&found.short(&[name]));
    let files = |names| files::of_summary(&found.list(names, "file"), events);
    let summary = Summary {
        request: field("request"),
        investigated: field("investigated"),
        learned: field("learned"),
        completed: field("completed"),
        next_steps: field("next_steps"),
        files_read: files(&["files_read"]),
        files_edited: files(&["files_edited", "files_modified"]),
        notes: field("notes"),
    };
    (summary != Summary::default()).then_some(summary)
}

/// The digest of a session. None if neither a title nor a request is there.
pub fn digest(found: &ReplyBlock) -> Option<SessionDigest> {
    let [title, request, subtitle, completed] =
        ["title", "request", "subtitle", "completed"].map(|name| plain(&found.short(&[name])));
    let title = self::title(&title, [&request].into_iter())?;
    let outcome = if subtitle.is_empty() {
        text::first_sentence(&completed)
    } else {
        &subtitle
    };
    let sentences = |name| {
        let lines = found.list(&[name], "fact");
        let lines = lines.iter().map(|line| plain(line));
        let lines = once(lines.filter(|line| !line.is_empty()));
        let cut = lines
            .iter()
            .map(|line| cut::sentence(line, FACT_CHARACTERS));
        cut.take(FACTS).collect()
    };
    Some(SessionDigest {
        title,
        subtitle: cut::words(outcome, SUBTITLE_WORDS),
        open: sentences("next_steps"),
        given_up: sentences("given_up"),
    })
}

fn kind(field: &str) -> ObservationType {
    let lower = field.to_lowercase();
    let word: String = lower.chars().filter(|it| it.is_alphanumeric()).collect();
    match word.as_str() {
        "bug" | "fix" | "bugfixes" | "hotfix" => ObservationType::Bugfix,
        "feat" | "features" | "newfeature" | "enhancement" => ObservationType::Feature,
        "refactoring" | "cleanup" => ObservationType::Refactor,
        word if word.ends_with("decision") => ObservationType::Decision,
        word => ObservationType::parse(word).unwrap_or(ObservationType::Discovery),
    }
}

/// The given title, or else the first sentence of the other texts.
fn title<'a>(given: &str, others: impl Iterator<Item = &'a String>) -> Option<String> {
    let given = flat(without_marks(given));
    if given.chars().any(char::is_alphanumeric) {
        return Some(shorten(&given, TITLE_CHARACTERS).into_owned());
    }
    let mut titles = others.map(|other| text::title(other));
    titles.find(|title| !title.is_empty())
}

/// Removes a heading's `#`, and a `**` around the whole line.
fn without_marks(line: &str) -> &str {
    let line = line.trim().trim_start_matches('#').trim_start();
    let inner = || line.strip_prefix("**")?.strip_suffix("**");
    let inner = inner().filter(|inner| !inner.contains("**"));
    inner.unwrap_or(line).trim()
}

fn facts(found: &[String]) -> Vec<String> {
    let facts = found.iter().map(|fact| flat(without_bullet(fact)));
    let facts = once(facts).into_iter().take(FACTS);
    facts
        .map(|fact| cut::sentence(&fact, FACT_CHARACTERS))
        .collect()
}

fn concepts(found: &[String]) -> Vec<String> {
    let concepts = found.iter().map(|concept| {
        let concept = flat(without_bullet(concept)).to_lowercase();
        let concept = concept.trim_matches(|c: char| c.is_whitespace() || "#`\"'.;".contains(c));
        shorten(concept, CONCEPT_CHARACTERS).into_owned()
    });
    once(concepts).into_iter().take(CONCEPTS).collect()
}

/// The items without duplicates and empty ones.
fn once(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for item in items.filter(|item| !item.is_empty()) {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

/// The events with these numbers. If there are no numbers, or if no event has one of them: all tool
/// uses, or all events if none is a tool use.
fn cited<'a>(numbers: &[u32], events: &[&'a Event]) -> Vec<&'a Event> {
    let is_step = |number: &u32| (1..=events.len()).contains(&(*number as usize));
    if !numbers.is_empty() && numbers.iter().all(is_step) {
        let named = (1..).zip(events).filter(|(it, _)| numbers.contains(it));
        return named.map(|(_, event)| *event).collect();
    }
    let tool_uses: Vec<&Event> = events.iter().copied().filter(|it| is_tool(it)).collect();
    if tool_uses.is_empty() {
        events.to_vec()
    } else {
        tool_uses
    }
}

/// The least trusted origin of the events: an observation that rests on a web page is not trusted
/// like the user's prompt.
fn origin(events: &[&Event]) -> Origin {
    let origins = events.iter().map(|event| match host::tool_kind(event) {
        ToolKind::Read | ToolKind::Web | ToolKind::Search | ToolKind::Mcp => Origin::Read,
        _ if event.kind == EventKind::Prompt => Origin::User,
        _ => Origin::Agent,
    });
    origins.max().unwrap_or(Origin::Agent)
}

fn agent_id(events: &[&Event]) -> Option<String> {
    let (first, others) = events.split_first()?;
    let same = others.iter().all(|event| event.agent_id == first.agent_id);
    first.agent_id.clone().filter(|_| same)
}

/// A field as one line of plain text, without bullets and headings; empty if it is a placeholder
/// like "none".
fn plain(field: &str) -> String {
    let mut plain = String::new();
    for line in field.lines() {
        let line = line.trim().trim_start_matches('>');
        let item = without_bullet(line);
        let is_item = item.len() < line.trim().len();
        let line = flat(&without_marks(item).replace("**", ""));
        if line.is_empty() || line.starts_with("```") {
            continue;
        }
        if !plain.is_empty() {
            let ended = plain.ends_with(['.', '!', '?', ':', ';', ',']);
            plain.push_str(if is_item && !ended { "; " } else { " " });
        }
        plain.push_str(&line);
    }
    if is_placeholder(&plain) {
        return String::new();
    }
    cut::sentence(&plain, SUMMARY_FIELD_CHARACTERS)
}

/// Whether a text stands for an empty field.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    let nothing = "|none|n/a|na|null|nil|nothing|empty|unknown";
    nothing.split('|').any(|it| text.eq_ignore_ascii_case(it))
}
