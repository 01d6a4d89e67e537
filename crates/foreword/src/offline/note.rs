//! Writes a conversation as a note, from the same observations and digest as the memory.

use foreword_core::model::{Observation, ObservationType, Turn};
use foreword_core::notes::{Note, Point};
use foreword_core::text::{self, flat};

use super::{lexicon, title};

const POINTS_MAX: usize = 24;
const FILES_MAX: usize = 30;
/// The most sentences of an observation beside its title.
const DETAILS_MAX: usize = 3;

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
    let context = format!("Asked: “{}”", title::clip(&flat(&typed), 50));
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
        text: flat(&text),
    }
}

/// The title, and the sentences that say more than it does.
fn point(observation: &Observation) -> Point {
    let label = match observation.kind {
        ObservationType::Decision => "Decision",
        ObservationType::Discovery | ObservationType::Bugfix => "Discovery",
        ObservationType::Feature | ObservationType::Refactor => "Status",
    };
    let title = &observation.title;
    let known = lexicon::stems(title);
    let sentences = std::iter::once(&observation.subtitle).chain(&observation.facts);
    let details: Vec<&str> = sentences
        .filter(|it| {
            // A decision's fact quotes the sentence that its title is made of.
            let said = it.trim_start_matches("The user: ");
            !it.is_empty() && lexicon::overlap(&lexicon::stems(said), &known) < 0.7
        })
        .map(|it| it.trim_end_matches(['.', '。']))
        .take(DETAILS_MAX)
        .collect();
    labelled(
        label,
        match details.join("; ") {
            none if none.is_empty() => title.clone(),
            details => format!("{title} ({details})"),
        },
    )
}
