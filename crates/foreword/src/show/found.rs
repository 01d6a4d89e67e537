//! Formats the answer to a search as text, with the state of files and related items.
//!
//! There are five levels, each cheaper than the next: titles of sessions, their summaries, titles
//! of observations, facts, everything (`super::item`).

use std::borrow::Cow;
use std::fmt::Write as _;

use foreword_core::model::{Freshness, Millis, Origin};
use foreword_core::search::{
    Hit, LOOSER_MAX, Looser, MatchKind, Matched, Related, SessionTitle, SummaryLine,
};
use foreword_core::store::{Item, ItemBody, ObservationItem};
use foreword_core::text::{self, count, one_line};
use serde_json::{Value, json};

use crate::colour::{Style, paint};
use crate::home;
use crate::local_time;
use crate::service::embed_client::Ranking;
use crate::service::search::{Format, SearchAnswer, SearchRequest};

/// The flag that a command names where another project has hits.
pub const ALL_PROJECTS: &str = "--all-projects";

/// The answer to a search as a command prints it.
pub fn found(request: &SearchRequest, answer: &SearchAnswer) -> String {
    let with_project = request.filter.spans_projects();
    let hits = &answer.found.hits;
    let mut out: String = match request.format {
        _ if hits.is_empty() => no_hits(request, answer, ALL_PROJECTS),
        Format::Sessions => sessions(&answer.sessions, false, with_project),
        Format::Summaries => sessions(&answer.sessions, true, with_project),
        Format::Index => hits.iter().map(|hit| line(hit, with_project)).collect(),
        Format::Facts => answer.items.iter().map(facts).collect(),
        // As JSON only the hits are printed, by `hits_json`.
        Format::Full | Format::Json => {
            let items = answer.items.iter();
            items.map(|item| super::item(item) + "\n").collect()
        }
    };
    let notes = notes(request, answer);
    if !notes.is_empty() && !hits.is_empty() {
        out.push('\n');
    }
    out + &notes
}

fn line(hit: &Hit, with_project: bool) -> String {
    let mut title = title(hit, with_project);
    if !hit.subtitle.is_empty() {
        let _ = write!(title, " — {}", text::shorten(&one_line(&hit.subtitle), 100));
    }
    let number = paint(Style::Number, &format!("#{:<5}", hit.id));
    let at = paint(Style::Quiet, &local_time::minute(hit.at));
    let marks = marks(hit, mark(hit.freshness));
    format!("{number} {at}  {:<9}  {title}{marks}\n", kind(hit))
}

/// An observation's type, else the kind of item.
pub fn kind(hit: &Hit) -> &'static str {
    hit.observation_type
        .map_or(hit.kind.as_str(), |it| it.as_str())
}

/// The title, with the project before it if the hits may be of several.
pub fn title(hit: &Hit, with_project: bool) -> String {
    let project = with_project.then(|| project(hit.project.as_deref()));
    project.unwrap_or_default() + &one_line(&hit.title)
}

/// The remarks behind a title: ` (superseded by #12)`, whose words it is if not the agent's, how its files are now, ` (by meaning)`, and
/// how many other turns of its session the line stands for.
pub fn marks(hit: &Hit, stale: &str) -> String {
    let mut marks = String::new();
    let overtaken = overtaken(hit.superseded_by, hit.retracted.as_deref());
    if !overtaken.is_empty() {
        let _ = write!(marks, " ({overtaken})");
    }
    marks.push_str(match hit.origin {
        Some(Origin::User) => " (by the user)",
        Some(Origin::Read) => " (merely read)",
        Some(Origin::Import) => " (imported)",
        Some(Origin::Agent) | None => "",
    });
    for mark in by_hand(hit.pinned, hit.hidden, hit.until) {
        let _ = write!(marks, " ({mark})");
    }
    marks.push_str(stale);
    if hit.matched == Some(Matched::Meaning) {
        marks.push_str(" (by meaning)");
    }
    if hit.turns > 1 {
        let others = count(u64::from(hit.turns - 1), "turn", "turns");
        let _ = write!(marks, " (and {others} of this session)");
    }
    marks
}

/// `pinned`, `hidden`, `until 2026-12-01` or `expired 2026-12-01`.
pub fn by_hand(pinned: bool, hidden: bool, until: Option<Millis>) -> Vec<String> {
    let mut marks = Vec::new();
    marks.extend(pinned.then(|| "pinned".to_owned()));
    marks.extend(hidden.then(|| "hidden".to_owned()));
    marks.extend(until.map(|until| {
        let is_over = until < home::now();
        format!(
            "{} {}",
            if is_over { "expired" } else { "until" },
            text::date(until)
        )
    }));
    marks
}

