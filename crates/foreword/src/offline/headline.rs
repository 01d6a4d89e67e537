//! Chooses the title of a turn among what its plan, commits, reply and request offer.

use foreword_core::model::Origin;

use super::lexicon::{self, Stems};
use super::markdown;
use super::prose::{self, UnitSource};
use super::title;
use super::turn::{TurnReading, telling_commit, without_number};
use crate::agent::origin::Copy;

/// Taken off the score of a title that only introduces a list.
const LEAD_IN: f32 = 0.6;
/// Added to the score of a title that begins with what was done ("Added …").
const DEED: f32 = 0.8;

/// Where a title was taken from. It decides how good the title is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleSource {
    Plan,
    Commit,
    CommitBody,
    Chosen,
    Heading,
    Said,
    Fact,
    Request,
}

impl TitleSource {
    /// Written by somebody as a headline, so it stands alone.
    pub fn is_headline(self) -> bool {
        !matches!(
            self,
            TitleSource::Said | TitleSource::Fact | TitleSource::Request
        )
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Title {
    pub text: String,
    pub source: TitleSource,
    /// How far it can be understood alone.
    pub alone: f32,
    /// Its words are copied out of what a tool printed.
    pub copied: bool,
}

impl Title {
    /// Whose words it is.
    pub fn origin(&self) -> Origin {
        match self.source {
            TitleSource::Request | TitleSource::Chosen => Origin::User,
            _ if self.copied => Origin::Read,
            _ => Origin::Agent,
        }
    }
}

/// The best title for this turn that is not a title of the session yet.
pub fn choose(reading: &TurnReading<'_>, taken: &[Stems]) -> Option<Title> {
    let mut candidates = candidates(reading);
    let is_taken = |text: &str| {
        let stems = lexicon::stems(text);
        taken.iter().any(|it| lexicon::likeness(&stems, it) > 0.7)
    };
    // Words that were merely read make no title while there are others.
    if candidates.iter().any(|it| !it.copied) {
        candidates.retain(|it| !it.copied);
    }
    if candidates.iter().any(|it| !is_taken(&it.text)) {
        candidates.retain(|it| !is_taken(&it.text));
    }
    let scored = candidates.into_iter().map(|it| {
        let alone = title::alone(&it.text, &reading.edited, &reading.asked);
        let title = Title {
            text: it.text,
            source: it.source,
            alone,
            copied: it.whole,
        };
        (it.prior + alone, title)
    });
    scored
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, title)| title)
}

/// A title that a turn offers.
struct Candidate {
    source: TitleSource,
    text: String,
    /// How good titles of its source are.
    prior: f32,
    /// Some of its words were merely read.
    copied: bool,
    /// All of them.
    whole: bool,
}

