//! Words a conversation as a note: what its turns prove and what was said in them.

use foreword_core::model::{Derived, Observation, ObservationType, Turn};
use foreword_core::notes::{Note, Point};
use foreword_core::text::{one_line, shorten, title};

use super::{Words, once, quote, speech};

const POINTS_MAX: usize = 24;
const FILES_MAX: usize = 30;
const QUESTIONS_MAX: usize = 3;
/// What is said of a conversation without anything of that.
pub const NOTHING: &str = "Nothing was changed, run or decided.";

/// None if nobody asked for anything.
pub fn note(turns: &[Turn]) -> Option<Note> {
    let derived = super::derive(turns).turns;
    let words: Vec<Words<'_>> = turns.iter().map(Words::of).collect();
    let asked = words.iter().find_map(|it| it.request())?;
    let last = words.iter().rev().find_map(|it| it.reply());
    let ended = last.map(speech::first_paragraph).unwrap_or_default();
    let mut context = format!("Asked: {}", quote(&one_line(asked), 300));
    if !ended.is_empty() {
        context.push_str(&format!(" In the end: {}", quote(&ended, 300)));
    }
    let summaries = derived.iter().filter_map(|it| it.summary.as_ref());
    let files = summaries.flat_map(|it| it.files_edited.clone());
    let mut files = once(files, |a, b| a == b);
    files.truncate(FILES_MAX);
    Some(Note {
        title: title(asked),
        context,
        points: points(&derived, last.unwrap_or_default()),
        related: files,
        ..Note::default()
    })
}

/// Decisions first: they are what is looked for later.
fn points(derived: &[Derived], last: &str) -> Vec<Point> {
    let observations = derived.iter().flat_map(|it| &it.observations);
    let mut points: Vec<Point> = observations.map(point).collect();
    points.sort_by_key(|it| match it.label.as_str() {
        "Decision" => 0,
        "Discovery" => 1,
        _ => 2,
    });
    points.dedup();
    points.truncate(POINTS_MAX);
    let summary = derived.iter().rev().find_map(|it| it.summary.as_ref());
    let next = summary.map(|it| ("Next", it.next_steps.clone()));
    let questions = speech::all_sentences(last).into_iter();
    let questions = questions.filter(|it| it.ends_with('?')).take(QUESTIONS_MAX);
    let questions = questions.map(|it| ("Question", it));
    for (label, text) in next.into_iter().chain(questions) {
        points.push(labelled(label, shorten(&one_line(&text), 300).into_owned()));
    }
    points.retain(|it| !it.text.is_empty());
    if points.is_empty() {
        points.push(labelled("Status", NOTHING.to_owned()));
    }
    points
}

fn labelled(label: &str, text: String) -> Point {
    Point {
        label: label.to_owned(),
        text,
    }
}

/// With the reason, if somebody gave one.
fn point(observation: &Observation) -> Point {
    let label = match observation.kind {
        ObservationType::Decision => "Decision",
        ObservationType::Discovery | ObservationType::Bugfix => "Discovery",
        ObservationType::Feature | ObservationType::Refactor => "Status",
    };
    let quoted = |mark: &str| {
        let (_, said) = observation.narrative.split_once(mark)?;
        let said = one_line(said.split('”').next()?);
        Some(format!(" ({})", quote(&said, 240)))
    };
    // A decision's first fact is the sentence itself; its title has no reason.
    let because = || {
        let sentence = observation.facts.first()?;
        let reason = &sentence[sentence.find("because ")?..];
        let reason = one_line(reason.trim_end_matches(['”', '.']));
        Some(format!(", {reason}"))
    };
    let why = quoted("user's words: “").or_else(|| quoted("agent's words: “"));
    let why = why.or_else(because).unwrap_or_default();
    labelled(label, format!("{}{why}", one_line(&observation.title)))
}