/// `superseded by #12`, or `no longer holds: the test was wrong`; empty if neither is the case.
pub fn overtaken(superseded_by: Option<i64>, retracted: Option<&str>) -> String {
    match (superseded_by, retracted) {
        (Some(by), _) => format!("superseded by #{by}"),
        (None, Some(why)) => format!("no longer holds: {}", text::shorten(&one_line(why), 40)),
        (None, None) => String::new(),
    }
}

/// An origin in words.
pub fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::User => "the user said so",
        Origin::Agent => "the agent's words and work",
        Origin::Read => "merely read, in a file, a page or a tool's output",
        Origin::Import => "imported",
    }
}

/// The title of an observation, as a quotation if its words were merely read.
pub fn title_of(item: &ObservationItem) -> Cow<'_, str> {
    match (item.origin, item.files_read.as_slice()) {
        (Origin::Read, [file]) if item.events.len() < 3 => {
            Cow::Owned(text::quotation(file, &item.title))
        }
        (Origin::Read, _) => text::as_quotation(&item.title),
        _ => Cow::Borrowed(&item.title),
    }
}

/// The facts of an observation, each with whose words it is where that is not the observation's origin.
pub fn facts_of(item: &ObservationItem) -> impl Iterator<Item = Cow<'_, str>> {
    let facts = item.facts.iter().zip(&item.fact_origins);
    facts.map(|(fact, &origin)| match origin {
        Origin::Read => text::as_quotation(fact),
        Origin::User if !fact.starts_with("The user") && item.origin != origin => {
            Cow::Owned(format!("The user: {fact}"))
        }
        Origin::Import if item.origin != origin => Cow::Owned(format!("Imported: {fact}")),
        _ => Cow::Borrowed(fact.as_str()),
    })
}

/// `[payments] `
fn project(name: Option<&str>) -> String {
    format!("[{}] ", one_line(name.unwrap_or("no project")))
}

/// The later history of an observation: `superseded by #12, recorded 3 times`.
pub fn later(overtaken: String, supersedes: &[i64], times: u32) -> String {
    let mut parts = vec![overtaken];
    parts.retain(|it| !it.is_empty());
    parts.extend(supersedes.iter().map(|id| format!("supersedes #{id}")));
    parts.extend((times > 1).then(|| format!("recorded {times} times")));
    text::capitalised(&parts.join(", "))
}

pub fn hits_json(hits: &[Hit]) -> Value {
    let rows = hits.iter().map(|hit| {
        json!({
            "id": hit.id,
            "kind": hit.kind,
            "type": hit.observation_type,
            "title": hit.title,
            "project": hit.project,
            "session": Some(&hit.session).filter(|it| !it.is_empty()),
            "created_at": text::rfc3339(hit.at),
            "score": hit.score,
            "stale": hit.freshness,
            "superseded_by": hit.superseded_by,
            "retracted": hit.retracted,
            "origin": hit.origin,
            "pinned": hit.pinned,
            "hidden": hit.hidden,
            "until": hit.until.map(text::rfc3339),
            "items": hit.items,
        })
    });
    rows.collect()
}

/// Lines below the hits, for people and agents: how they match, how they are ranked and what was
/// not searched. Empty if there is nothing to add.
pub fn notes(request: &SearchRequest, answer: &SearchAnswer) -> String {
    let words = one_line(&request.words);
    let several = words.contains(' ');
    let mut out = total(request, answer);
    match answer.found.answer {
        MatchKind::Listed if !words.is_empty() => {
            out.push_str("no searchable words; showing the newest\n");
        }
        MatchKind::Meaning => {
            out.push_str("nothing has any of these words; these are nearest in meaning\n");
        }
        MatchKind::AnyWord if several => {
            out.push_str("nothing has all of these words; showing hits with some of them\n");
        }
        _ => {}
    }
    if !answer.found.unknown.is_empty() && several {
        let unknown = one_line(&answer.found.unknown.join(", "));
        let _ = writeln!(out, "unknown words: {}", text::shorten(&unknown, 200));
    }
    if answer.notes_left > 0 {
        let notes = text::count(answer.notes_left as u64, "note is", "notes are");
        let _ = writeln!(
            out,
            "{notes} still being read and could not be searched; try again soon"
        );
    }
    out + &ranking(answer) + &waiting(answer.waiting)
}