fn candidates(reading: &TurnReading<'_>) -> Vec<Candidate> {
    let mut titles = Vec::new();
    // `said` is the sentence that a title is made of.
    let candidate = |source, said: &str, text, prior| Candidate {
        source,
        text,
        prior,
        copied: reading.copied.contains_key(said),
        whole: reading.copied.get(said).is_some_and(Copy::is_whole),
    };
    if let Some(commit) = telling_commit(&reading.commits) {
        let (_, subject) = title::conventional(&commit.subject);
        let subject = without_number(&subject);
        let prior = if reading.is_named_by_commit() {
            3.0
        } else {
            0.6
        };
        titles.push(candidate(
            TitleSource::Commit,
            &commit.subject,
            title::squeeze(subject, 14, false).0,
            prior,
        ));
        let body = prose::read(&commit.body, false);
        let nothing = Stems::default();
        if let Some(unit) = body.units.iter().find(|it| prose::is_fact(it, &nothing)) {
            titles.push(candidate(
                TitleSource::CommitBody,
                &unit.text,
                title::squeeze(&unit.text, 12, true).0,
                1.7,
            ));
        }
    }
    if let Some(option) = &reading.chosen {
        let option = without_option_label(option);
        let title = title::squeeze(option, 12, true).0;
        titles.push(candidate(TitleSource::Chosen, "", title, 1.6));
    }
    if let Some(plan) = &reading.plan {
        let title = title::squeeze(plan, 12, true).0;
        titles.push(candidate(TitleSource::Plan, "", title, 3.6));
    }
    // After an edit, a sentence in the past tense reports the change.
    let reports = |title: &str| {
        let is_report = reading.has_edits() && lexicon::begins_with_deed(title);
        if is_report { DEED } else { 0.0 }
    };
    let is_long = |it: &&String| {
        let words = lexicon::words(it);
        words >= 6 || words >= 4 && !lexicon::anchors(it).is_empty()
    };
    let leads = reading.prose.leads.iter().filter(is_long).take(4);
    for (place, lead) in leads.enumerate() {
        let (title, lost) = title::squeeze(lead, 12, true);
        let introduces = if markdown::is_lead_in(lead) {
            LEAD_IN
        } else {
            0.0
        };
        let prior = 1.6 - 0.35 * place as f32 - lost - introduces + reports(&title);
        titles.push(candidate(TitleSource::Said, lead, title, prior));
    }
    let context: Stems = reading.asked.union(&reading.edited).cloned().collect();
    let units = reading
        .prose
        .units
        .iter()
        .filter(|it| prose::is_fact(it, &context));
    // A row of a table is no sentence.
    let units = units.filter(|it| it.source != UnitSource::Row);
    for (place, unit) in units.take(2).enumerate() {
        let lead = unit.text.split(": ").next().unwrap_or_default();
        let text = match unit.source {
            UnitSource::Joined if lexicon::words(lead) >= 4 => lead.to_owned(),
            _ => markdown::sentences(&unit.bare)
                .into_iter()
                .next()
                .unwrap_or_default(),
        };
        let (title, lost) = title::squeeze(&text, 12, true);
        let of_list = if unit.source == UnitSource::Item {
            1.0
        } else {
            0.0
        };
        let prior = 0.9 - 0.3 * place as f32 - lost - of_list + reports(&title);
        titles.push(candidate(TitleSource::Fact, &unit.text, title, prior));
    }
    let headings = reading.prose.headings.iter();
    let headings =
        headings.filter(|it| lexicon::words(it) >= 3 && !it.ends_with([':', '?', '：', '？']));
    for (place, heading) in headings.take(3).enumerate() {
        let title = title::squeeze(heading, 12, true).0;
        // A heading above everything is about the whole, any other about a part.
        let (source, prior) = match place {
            0 if reading.prose.opens_with_heading => (TitleSource::Heading, 1.4),
            _ => (TitleSource::Said, 0.2 - 0.15 * place as f32),
        };
        let prior = prior + reports(&title);
        titles.push(candidate(source, heading, title, prior));
    }
    if let Some((request, is_whole)) = title::request_title(reading.prompt)
        && !reading.by_host
        && !request.contains("://")
    {
        let prior = if is_whole { 1.2 } else { 0.1 };
        let points = if lexicon::pointing_words(&request, 1) > 0 {
            0.7
        } else {
            0.0
        };
        let edited = if reading.has_edits() { 0.0 } else { 0.3 };
        let prior = prior - points + edited;
        titles.push(candidate(TitleSource::Request, "", request, prior));
    }
    let is_named = reading.is_named_by_commit();
    titles.retain(|it| !it.text.is_empty() && (it.source.is_headline() || !is_named));
    titles
}

/// "Option 2: use Redis" without its label.
fn without_option_label(option: &str) -> &str {
    let mut words = option.splitn(3, ' ');
    let (Some(_), Some(number), Some(rest)) = (words.next(), words.next(), words.next()) else {
        return option;
    };
    let number = number.trim_end_matches([':', '.', ')', '-', '—']);
    let is_number = number.len() == 1
        && number.starts_with(|it: char| it.is_ascii_digit() || ('A'..='D').contains(&it));
    if is_number {
        rest.trim_start_matches([':', '-', '—', '–', ' '])
    } else {
        option
    }
}
