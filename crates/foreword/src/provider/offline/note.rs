//! Words a conversation as a note: what its turns prove and what was said in them.

use foreword_core::model::{Derived, Observation, ObservationType, Turn};
use foreword_core::notes::{Note, Point};
use foreword_core::text::{one_line, shorten, title};

use super::{Words, speech};

const POINTS_MAX: usize = 24;
const FILES_MAX: usize = 30;
const QUESTIONS_MAX: usize = 3;

/// None if nobody asked for anything.
pub fn note(turns: &[Turn]) -> Option<Note> {
    let derived = super::derive(turns);
    let words: Vec<Words<'_>> = turns.iter().map(Words::of).collect();
    let asked = words.iter().find_map(|it| it.request())?;
    let last = words.iter().rev().find_map(|it| it.reply());
    let ended = last.map(speech::first_paragraph).unwrap_or_default();
    let mut context = format!("Asked: “{}”", shorten(&one_line(asked), 300));
    if !ended.is_empty() {
        context.push_str(&format!(" In the end: “{}”", shorten(&ended, 300)));
    }
    let mut files: Vec<String> = Vec::new();
    let summaries = derived.iter().filter_map(|it| it.summary.as_ref());
    for file in summaries.flat_map(|it| &it.files_edited) {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
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
    let rank = |it: &Point| {
        ["Decision", "Discovery"]
            .iter()
            .position(|rank| *rank == it.label)
    };
    points.sort_by_key(|it| rank(it).unwrap_or(usize::MAX));
    points.dedup();
    points.truncate(POINTS_MAX);
    let mut add = |label: &str, text: &str| {
        let text = shorten(&one_line(text), 300).into_owned();
        if !text.is_empty() {
            let label = label.to_owned();
            points.push(Point { label, text });
        }
    };
    let summary = derived.iter().rev().find_map(|it| it.summary.as_ref());
    if let Some(summary) = summary {
        add("Next", &summary.next_steps);
    }
    let paragraphs = speech::paragraphs(last);
    let sentences = paragraphs.iter().flat_map(|it| speech::sentences(it));
    let questions = sentences.filter(|it| it.ends_with('?'));
    questions
        .take(QUESTIONS_MAX)
        .for_each(|it| add("Question", it));
    if points.is_empty() {
        let nothing = Point {
            label: "Status".to_owned(),
            text: "Nothing was changed, run or decided.".to_owned(),
        };
        points.push(nothing);
    }
    points
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
        Some(format!(" (“{}”)", shorten(&said, 240)))
    };
    // A decision's first fact is the sentence itself; its title has no reason.
    let because = || {
        let sentence = observation.facts.first()?;
        let reason = &sentence[sentence.find("because ")?..];
        Some(format!(
            ", {}",
            one_line(reason.trim_end_matches(['”', '.']))
        ))
    };
    let why = ["user's words: “", "agent's words: “"]
        .into_iter()
        .find_map(quoted);
    let why = why.or_else(because).unwrap_or_default();
    Point {
        label: label.to_owned(),
        text: format!("{}{why}", one_line(&observation.title)),
    }
}