/// `10 of 37`, or `11 to 20 of 200+`; empty if all hits are shown.
fn total(request: &SearchRequest, answer: &SearchAnswer) -> String {
    let (shown, total) = (answer.found.hits.len(), answer.total);
    if shown == 0 || (shown >= total.count && !total.or_more) {
        return String::new();
    }
    let (first, more) = (
        request.offset as usize + 1,
        if total.or_more { "+" } else { "" },
    );
    let shown = match first {
        1 => shown.to_string(),
        first => format!("{first} to {}", first + shown - 1),
    };
    format!("{shown} of {}{more}\n", total.count)
}

/// A line if the search could not go by meaning, or not all of the memory is indexed yet.
pub fn ranking(answer: &SearchAnswer) -> String {
    match answer.ranking {
        // Users who chose to have no model need no reminder where words were enough.
        Ranking::WordsOnly(reason)
            if !(reason.is_chosen() && answer.found.answer == MatchKind::AllWords) =>
        {
            format!("by words only: {}\n", reason.as_str())
        }
        Ranking::WordsAndMeaning { percent } if percent < 100 => {
            format!("{percent} % of the memory is indexed by meaning so far\n")
        }
        _ => String::new(),
    }
}

/// A line on the events that no memory was made of yet.
pub fn waiting(events: u64) -> String {
    match events {
        0 => String::new(),
        1 => "1 event is still waiting to be processed and was not searched\n".to_owned(),
        events => {
            format!("{events} events are still waiting to be processed and were not searched\n")
        }
    }
}

/// Nothing was found, and what a looser search would find. `all_projects` is how the caller asks
/// for all projects.
pub fn no_hits(request: &SearchRequest, answer: &SearchAnswer, all_projects: &str) -> String {
    if request.offset > 0 {
        return format!("there are no hits after the first {}\n", request.offset);
    }
    let words = one_line(&request.words);
    let mut out = match words.as_ref() {
        "" => "nothing of the kind is remembered".to_owned(),
        words => format!(
            "nothing about “{}” is remembered",
            text::shorten(words, 100)
        ),
    };
    if answer.in_current_project {
        out.push_str(" in this project");
    }
    let looser = &answer.found.looser;
    if looser.iter().any(|it| matches!(it, Looser::NoFilter(_))) {
        out.push_str(" with these filters");
    }
    out.push('\n');
    for looser in looser {
        let (hits, how) = match looser {
            Looser::Beginnings(hits) => (*hits, "with words that begin so"),
            Looser::NoFilter(hits) => (*hits, "without the filters"),
            Looser::AllProjects(hits) => (*hits, &*format!("with {all_projects}")),
        };
        let more = if hits >= LOOSER_MAX { " or more" } else { "" };
        let hits = count(hits as u64, "hit", "hits");
        let _ = writeln!(out, "{hits}{more} {how}");
    }
    out
}

/// `#12 bugfix: Expiry is compared in UTC`
pub fn item_title(item: &Item) -> String {
    let facts = facts(item);
    facts.lines().next().unwrap_or_default().to_owned()
}

