//! An observation while its session is still being read, and what is stored of it in the end.

use std::collections::{HashMap, HashSet};

use foreword_core::model::{
    EventKind, Millis, Observation, ObservationType, Origin, Summary, TouchedFile,
};
use foreword_core::text;
use uuid::Uuid;

use super::headline::Title;
use super::lexicon;
use super::title;
use super::turn::{LaidDown, TurnReading};
use crate::agent::origin::{self, Copied};

/// The most events that an observation names as its source.
const EVENTS_MAX: usize = 40;
const FILES_MAX: usize = 12;
const CONCEPTS_MAX: usize = 5;

/// A statement, and whose words it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub text: String,
    pub origin: Origin,
}

impl Fact {
    pub fn new(text: String, origin: Origin) -> Fact {
        Fact { text, origin }
    }

    /// A statement of the agent as facts: its own sentences, and those that it copied as a quotation.
    pub fn parted(statement: &str, copied: &Copied) -> Vec<Fact> {
        let (mut own, mut read) = (String::new(), String::new());
        let mut place = "";
        for sentence in origin::sentences(statement) {
            match copied.get(sentence).filter(|it| it.is_whole()) {
                Some(copy) => {
                    read += sentence;
                    place = &copy.place;
                }
                None => own += sentence,
            }
        }
        let mut facts = vec![Fact::new(own.trim().to_owned(), Origin::Agent)];
        facts.retain(|it| !it.text.is_empty());
        if !read.is_empty() {
            facts.push(Fact::new(text::quotation(place, read.trim()), Origin::Read));
        }
        facts
    }

    pub fn is_by_user(&self) -> bool {
        self.origin == Origin::User
    }
}

/// The texts of facts as one.
pub fn joined(facts: &[Fact]) -> String {
    let texts: Vec<&str> = facts.iter().map(|it| it.text.as_str()).collect();
    texts.join(" ")
}

/// An observation while the session is still being folded.
pub struct Draft {
    pub turn: usize,
    pub seed: String,
    pub kind: ObservationType,
    pub title: Title,
    pub facts: Vec<Fact>,
    /// Sentences that were too much for the facts.
    pub rest: Vec<String>,
    /// Hash and subject of each.
    pub commits: Vec<(String, String)>,
    pub files: Vec<TouchedFile>,
    /// How much was edited.
    pub size: usize,
    /// What it added is gone at the end of the session.
    pub overtaken: bool,
    /// A later turn changed what this discovery is about.
    pub outdated: bool,
    pub retracted: Option<String>,
}

/// `nouns`: how often each word occurs in what was said in the session.
pub fn observation(
    draft: Draft,
    reading: &TurnReading<'_>,
    nouns: &HashMap<String, usize>,
) -> Observation {
    let mut facts = draft.facts;
    let title = lexicon::stems(&draft.title.text);
    facts.retain(|it| {
        let stems = lexicon::stems(&it.text);
        stems.difference(&title).count() >= 3 && lexicon::overlap(&stems, &title) < 0.8
    });
    let short = facts
        .iter()
        .take(3)
        .position(|it| lexicon::words(&it.text) <= 24 && it.origin == Origin::Agent);
    let subtitle = match short {
        Some(short) if facts.len() > 3 => facts.remove(short).text,
        _ => String::new(),
    };
    let commits = draft.commits.iter().map(|(hash, subject)| {
        let (_, subject) = title::conventional(subject);
        let is_said = lexicon::overlap(&lexicon::stems(&subject), &title) > 0.6;
        match is_said || subject.is_empty() {
            true => hash.clone(),
            false => format!("{hash} (“{}”)", title::clip(&subject, 14)),
        }
    });
    let commits: Vec<String> = commits.collect();
    if !commits.is_empty() {
        let committed = format!("Committed as {}", commits.join(", "));
        facts.push(Fact::new(committed, Origin::Agent));
    }
    let mut narrative = String::new();
    let typed = reading.typed.replace('\n', " ");
    if lexicon::words(&typed) >= 3 {
        narrative = format!("Asked: “{}” ", title::clip(&typed, 40));
    }
    narrative.push_str(&title::clip(&draft.rest.join(" "), 150));
    let (facts, fact_origins): (Vec<String>, Vec<Origin>) =
        facts.into_iter().map(|it| (it.text, it.origin)).unzip();
    let concepts = concepts(&draft.title.text, &facts, &draft.files, nouns);
    let origin = draft.title.origin();
    let mut files = draft.files;
    files.truncate(FILES_MAX);
    Observation {
        title: draft.title.text,
        subtitle,
        facts,
        fact_origins,
        narrative: narrative.trim().to_owned(),
        concepts,
        files,
        events: sources(reading),
        at: last_at(reading),
        retracted: draft.retracted,
        ..Observation::blank(draft.seed, draft.kind, origin)
    }
}

