//! How an answer is worded for an agent: in the frame of recalled text, and bounded.
//!
//! An answer is a list of parts. As many as there is room for are shown whole; the others
//! are named, so that the agent can ask for them.

use std::fmt::Write as _;

use foreword_core::model::{Freshness, Kind};
use foreword_core::search::{Answer, Found, Hit, LOOSER_MAX, Looser, Matched, SessionTitle};
use foreword_core::store::{Item, Related};
use foreword_core::text;

use super::arguments::Format;
use crate::service::frame::{self, Part};
use crate::show;

/// Ten hits are to cost at most 250 tokens, with all that is around them.
const TITLE_MAX: usize = 66;
/// A prompt leaves one or two observations at the least; what it came to is to cost less.
const OUTCOME_MAX: usize = 90;

/// `#12 bugfix Expiry is compared in UTC`
pub fn line(hit: &Hit, with_project: bool) -> Part {
    let kind = hit
        .observation_type
        .map_or(hit.kind.as_str(), |it| it.as_str());
    let mut title = text::one_line(&hit.title);
    if hit.kind == Kind::Note {
        title.insert_str(0, &format!("{} ", text::date(hit.at)));
    }
    if with_project {
        title.insert_str(0, &show::project(hit.project.as_deref()));
    }
    // A few letters of a subtitle would say nothing.
    if !hit.subtitle.is_empty() && title.chars().count() + 30 < TITLE_MAX {
        let _ = write!(title, " — {}", hit.subtitle);
    }
    let mark = match hit.freshness {
        None | Some(Freshness::Fresh) => String::new(),
        Some(stale) => format!(" ({stale})"),
    };
    let mut mark = show::superseded(hit) + &mark;
    if hit.matched == Some(Matched::Meaning) {
        mark.push_str(" (by meaning)");
    }
    let title = text::shorten(&title, TITLE_MAX - mark.len());
    Part::new(hit.id, format!("#{} {kind} {title}{mark}\n", hit.id))
}

/// A session's title, and its summaries if they are wanted.
pub fn session(session: &SessionTitle, format: Format, with_project: bool) -> Vec<Part> {
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

/// The hits as the commands print them, for whoever wants to compute with them: as many as
/// there is room for. JSON is a frame of its own, which no string in it can close.
pub fn json(hits: &[Hit]) -> String {
    let mut left = frame::BUDGET;
    let hits = hits.iter().map(|hit| {
        let hit = &show::hits_json(std::slice::from_ref(hit))[0];
        show::escaped(text::without_tags(&hit.to_string()))
    });
    let hits: Vec<_> = hits
        .take_while(|hit| {
            let cost = text::tokens(hit);
            left = left.saturating_sub(cost);
            left > 0
        })
        .collect();
    format!("[{}]\n", hits.join(",\n"))
}

/// A line of a timeline, whose middle is marked.
pub fn dated_line(hit: &Hit, middle: i64) -> Part {
    let mark = if hit.id == middle { "> " } else { "" };
    let Part { name, text } = line(hit, false);
    let text = format!("{mark}{} {text}", text::date(hit.at));
    Part { name, text }
}

/// An item in full; only its facts if it is too long for one answer by itself.
pub fn item(item: &Item, format: Format) -> Part {
    let full = show::item(item);
    if format == Format::Facts || text::tokens(&full) > frame::BUDGET {
        Part::new(item.id, show::facts(item))
    } else {
        Part::new(item.id, full + "\n")
    }
}

/// `Related: #12, #40`, which the agent can ask for.
pub fn related(related: &[Related]) -> String {
    let ids: Vec<_> = related.iter().map(|it| format!("#{}", it.id)).collect();
    match ids.as_slice() {
        [] => String::new(),
        ids => format!("Related: {}\n", ids.join(", ")),
    }
}

/// What an item is about, and no more.
pub fn title(item: &Item) -> Part {
    let facts = show::facts(item);
    let first = facts.lines().next().unwrap_or_default();
    Part::new(item.id, format!("{first}\n"))
}

/// How the hits match, where that is not plain from them.
pub fn how(words: &str, found: &Found) -> String {
    let mut out = String::new();
    if found.answer == Answer::Listed && !words.trim().is_empty() {
        out.push_str("The query has no word to look for: these are the newest.\n");
    }
    if found.answer == Answer::Meaning {
        out.push_str("No hit has any of the words: these are nearest in meaning.\n");
    }
    if found.answer == Answer::AnyWord {
        out.push_str("No hit has all the words.\n");
    }
    if !found.unknown.is_empty() {
        let unknown: Vec<_> = found
            .unknown
            .iter()
            .take(8)
            .map(|it| text::one_line(it))
            .collect();
        let _ = writeln!(
            out,
            "In no memory: {}",
            text::shorten(&unknown.join(", "), 200)
        );
    }
    out
}

pub fn no_hits(found: &Found) -> String {
    let mut out = "Nothing like that is remembered here.\n".to_owned();
    for looser in &found.looser {
        let (hits, how) = match looser {
            Looser::Beginnings(hits) => (*hits, "with words that begin so"),
            Looser::NoFilter(hits) => (*hits, "without the filters"),
            Looser::AllProjects(hits) => (*hits, "with projects [\"*\"]"),
        };
        let more = if hits >= LOOSER_MAX { "or more " } else { "" };
        let _ = writeln!(
            out,
            "{} {more}{how}.",
            text::count(hits as u64, "hit", "hits")
        );
    }
    out
}