/// A hit with its facts: what a summary learned, what a prompt asked.
pub fn facts(item: &Item) -> String {
    let mut page = super::TextPage::default();
    match &item.body {
        ItemBody::Observation(it) => {
            let stale = mark(item.freshness.as_ref().and_then(|it| it.stale));
            let overtaken = match overtaken(it.superseded_by, it.retracted.as_deref()) {
                none if none.is_empty() => none,
                some => format!(" ({some})"),
            };
            let title = title_of(it);
            let title = format!("#{} {}: {title}{overtaken}{stale}", item.id, it.r#type);
            page.text("", &title);
            page.text("  ", &it.subtitle);
            for fact in facts_of(it) {
                page.text("  - ", &fact);
            }
        }
        ItemBody::Summary(it) => {
            page.text("", &format!("#{} summary: {}", item.id, it.request));
            page.text("  - ", &it.learned);
            page.text("  - ", &it.completed);
        }
        ItemBody::Prompt(it) => {
            let text = text::shorten(&it.text, 400);
            page.text("", &format!("#{} prompt: {text}", item.id));
        }
        ItemBody::Note(it) => {
            page.text("", &format!("#{} note: {}", item.id, it.title));
            let points = foreword_core::notes::Note::read(&it.text).0.points;
            for point in points {
                page.text("  - ", &format!("{}: {}", point.label, point.text));
            }
        }
    }
    page.out
}

/// The other items of the turn of one that is shown.
pub fn same_turn(others: &[Hit]) -> String {
    let mut page = super::TextPage::default();
    for (number, other) in others.iter().enumerate() {
        let title = one_line(&other.title);
        let line = format!(
            "#{} {}: {}",
            other.id,
            kind(other),
            text::shorten(&title, 80)
        );
        page.field(if number == 0 { "same turn" } else { "" }, &line);
    }
    page.out
}

/// The items of a timeline; `>` marks the one in its middle, if there is one.
pub fn timeline(hits: &[Hit], middle: Option<i64>) -> String {
    let mark = |hit: &Hit| if Some(hit.id) == middle { "> " } else { "  " };
    hits.iter()
        .map(|hit| format!("{}{}", mark(hit), line(hit, false)))
        .collect()
}

pub fn sessions(sessions: &[SessionTitle], with_summaries: bool, with_project: bool) -> String {
    if sessions.is_empty() {
        return "no such session is remembered\n".to_owned();
    }
    let mut out = String::new();
    for session in sessions {
        let _ = writeln!(out, "{}", session_title(session, with_project));
        for line in session.summaries.iter().filter(|_| with_summaries) {
            let _ = writeln!(out, "  {}", summary(line, session));
        }
    }
    out
}

/// A session by its whole id, with its items.
pub fn session(id: &str, title: Option<&SessionTitle>, items: &[Hit]) -> String {
    let mut page = super::TextPage::default();
    page.text("", &format!("session {id}"));
    if let Some(title) = title {
        page.field("title", &title.title);
        page.field("project", title.project.as_deref().unwrap_or("none"));
        page.field("last event", &local_time::minute(title.at));
    }
    page.gap();
    page.out + &timeline(items, None)
}

pub fn session_title(session: &SessionTitle, with_project: bool) -> String {
    // Eight characters distinguish sessions, and `--session` accepts them.
    let id: String = session.session.chars().take(8).collect();
    format!(
        "{}  {}  {}{} ({})",
        paint(Style::Number, &one_line(&id)),
        paint(Style::Quiet, &local_time::minute(session.at)),
        if with_project {
            project(session.project.as_deref())
        } else {
            String::new()
        },
        one_line(&session.title),
        count(session.observations, "observation", "observations")
    )
}

/// A prompt's request and its outcome in one line. The request is left out if it is the session's
/// title.
fn summary(summary: &SummaryLine, session: &SessionTitle) -> String {
    let request = text::title(&summary.request);
    let outcome = one_line(&summary.outcome);
    let outcome = text::shorten(text::first_sentence(&outcome), 160);
    let line = if outcome.is_empty() {
        request
    } else if request == session.title {
        outcome.into_owned()
    } else {
        format!("{request} — {outcome}")
    };
    format!("#{} {line}", summary.id)
}

/// The remark after a title; empty if the files are unchanged or unknown.
pub fn mark(freshness: Option<Freshness>) -> &'static str {
    match freshness {
        Some(Freshness::Changed) => " (files changed since)",
        Some(Freshness::Gone) => " (files gone since)",
        Some(Freshness::Fresh) | None => "",
    }
}

/// The names of files, each with its state if it changed.
pub fn files(files: &[String], item: &Item) -> String {
    let stale = item.freshness.as_ref().map(|it| &it.stale_files);
    let files = files
        .iter()
        .map(|file| match stale.and_then(|it| it.get(file)) {
            Some(state) => format!("{file} ({state} since)"),
            None => file.clone(),
        });
    files.collect::<Vec<_>>().join(", ")
}

/// Related items, each with the reason: `#12 bugfix: Expiry is compared in UTC (same file src/token.rs)`
pub fn related(related: &[Related]) -> String {
    let mut page = super::TextPage::default();
    for (number, it) in related.iter().enumerate() {
        let title = one_line(&it.title);
        let title = text::shorten(&title, 80);
        let line = format!("#{} {}: {title} ({})", it.id, it.r#type, it.why);
        page.field(if number == 0 { "related" } else { "" }, &line);
    }
    page.out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_an_observation_is_said_in_a_line() {
        let later =
            |by, why, supersedes: &[i64], times| later(overtaken(by, why), supersedes, times);
        assert_eq!(later(None, None, &[], 1), "");
        assert_eq!(later(Some(12), None, &[], 1), "Superseded by #12");
        assert_eq!(
            later(None, Some("the clock was wrong"), &[], 1),
            "No longer holds: the clock was wrong"
        );
        assert_eq!(
            later(None, None, &[7, 8], 3),
            "Supersedes #7, supersedes #8, recorded 3 times"
        );
    }
}