/// Words that recur in the session and in this observation, and the names of its files.
fn concepts(
    title: &str,
    facts: &[String],
    files: &[TouchedFile],
    nouns: &HashMap<String, usize>,
) -> Vec<String> {
    let text = format!("{title} {}", facts.join(" "));
    let mut counted: Vec<(usize, String)> = Vec::new();
    for word in lexicon::nouns(&text) {
        let count = nouns.get(&word).copied().unwrap_or_default();
        if count >= 3 && !counted.iter().any(|(_, it)| *it == word) {
            counted.push((count, word));
        }
    }
    counted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut concepts: Vec<String> = counted.into_iter().map(|(_, word)| word).take(3).collect();
    for file in files {
        let mut parts = file.path.rsplit('/');
        let name = parts
            .next()
            .unwrap_or_default()
            .split('.')
            .next()
            .unwrap_or_default();
        for part in [name, parts.next().unwrap_or_default()] {
            let part = part.to_lowercase();
            if part.len() >= 3 && !concepts.contains(&part) && concepts.len() < CONCEPTS_MAX {
                concepts.push(part);
            }
        }
    }
    concepts
}
pub fn decision(laid_down: &LaidDown, seed: String) -> Observation {
    Observation {
        title: laid_down.title.clone(),
        facts: laid_down.facts.clone(),
        events: vec![laid_down.event],
        at: laid_down.at,
        ..Observation::blank(seed, ObservationType::Decision, Origin::User)
    }
}

/// What was asked and done, for a turn that gave an observation.
pub fn summary(reading: &TurnReading<'_>, observations: &[Observation]) -> Option<Summary> {
    let first = observations.first()?;
    let titles = |work: bool| {
        let is_work = |it: &Observation| {
            !matches!(
                it.kind,
                ObservationType::Decision | ObservationType::Discovery
            )
        };
        let is_said = |it: &&Observation| it.origin != Origin::Read;
        let of_kind = observations.iter().filter(is_said);
        let of_kind = of_kind.filter(|it| is_work(it) == work);
        let titles: Vec<&str> = of_kind.map(|it| it.title.as_str()).collect();
        titles.join("; ")
    };
    let files = |wanted| {
        let files = first.files.iter().filter(|it| it.role == wanted);
        files.map(|it| it.path.clone()).collect::<Vec<String>>()
    };
    Some(Summary {
        request: title::clip(&reading.typed.replace('\n', " "), 60),
        learned: titles(false),
        completed: titles(true),
        files_read: files(foreword_core::model::FileRole::Read),
        files_edited: files(foreword_core::model::FileRole::Modified),
        ..Summary::default()
    })
}

/// The events that an observation rests on: prompt, reply, and what edits, commits and checks prove.
fn sources(reading: &TurnReading<'_>) -> Vec<Uuid> {
    let steps = reading.steps.iter().rev().filter(|it| {
        !it.edits.is_empty()
            || !it.commits.is_empty()
            || !it.answers.is_empty()
            || it.runs.iter().any(|run| run.check)
    });
    let steps: HashSet<Uuid> = steps.take(EVENTS_MAX).map(|it| it.event).collect();
    let events = reading.turn.events.iter().filter(|it| {
        steps.contains(&it.id)
            || matches!(
                it.kind,
                EventKind::Prompt | EventKind::Stop | EventKind::Refusal | EventKind::Words
            )
    });
    events.map(|it| it.id).collect()
}

fn last_at(reading: &TurnReading<'_>) -> Millis {
    reading.turn.events.last().map_or(0, |it| it.at)
}
