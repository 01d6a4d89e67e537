//! What all notes say together: statements by section and theme, each with its notes.
//!
//! Without a model words are compared (`kin::words`). What is said again becomes one statement
//! with all its notes; a decision that a later one replaces becomes a step of evolution; a status
//! gives way to the next one on its subject and a question to its answer. Points of one note
//! leave each other alone, and when in doubt both stand. `said` reads a note's points, `fit` keeps it
//! small and `themes` groups what is left, `reply` reads what a model made of the same notes.

mod fit;
pub mod reply;
mod said;
mod themes;

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use super::master::{DECISIONS, EVOLUTION, LEARNINGS, QUESTIONS, SECTIONS, STATUS};
use super::note::Note;
use crate::model::ObservationType;
use crate::store::kin::judge::{Insight, Kinship, kinship};
use crate::store::kin::words::{Words, common, content, covers, is_number};
use crate::text;
pub use fit::fit;
use said::{Said, choice, said};

/// A note that is taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub session: String,
    /// When it was written, as a time or a day: `2026-11-16T09:30:00Z`.
    pub at: String,
    pub note: Note,
    /// The paths that it names as related.
    pub related: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    /// The notes that it rests on, the oldest first.
    pub sessions: Vec<String>,
    pub theme: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    /// What is true without any note.
    pub lead: Option<String>,
    pub statements: Vec<Statement>,
}

