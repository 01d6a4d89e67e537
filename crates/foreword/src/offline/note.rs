//! Writes a conversation as a note, from the same observations and digest as the memory.

use foreword_core::model::{Observation, ObservationType, Origin, Turn};
use foreword_core::notes::{Note, Point};
use foreword_core::text::{self, one_line};

use super::title;

const POINTS_MAX: usize = 24;
const FILES_MAX: usize = 30;

/// The only point of a conversation in which nothing happened.
pub const NOTHING: &str = "Nothing was changed, run or decided.";

/// None if nobody asked for anything.
pub fn note(turns: &[Turn]) -> Option<Note> {
    let derived = super::derive(turns);
    let events = turns.iter().flat_map(|it| &it.events);
    let asked = events
        .filter_map(|it| it.payload.prompt.as_deref())
        .next()?;
    let typed = title::typed(asked).replace('\n', " ");
    let mut context = format!("Asked: “{}”", title::clip(&one_line(&typed), 50));
    if !derived.digest.subtitle.is_empty() {
        context.push_str(&format!(" Also: {}.", derived.digest.subtitle));
    }
    let observations = || derived.turns.iter().flat_map(|it| &it.observations);
    let holding = observations().filter(|it| it.retracted.is_none());
    let mut points: Vec<Point> = holding.map(point).collect();
    // Decisions first: they are what is looked for later.
    points.sort_by_key(|it| it.label != "Decision");
    points.dedup();
    points.truncate(POINTS_MAX);
    let given_up = derived.digest.given_up.iter();
    points.extend(given_up.map(|it| labelled("Learned", format!("Given up: {it}"))));
    let open = derived.digest.open.iter();
    points.extend(open.map(|it| labelled("Open", it.clone())));
    if points.is_empty() {
        points.push(labelled("Status", NOTHING.to_owned()));
    }
    let mut related: Vec<String> = Vec::new();
    for file in observations().flat_map(|it| &it.files) {
        if !related.contains(&file.path) && related.len() < FILES_MAX {
            related.push(file.path.clone());
        }
    }
    let named = Some(derived.digest.title).filter(|it| !it.is_empty());
    Some(Note {
        title: named.unwrap_or_else(|| text::title(asked)),
        context,
        points,
        related,
        ..Note::default()
    })
}

fn labelled(label: &str, text: String) -> Point {
    Point {
        label: label.to_owned(),
        text: one_line(&text),
    }
}

/// The title, and the sentence that says most about it.
fn point(observation: &Observation) -> Point {
    let label = match observation.kind {
        ObservationType::Decision => "Decision",
        ObservationType::Discovery | ObservationType::Bugfix => "Discovery",
        ObservationType::Feature | ObservationType::Refactor => "Status",
    };
    let title = &observation.title;
    let detail = Some(&observation.subtitle).filter(|it| !it.is_empty());
    let detail = detail.or(observation.facts.first());
    labelled(
        label,
        match detail {
            Some(detail) if observation.origin == Origin::User => format!("{title} ({detail})"),
            Some(detail) => format!("{title}: {detail}"),
            None => title.clone(),
        },
    )
}
