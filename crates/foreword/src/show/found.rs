//! What a search found, and how it says so.
//!
//! Five levels, each cheaper than the next: titles of sessions, their summaries, titles
//! of observations, facts, everything (`item`, beside this).

use std::fmt::Write as _;

use foreword_core::search::{
    Answer, Found, Hit, LOOSER_MAX, Looser, Matched, SessionTitle, SummaryLine,
};
use foreword_core::store::{Item, ItemBody};
use foreword_core::text::{self, count, one_line};
use serde_json::{Value, json};

use super::mark;

/// One line each, with its project where it may be any of several.
pub fn hits(hits: &[Hit], with_project: bool) -> String {
    hits.iter().map(|hit| line(hit, with_project)).collect()
}

fn line(hit: &Hit, with_project: bool) -> String {
    let kind = hit
        .observation_type
        .map_or(hit.kind.as_str(), |it| it.as_str());
    let mut title = one_line(&hit.title);
    if with_project {
        title.insert_str(0, &project(hit.project.as_deref()));
    }
    if !hit.subtitle.is_empty() {
        let _ = write!(title, " — {}", text::shorten(&one_line(&hit.subtitle), 100));
    }
    title.push_str(&superseded(hit));
    if hit.matched == Some(Matched::Meaning) {
        title.push_str(" (by meaning)");
    }
    format!(
        "#{:<5} {}  {kind:<9}  {title}{}\n",
        hit.id,
        text::date(hit.at),
        mark(hit.freshness)
    )
}

/// `[payments] `
pub fn project(name: Option<&str>) -> String {
    format!("[{}] ", one_line(name.unwrap_or("no project")))
}

/// ` (superseded by #12)`, or nothing.
pub fn superseded(hit: &Hit) -> String {
    hit.superseded_by
        .map(|by| format!(" (superseded by #{by})"))
        .unwrap_or_default()
}

/// What became of an observation later: `superseded by #12, told 3 times`.
pub fn later(superseded_by: Option<i64>, supersedes: &[i64], times: u32) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(superseded_by.map(|by| format!("superseded by #{by}")));
    parts.extend(supersedes.iter().map(|id| format!("supersedes #{id}")));
    parts.extend((times > 1).then(|| format!("told {times} times")));
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
        })
    });
    rows.collect()
}

/// How the hits match, where that is not plain from them.
pub fn how(words: &str, found: &Found) -> String {
    let mut out = String::new();
    if found.answer == Answer::Listed && !words.trim().is_empty() {
        out.push_str("there is no word in this to look for; these are the newest\n");
    }
    if found.answer == Answer::Meaning {
        out.push_str("nothing has any of these words; these are nearest in meaning\n");
    }
    if found.answer == Answer::AnyWord && one_line(words).contains(' ') {
        out.push_str("nothing has all of these words; the hits have some\n");
    }
    if !found.unknown.is_empty() && one_line(words).contains(' ') {
        let unknown: Vec<_> = found.unknown.iter().map(|it| one_line(it)).collect();
        let _ = writeln!(out, "words in no memory: {}", unknown.join(", "));
    }
    out
}

/// What a search could not look at.
pub fn waiting(events: u64) -> String {
    match events {
        0 => String::new(),
        1 => "not looked at: 1 event that waits to be taken in\n".to_owned(),
        events => format!("not looked at: {events} events that wait to be taken in\n"),
    }
}

pub fn no_project() -> String {
    "this directory is no project; search with --all-projects".to_owned()
}

pub fn no_hits(words: &str, found: &Found, current_project: bool) -> String {
    let words = one_line(words);
    let mut out = if words.is_empty() {
        "nothing of the kind is remembered".to_owned()
    } else {
        format!("nothing about “{words}” is remembered")
    };
    if current_project {
        out.push_str(" in this project");
    }
    let filtered = |it: &Looser| matches!(it, Looser::NoFilter(_));
    if found.looser.iter().any(filtered) {
        out.push_str(" with these filters");
    }
    out.push('\n');
    for looser in &found.looser {
        let (hits, how) = match looser {
            Looser::Beginnings(hits) => (*hits, "with words that begin so"),
            Looser::NoFilter(hits) => (*hits, "without the filters"),
            Looser::AllProjects(hits) => (*hits, "with --all-projects"),
        };
        let more = if hits >= LOOSER_MAX { " or more" } else { "" };
        let hits = count(hits as u64, "hit", "hits");
        let _ = writeln!(out, "{hits}{more} {how}");
    }
    out
}

/// A hit with its facts: what a summary learned, what a prompt asked.
pub fn facts(item: &Item) -> String {
    let mut page = super::Page::default();
    match &item.body {
        ItemBody::Observation {
            r#type,
            title,
            subtitle,
            facts,
            ..
        } => {
            let mark = mark(item.beside.as_ref().and_then(|it| it.stale));
            page.text("", &format!("#{} {type}: {title}{mark}", item.id));
            page.text("  ", subtitle);
            for fact in facts {
                page.text("  - ", fact);
            }
        }
        ItemBody::Summary {
            request,
            learned,
            completed,
            ..
        } => {
            page.text("", &format!("#{} summary: {request}", item.id));
            page.text("  - ", learned);
            page.text("  - ", completed);
        }
        ItemBody::Prompt { text, .. } => page.text(
            "",
            &format!("#{} prompt: {}", item.id, text::shorten(text, 400)),
        ),
        ItemBody::Note { title, text, .. } => {
            page.text("", &format!("#{} note: {title}", item.id));
            let points = foreword_core::notes::Note::read(text).0.points;
            for point in points {
                page.text("  - ", &format!("{}: {}", point.label, point.text));
            }
        }
    }
    page.out
}

pub fn timeline(hits: &[Hit], middle: i64) -> String {
    let mark = |hit: &Hit| if hit.id == middle { "> " } else { "  " };
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

pub fn session_title(session: &SessionTitle, with_project: bool) -> String {
    // As much of an id as tells sessions apart, and `--session` takes it.
    let id: String = session.session.chars().take(8).collect();
    format!(
        "{}  {}  {}{} ({})",
        one_line(&id),
        text::date(session.at),
        if with_project {
            project(session.project.as_deref())
        } else {
            String::new()
        },
        one_line(&session.title),
        count(session.observations, "observation", "observations")
    )
}

/// What a prompt asked for and came to, in a line. A session's title is what its first prompt
/// asked for, and is not said twice.
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

pub fn sessions_json(sessions: &[SessionTitle]) -> Value {
    let rows = sessions.iter().map(|session| {
        let summaries = session.summaries.iter().map(|summary| {
            json!({"id": summary.id, "request": summary.request, "outcome": summary.outcome})
        });
        json!({
            "session": session.session,
            "title": session.title,
            "project": session.project,
            "last_event_at": text::rfc3339(session.at),
            "observations": session.observations,
            "summaries": summaries.collect::<Value>(),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_an_observation_is_said_in_a_line() {
        assert_eq!(later(None, &[], 1), "");
        assert_eq!(later(Some(12), &[], 1), "Superseded by #12");
        assert_eq!(
            later(None, &[7, 8], 3),
            "Supersedes #7, supersedes #8, told 3 times"
        );
    }
}
