//! Formats the answers of the tools for an agent, as parts that `output` puts together.

use std::fmt::Write as _;

use foreword_core::model::Freshness;
use foreword_core::search::Related;
use foreword_core::search::{Hit, SessionTitle};
use foreword_core::store::Item;
use foreword_core::text;

use crate::local_time;
use crate::output::{BUDGET, Part, SafeText, framed};
use crate::service::search::{Format, SearchAnswer, SearchRequest};
use crate::show;

/// The longest title in characters, such that an answer with ten hits has at most 250 tokens.
const TITLE_MAX: usize = 61;
/// The longest outcome of a prompt in characters, such that it costs less than the one or two
/// observations that a prompt leaves.
const OUTCOME_MAX: usize = 90;

/// The argument by which an agent searches all projects, as hints show it.
const ALL_PROJECTS: &str = "projects [\"*\"]";

/// The answer to a search.
pub fn found(request: &SearchRequest, answer: &SearchAnswer) -> SafeText {
    let with_project = request.filter.spans_projects();
    let hits = &answer.found.hits;
    let parts: Vec<Part> = match request.format {
        Format::Json => return json(hits),
        _ if hits.is_empty() => {
            let none = show::no_hits(request, answer, ALL_PROJECTS);
            return SafeText::plain(&(none + &show::notes(request, answer)));
        }
        Format::Sessions | Format::Summaries => {
            let sessions = answer.sessions.iter();
            let parts = sessions.map(|it| session(it, request.format, with_project));
            parts.flatten().collect()
        }
        Format::Index => {
            let lines = hits.iter();
            lines.map(|hit| line(hit, with_project)).collect()
        }
        Format::Facts | Format::Full => {
            let items = answer.items.iter();
            items.map(|it| item(it, request.format)).collect()
        }
    };
    framed(&parts, &show::notes(request, answer))
}

/// The answer to a timeline whose query found nothing.
pub fn no_hits(request: &SearchRequest, answer: &SearchAnswer) -> SafeText {
    let none = show::no_hits(request, answer, ALL_PROJECTS);
    SafeText::plain(&(none + &show::ranking(answer)))
}

/// `#12 bugfix 2026-11-16 Expiry is compared in UTC`
fn line(hit: &Hit, with_project: bool) -> Part {
    let mut title = show::title(hit, with_project);
    // No subtitle if only a few letters of it would fit.
    if !hit.subtitle.is_empty() && title.chars().count() + 30 < TITLE_MAX {
        let _ = write!(title, " — {}", hit.subtitle);
    }
    let stale = match hit.freshness {
        None | Some(Freshness::Fresh) => String::new(),
        Some(stale) => format!(" ({stale})"),
    };
    let marks = show::marks(hit, &stale);
    let title = text::shorten(&title, TITLE_MAX - marks.len());
    let (id, date, kind) = (hit.id, local_time::date(hit.at), show::kind(hit));
    Part::new(id, format!("#{id} {kind} {date} {title}{marks}\n"))
}

/// A session's title, and its summaries if they are wanted.
fn session(session: &SessionTitle, format: Format, with_project: bool) -> Vec<Part> {
    let title = Part {
        name: text::one_line(&session.session),
        text: format!("{}\n", show::session_title(session, with_project)),
    };
    let summaries = session.summaries.iter();
    let summaries = summaries.filter(|_| format == Format::Summaries).map(|it| {
        let outcome = match it.outcome.as_str() {
            "" => &it.request,
            outcome => text::first_sentence(outcome),
        };
        let outcome = text::one_line(outcome);
        let outcome = text::shorten(&outcome, OUTCOME_MAX);
        Part::new(it.id, format!("  #{} {outcome}\n", it.id))
    });
    std::iter::once(title).chain(summaries).collect()
}

/// The hits as JSON, in the form that the commands print, as many as fit. JSON needs no tags around
/// it: no string in it can end it.
fn json(hits: &[Hit]) -> SafeText {
    let mut left = BUDGET;
    let hits = hits.iter().map(|hit| {
        let hit = &show::hits_json(std::slice::from_ref(hit))[0];
        SafeText::json(&hit.to_string()).into_string()
    });
    let hits: Vec<_> = hits
        .take_while(|hit| {
            let cost = text::tokens(hit);
            left = left.saturating_sub(cost);
            left > 0
        })
        .collect();
    SafeText::json(&format!("[{}]\n", hits.join(",\n")))
}

/// A line of a timeline; `>` marks the item in its middle.
pub fn timeline_line(hit: &Hit, middle: i64) -> Part {
    let mark = if hit.id == middle { "> " } else { "" };
    let Part { name, text } = line(hit, false);
    let text = format!("{mark}{text}");
    Part { name, text }
}

/// An item in full, or only its facts if it is too long for one answer.
pub fn item(item: &Item, format: Format) -> Part {
    let full = show::item(item);
    if format == Format::Facts || text::tokens(&full) > BUDGET {
        Part::new(item.id, show::facts(item))
    } else {
        Part::new(item.id, full + "\n")
    }
}

/// `Same turn: #12, #40`, or nothing.
pub fn same_turn(others: &[Hit]) -> String {
    match others {
        [] => String::new(),
        others => format!("Same turn: {}\n", numbers(others.iter().map(|it| it.id))),
    }
}

/// `Related: #12, #40`, or nothing.
pub fn related(related: &[Related]) -> String {
    match related {
        [] => String::new(),
        related => format!("Related: {}\n", numbers(related.iter().map(|it| it.id))),
    }
}

/// An item's title and project: numbers count over all projects, so a wrong one may be elsewhere.
pub fn title_and_project(item: &Item) -> Part {
    let title = show::item_title(item);
    Part::new(item.id, format!("{title}{}\n", project(item)))
}

/// ` [payments]`
pub fn project(item: &Item) -> String {
    let name = item.project.as_deref().unwrap_or("no project");
    format!(" [{}]", text::one_line(name))
}

/// `There is no #12, #40.`, or nothing.
pub fn missing(ids: &[i64]) -> String {
    match ids {
        [] => String::new(),
        ids => format!("There is no {}.\n", numbers(ids.iter().copied())),
    }
}

/// `#12, #40`
pub fn numbers(ids: impl Iterator<Item = i64>) -> String {
    ids.map(|id| format!("#{id}"))
        .collect::<Vec<_>>()
        .join(", ")
}