impl Section {
    fn called(name: &str) -> Section {
        Section {
            name: name.to_owned(),
            ..Section::default()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Status,
    Decision,
    Learning,
    Change,
    Question,
}

/// Of the statements that have a word, so many are compared.
const COMPARED: usize = 16;
/// A statement is looked up by so many of its rarest words.
const RAREST: usize = 4;
/// A word of more statements than this is too common for it.
const COMMON: usize = 200;

/// Makes the sections of these names. The notes' order does not matter.
#[must_use]
pub fn synthesise(notes: &[Taken], names: &[String]) -> Vec<Section> {
    let mut notes: Vec<&Taken> = notes.iter().collect();
    notes.sort_by_key(|it| (&it.at, &it.session));
    let mut all: Vec<Said> = Vec::new();
    for (number, taken) in notes.iter().enumerate() {
        all.extend(said(number, taken));
    }
    // A point that an update added is as new as the update.
    all.sort_by(|a, b| (&a.at, a.notes.first()).cmp(&(&b.at, b.notes.first())));
    let evolution = settle(&mut all);
    let mut sections: Vec<_> = names.iter().map(|it| Section::called(it)).collect();
    let mut put = |kind, label: &str, text, numbers: &BTreeSet<usize>| {
        let sessions = numbers.iter().map(|it| notes[*it].session.clone());
        let sessions = sessions.collect();
        let statements = &mut sections[place(kind, label, names)].statements;
        statements.push(Statement {
            text,
            sessions,
            theme: None,
        });
    };
    // The newest first, and before it what more notes say.
    let mut standing: Vec<&Said> = all.iter().filter(|it| it.stands).collect();
    standing.sort_by_key(|it| std::cmp::Reverse((&it.at, it.notes.last(), it.notes.len())));
    for said in standing {
        put(said.kind, &said.label, said.text.clone(), &said.notes);
    }
    for (_, text, numbers) in evolution.into_iter().rev() {
        put(Kind::Change, "", text, &numbers);
    }
    sections
}

/// Goes through everything in the order of time; gives the lines of evolution, each with when it
/// came and its notes.
fn settle(all: &mut [Said]) -> BTreeSet<(usize, String, BTreeSet<usize>)> {
    let mut often: HashMap<String, usize> = HashMap::new();
    for word in all.iter().flat_map(|it| &it.words) {
        *often.entry(word.clone()).or_default() += 1;
    }
    let mut having: HashMap<String, Vec<usize>> = HashMap::new();
    let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut answered: Vec<(usize, usize)> = Vec::new();
    for at in 0..all.len() {
        let shared = all[at].words.iter().filter(|it| often[*it] > 1);
        let mut rarest: Vec<&String> = shared.collect();
        rarest.sort_by_key(|it| (often[*it], *it));
        // What everybody says leads nowhere; but some words there must be.
        let rare = rarest.iter().filter(|it| often[**it] <= COMMON).count();
        rarest.truncate(rare.clamp(2, RAREST));
        let kin = rarest.iter().filter_map(|it| having.get(*it));
        let kin = kin.flat_map(|it| it.iter().rev().take(COMPARED)).copied();
        for other in kin.collect::<BTreeSet<_>>().into_iter().rev() {
            if !all[other].stands {
                continue;
            }
            match relation(&all[other], &all[at]) {
                Relation::Same => {
                    // What was told first keeps the place, and the longer words say more.
                    let newer = all[at].clone();
                    all[at].stands = false;
                    let told = &mut all[other];
                    told.at = newer.at;
                    told.notes.extend(newer.notes);
                    if newer.text.chars().count() > told.text.chars().count() {
                        told.text = newer.text;
                    }
                    break;
                }
                Relation::Replaces => {
                    all[other].stands = false;
                    if all[other].kind != Kind::Status {
                        let chain = before.remove(&other).unwrap_or_default();
                        let chain = chain.into_iter().chain([other]);
                        before.entry(at).or_default().extend(chain);
                        all[at].kind = all[other].kind;
                    }
                }
                Relation::Answers => {
                    all[other].stands = false;
                    answered.push((other, at));
                }
                Relation::None => {}
            }
        }
        // Also under the words that are common here: another's rarest may be among them.
        let words = all[at].words.iter().filter(|_| all[at].stands);
        for word in words {
            having.entry(word.clone()).or_default().push(at);
        }
    }
    let notes = |steps: &[&Said]| steps.iter().flat_map(|it| &it.notes).copied().collect();
    let changes = before.into_iter().map(|(last, mut chain)| {
        chain.push(last);
        chain.sort_unstable();
        let steps: Vec<&Said> = chain.iter().map(|it| &all[*it]).collect();
        (last, evolution(&steps), notes(&steps))
    });
    let answers = answered.iter().map(|(question, answer)| {
        let (question, answer) = (&all[*question], &all[*answer]);
        let line = format!("{} → {}", question.text, text::shorten(&answer.claim, 120));
        let when = answer.notes.first().copied().unwrap_or_default();
        (when, line, notes(&[question, answer]))
    });
    changes.chain(answers).collect()
}

enum Relation {
    Same,
    Replaces,
    Answers,
    None,
}

/// What a newer one is to an older.
fn relation(older: &Said, newer: &Said) -> Relation {
    if older.kind == newer.kind && older.text == newer.text {
        return Relation::Same;
    }
    if !older.notes.is_disjoint(&newer.notes) || older.is_of_another(newer) {
        return Relation::None;
    }
    let shared = common(&older.words, &newer.words);
    let is_same = || is_same(older, newer, shared);
    match (older.kind, newer.kind) {
        (Kind::Question, kind) if kind != Kind::Question && answers(older, newer) => {
            Relation::Answers
        }
        (Kind::Decision, Kind::Decision | Kind::Change) if replaces(older, newer, shared) => {
            Relation::Replaces
        }
        (Kind::Learning, Kind::Learning) if denies(older, newer) => Relation::Replaces,
        (Kind::Status, Kind::Status) if !is_overtaken(older, newer, shared) => Relation::None,
        (Kind::Status, Kind::Status)
            if (&older.label, &older.states) != (&newer.label, &newer.states) || !is_same() =>
        {
            Relation::Replaces
        }
        (a, b) if a == b && is_same() => Relation::Same,
        _ => Relation::None,
    }
}

fn answers(question: &Said, newer: &Said) -> bool {
    common(&newer.known, &question.words) > 1
        && covers(&newer.known, &(&question.words - &*ASKS), 60)
}

/// The same in other words; a number or a "not" makes it another thing.
fn is_same(older: &Said, newer: &Said, shared: usize) -> bool {
    let all = older.words.len() + newer.words.len() - shared;
    let fewer = older.words.len().min(newer.words.len());
    // One says what the other does, and perhaps more; or hardly a word of many is another.
    let alike = shared == fewer && shared > 2 && shared * 10 >= all * 4
        || shared * 5 >= all * 4 && shared > 5
        || shared == 2 && all == 2;
    let missing = |a: &Said, b: &Said| {
        let mut numbers = a.words.iter().filter(|it| is_number(it));
        numbers.any(|it| !b.known.contains(it))
    };
    alike && older.agrees(newer) && !missing(older, newer) && !missing(newer, older)
}

/// The same words, and a "not".
fn denies(older: &Said, newer: &Said) -> bool {
    older.is_negative != newer.is_negative && older.words == newer.words && !newer.words.is_empty()
}

/// The same matter is further, or elsewhere.
fn is_overtaken(older: &Said, newer: &Said, shared: usize) -> bool {
    let fewer = older.words.len().min(newer.words.len());
    // `Write the docs`: `The docs are written`, `Wrote the docs`.
    if older.is_telling && !newer.is_telling {
        let object = &older.words - &content(&older.begins);
        let verb = older.begins.get(..2).unwrap_or(&older.begins);
        let told = newer.begins.starts_with(verb) && object.is_subset(&newer.words);
        return newer.is_done && !object.is_empty() && (told || newer.subject == object);
    }
    let both = !older.states.is_empty() && !newer.states.is_empty();
    older.subject == newer.subject
        && !newer.subject.is_empty()
        && (both || shared > 1 && shared * 2 >= fewer)
}

/// The same matter is decided otherwise.
fn replaces(older: &Said, newer: &Said, shared: usize) -> bool {
    // Another number, which is not the subject's.
    let has_number = |it: &Said| it.plain.len() < it.words.len();
    let both = has_number(older) && has_number(newer);
    let other_number =
        both && older.plain == newer.plain && !newer.plain.is_empty() && older.words != newer.words;
    // Back to what was given up: `Use Redis instead of Postgres`, `Use Postgres`.
    let is_back = !newer.chosen.is_disjoint(&older.given_up)
        && newer.words.is_subset(&older.words)
        && newer.against.is_empty();
    // All that it was: `Use npm`, `Use pnpm instead of npm`.
    let is_whole = older.words.is_subset(&newer.given_up)
        && !newer.claim.contains(" for ")
        && !older.words.is_empty();
    if denies(older, newer) || other_number || is_back || is_whole {
        return true;
    }
    let lower = format!(" {} ", newer.text.to_lowercase());
    let is_change = CHANGES.iter().any(|it| lower.contains(it));
    let same_file = older.related.iter().any(|it| newer.related.contains(it));
    if shared < 2 && !same_file {
        let both = said::by_name(&older.claim).zip(said::by_name(&newer.claim));
        return (is_change || lower.contains(" now "))
            && both.is_some_and(|((was, by), (is, with))| {
                was == is && !was.is_empty() && by.is_disjoint(&with)
            });
    }
    // Both are about the same project, which is as near as a common file.
    let files = [String::new()];
    let [a, b] = [older, newer].map(|it| Insight {
        kind: ObservationType::Decision,
        title: &it.claim,
        subtitle: "",
        facts: &[],
        narrative: &it.text,
        concepts: &[],
        files: &files,
    });
    // Which costs most.
    let may_be = !newer.against.is_disjoint(&older.words)
        || older.begins == newer.begins
        || both && older.plain.is_subset(&newer.known);
    if may_be && kinship(&a, &b) == Kinship::Supersedes {
        return true;
    }
    // A change that is said outright, of something that both are about.
    if !is_change {
        return false;
    }
    // What the newer one is for is no subject, and what it names as given up must be the older's.
    let chosen = content(&choice(&newer.claim, &newer.words));
    let subject = &(&(&older.words & &newer.words) - &*ASKS) - &chosen;
    let is_given_up = newer.given_up.is_empty() || !newer.given_up.is_disjoint(&older.words);
    is_given_up
        && (subject.len() > 1 && shared > 1 || subject.len() == 1 && same_file)
        && !is_same(older, newer, shared)
}

/// `Sessions: cookies → tried JWT → settled on opaque tokens`
fn evolution(steps: &[&Said]) -> String {
    let claims: Vec<&str> = steps.iter().map(|it| it.claim.as_str()).collect();
    let first = &steps[0].words;
    let mut shared = steps.iter().fold(first.clone(), |all, it| &all & &it.words);
    // What one of them is against is no subject of all.
    steps.iter().for_each(|it| shared = &shared - &it.against);
    let last = claims[claims.len() - 1];
    let mut subject = said::surface(last, &shared);
    let mut choices: Vec<_> = claims.iter().map(|it| choice(it, &shared)).collect();
    // `The novel is told in the first person`, `… third person`: they begin alike.
    let start = said::start(&claims);
    let is_whole = |at: usize| choices[at] == claims[at];
    if start > 0 && (0..claims.len()).any(is_whole) {
        subject = said::trimmed(&last[..start]);
        let rest = claims.iter().map(|it| choice(&it[start..], &shared));
        choices = rest.collect();
    } else if (0..claims.len()).all(is_whole) {
        subject.clear();
    }
    choices.dedup();
    if choices.len() < 2 {
        subject.clear();
        let whole = claims.iter().map(|it| text::shorten(it, 80).into_owned());
        choices = whole.collect();
    }
    let end = choices.len() - 1;
    for (at, choice) in choices.iter_mut().enumerate().skip(1).filter(|_| end > 1) {
        let verb = if at == end { "settled on" } else { "tried" };
        *choice = format!("{verb} {choice}");
    }
    let steps = choices.join(" → ");
    // `npm` and `iOS` are written so.
    let first = subject.split(' ').next().unwrap_or_default();
    if first.len() > 3 && first.chars().all(char::is_lowercase) {
        subject = text::capitalised(&subject);
    }
    match subject.is_empty() {
        true => steps,
        false => format!("{subject}: {steps}"),
    }
}

/// The section for a kind of statement: one that is called after its label, else what its kind
/// is usually called, else the first.
fn place(kind: Kind, label: &str, names: &[String]) -> usize {
    let usual = match kind {
        Kind::Status => STATUS,
        Kind::Decision => DECISIONS,
        Kind::Learning => LEARNINGS,
        Kind::Change => EVOLUTION,
        Kind::Question => QUESTIONS,
    };
    let is_usual = names.iter().all(|it| SECTIONS.contains(&it.as_str()));
    if let Some(at) = names.iter().position(|it| it == usual && is_usual) {
        return at;
    }
    let find = |words: &str| {
        let words = content(words);
        names.iter().position(|it| common(&content(it), &words) > 0)
    };
    let synonyms = said::LABELS.iter().find(|it| it.0 == kind);
    let synonyms = synonyms.map_or("", |it| it.1);
    let found = [label, usual, synonyms].into_iter().find_map(find);
    found.unwrap_or(0)
}

/// Words of questions and plans that are no subject.
static ASKS: LazyLock<Words> = LazyLock::new(|| {
    content("should need use using used which whether want still keep how decide decided do does")
});
#[rustfmt::skip] // A list is read line by line.
const CHANGES: &[&str] = &[
    " switched to ", " switch to ", " moved to ", " move to ", " back to ", " settled on ", " instead", " replaced ",
    " replaces ", " no longer ", " rather than ", " migrated to ", " changed to ", " dropped ", " gave up ", " reverted ",
];

#[cfg(test)]
mod tests;
