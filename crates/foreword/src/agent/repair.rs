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

use super::origin::{self, Copied};
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
    let (cited, is_exact) = cited(&numbers(&found.verbatim(&["events"])), events);
    let title = title(&found.short(&["title"]), other_texts)?;
    let origins = Origins::of(&cited, is_exact, events, facts.iter().chain([&title]));
    let fact_origins = facts.iter().map(|it| origins.of_statement(it)).collect();
    let facts = facts.into_iter().map(|it| origins.quoted(it)).collect();
    Some(Observation {
        seed,
        kind: kind(&found.short(&["type"])),
        origin: origins.of_statement(&title),
        fact_origins,
        title,
        subtitle: cut::words(&flat(without_marks(&subtitle)), SUBTITLE_WORDS),
        narrative: cut::words(&narrative, NARRATIVE_WORDS),
        facts,
        concepts: concepts(&found.list(&["concepts"], "concept")),
        files: files::of_observation(found, events),
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
        // These two are shown without being asked for.
        completed: without_copied(&field("completed"), events),
        next_steps: without_copied(&field("next_steps"), events),
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
/// uses, or all events if none is a tool use. Also returns whether the numbers were right.
fn cited<'a>(numbers: &[u32], events: &[&'a Event]) -> (Vec<&'a Event>, bool) {
    let is_step = |number: &u32| (1..=events.len()).contains(&(*number as usize));
    if !numbers.is_empty() && numbers.iter().all(is_step) {
        let named = (1..).zip(events).filter(|(it, _)| numbers.contains(it));
        return (named.map(|(_, event)| *event).collect(), true);
    }
    let tool_uses: Vec<&Event> = events.iter().copied().filter(|it| is_tool(it)).collect();
    if tool_uses.is_empty() {
        (events.to_vec(), false)
    } else {
        (tool_uses, false)
    }
}

/// Whose words the statements of an observation are.
struct Origins {
    /// That of the events it rests on.
    of_events: Origin,
    copied: Copied,
    /// Where the words come from, if the model named one event that read something.
    place: Option<String>,
    /// The user's prompts among those events; none if no tool showed somebody else's words, so that
    /// there is nothing else that the model could have taken for the user's.
    prompts: Option<String>,
}

impl Origins {
    fn of<'a>(
        cited: &[&Event],
        is_exact: bool,
        events: &[&'a Event],
        statements: impl Iterator<Item = &'a String>,
    ) -> Origins {
        let statements = statements.flat_map(|it| origin::sentences(it));
        let prompts = cited.iter().filter_map(|it| it.payload.prompt.as_deref());
        let prompts = prompts.collect::<Vec<_>>().join("\n").to_lowercase();
        let has_read = events.iter().any(|it| is_tool(it));
        let proves_work = is_exact && cited.iter().any(|it| is_edit(it));
        let reading = cited.iter().filter(|it| origin::is_reading(it));
        let reading: Vec<_> = reading.filter(|_| is_exact).collect();
        Origins {
            // An edit proves what the agent did, whatever it read before.
            of_events: match proves_work {
                true => Origin::Agent,
                false => of_events(cited),
            },
            place: match reading.as_slice() {
                [event] => Some(origin::place(event)),
                _ => None,
            },
            copied: origin::copied(events.iter().copied(), statements),
            prompts: has_read.then_some(prompts),
        }
    }

    fn of_statement(&self, statement: &str) -> Origin {
        match (self.of_events, &self.prompts) {
            _ if self.place_of(statement).is_some() => Origin::Read,
            (Origin::User, Some(prompts)) if !shares_word(statement, prompts) => Origin::Agent,
            (origin, _) => origin,
        }
    }

    /// Where a sentence of the statement is copied from.
    fn place_of(&self, statement: &str) -> Option<&String> {
        let sentences = origin::sentences(statement).into_iter();
        let mut copies = sentences.filter_map(|it| self.copied.get(it));
        copies.find(|it| it.is_whole()).map(|it| &it.place)
    }

    /// A fact as it is stored: words that were merely read as a quotation, if the place is known.
    fn quoted(&self, fact: String) -> String {
        let place = self.place_of(&fact).or(self.place.as_ref());
        match (self.of_statement(&fact), place) {
            (Origin::Read, Some(place)) => text::quotation(place, &fact),
            _ => fact,
        }
    }
}

fn is_edit(event: &Event) -> bool {
    host::tool_kind(event) == ToolKind::Edit
}

/// Whether a statement has a word of some length, or its beginning, in common with a text in lower case.
fn shares_word(statement: &str, text: &str) -> bool {
    let statement = statement.to_lowercase();
    let words = statement.split(|it: char| !it.is_alphanumeric());
    let mut words = words.filter(|it| !text::is_stop_word(it) && it.len() >= 3);
    words.any(|word| {
        let start: String = word.chars().take(5).collect();
        text.contains(&start)
    })
}

/// The least trusted origin of the events: an observation that rests on a web page is not trusted like
/// the user's prompt.
fn of_events(events: &[&Event]) -> Origin {
    let origins = events.iter().map(|event| match event.kind {
        _ if origin::is_reading(event) => Origin::Read,
        EventKind::Prompt => Origin::User,
        _ => Origin::Agent,
    });
    origins.max().unwrap_or(Origin::Agent)
}

/// A field without the sentences that are copied out of what tools printed.
pub fn without_copied(field: &str, events: &[&Event]) -> String {
    let sentences = origin::sentences(field);
    let copied = origin::copied(events.iter().copied(), sentences.iter().copied());
    let own = sentences.into_iter().filter(|it| !copied.contains_key(*it));
    own.collect::<String>().trim().to_owned()
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
