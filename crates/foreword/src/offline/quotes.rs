//! Observations that rest on somebody's words: decisions, findings, and what was
//! tried and given up. The words are quoted, and the origin says whose they are.

use foreword_core::model::{Event, FileRole, Observation, ObservationType, Origin, TouchedFile};
use foreword_core::text::{shorten, title};

use super::steps::{Command, Edit, Step};
use super::teller::{Rejected, Teller, files_once};
use super::{changes, code, decisions, quote, said, speech};

/// Of one turn; a text with more of them is an essay.
const DECISIONS_MAX: usize = 3;
const FINDINGS_MAX: usize = 4;

/// What the user's and the agent's own words decide.
pub fn decisions(teller: &Teller<'_>) -> Vec<Observation> {
    let words = teller.words();
    let by_user = words.request().map(decisions::of_user);
    let by_agent = words.conclusion().map(decisions::of_agent);
    let said = [
        (Origin::User, words.prompt, by_user),
        (Origin::Agent, words.stop, by_agent),
    ];
    let mut decisions = Vec::new();
    for (who, event, sentences) in said {
        for (number, sentence) in sentences.iter().flatten().enumerate() {
            let decision = teller.decision(who, number, sentence);
            decisions.extend(event.map(|event| said_in(event, decision)));
        }
    }
    decisions.truncate(DECISIONS_MAX);
    decisions
}

/// What the agent found by reading, in its own words.
pub fn findings(teller: &Teller<'_>) -> Vec<Observation> {
    let concluded = teller.concluded().into_iter().take(FINDINGS_MAX);
    let told = concluded.enumerate().filter_map(|(number, finding)| {
        let stop = teller.words().stop?;
        Some(said_in(stop, teller.finding(number, &finding)))
    });
    told.collect()
}

/// The same observation, resting on what was said.
fn said_in(event: &Event, observation: Observation) -> Observation {
    Observation {
        events: vec![event.id],
        at: event.at,
        ..observation
    }
}

impl Teller<'_> {
    pub fn rejection(&self, rejected: &Rejected<'_>) -> Observation {
        let attempt = rejected.attempt;
        let edits = self.edits(&attempt.edits);
        let names = changes::names(&edits);
        let tried = changes::facts(&edits).into_iter();
        let tried = tried.map(|it| format!("Tried and undone in {it}"));
        let mut facts: Vec<String> = tried.collect();
        facts.extend(self.failed_with(attempt.edits[0], attempt.undone_by));
        let undo = self.command(attempt.undone_by);
        let described = undo.map_or("", |it| it.description.as_str());
        let (mut narrative, whose) = match rejected.origin {
            Origin::User => (Vec::new(), "user's"),
            _ => (self.asked(160), "agent's"),
        };
        narrative.push(match &rejected.reason {
            Some(reason) => {
                let words = quote(&reason.quote, 320);
                format!("The reason in the {whose} words: {words}")
            }
            None if described.is_empty() => "No reason was given.".to_owned(),
            None => format!("The agent's note on undoing it: “{described}”."),
        });
        let seed = format!("attempt:{}", self.steps()[attempt.undone_from].event);
        self.resting_on(
            [&attempt.edits[..], &[attempt.undone_by]].concat(),
            Observation {
                title: format!("Rejected: {} ({names})", self.tried(rejected)),
                subtitle: match undo {
                    Some(command) => format!("Undone with {}", code(&command.text, 80)),
                    None => format!("Edited back in {names}"),
                },
                facts,
                narrative: narrative.join(" "),
                files: files_as_read(&edits),
                ..Observation::blank(seed, ObservationType::Decision, rejected.origin)
            },
        )
    }

    /// The last thing that failed while an attempt lasted.
    fn failed_with(&self, from: usize, to: usize) -> Option<String> {
        let failed = |step: &Step| {
            let command = step.command().filter(|it| !it.passed && it.matters())?;
            Some((command.name(), command.key_line()?))
        };
        let (name, line) = self.steps()[from..to].iter().rev().find_map(failed)?;
        let same = |it: &Command| !it.passed && it.key_line().as_ref() == Some(&line);
        let mut before = self.steps()[..from].iter().filter_map(Step::command);
        let still = if before.any(same) { "still " } else { "" };
        Some(format!("With it `{name}` {still}failed: {line}"))
    }

    fn decision(&self, who: Origin, number: usize, sentence: &str) -> Observation {
        let request = title(self.words().request().unwrap_or_default());
        let opening: String = sentence.chars().take(20).collect();
        let (seed, whose) = match who {
            Origin::User => ("user", "The user"),
            _ => ("agent", "The agent"),
        };
        let seed = format!("decided:{seed}:{}:{number}", self.prompt_seed());
        Observation {
            title: shorten(&decisions::as_title(sentence), 110).into_owned(),
            subtitle: if request.contains(&opening) {
                format!("{whose}'s own words")
            } else {
                format!("{whose} said so, about {}", quote(&request, 80))
            },
            facts: vec![format!("{whose}: {}", quote(sentence, 300))],
            narrative: self.asked(160).join(" "),
            ..Observation::blank(seed, ObservationType::Decision, who)
        }
    }

    fn finding(&self, number: usize, finding: &str) -> Observation {
        let read = self.files_read();
        let mut from: Vec<String> = read.iter().map(|file| file.path.clone()).collect();
        if from.is_empty() {
            let commands = self.here().filter_map(Step::command);
            from.extend(commands.map(|it| format!("`{}`", it.name())));
        }
        let named = self.files_named(finding);
        let sentences = speech::sentences(finding).into_iter();
        let mut narrative = self.asked(160);
        narrative.push("The agent's words; no run was made to check them.".to_owned());
        let seed = format!("finding:{}:{number}", self.prompt_seed());
        let from = from.join(", ");
        Observation {
            title: shorten(&said::first_words(finding), 110).into_owned(),
            subtitle: format!("The agent's conclusion from {}", shorten(&from, 120)),
            facts: sentences.map(|it| quote(it, 320)).collect(),
            narrative: narrative.join(" "),
            files: if named.is_empty() { read } else { named },
            ..Observation::blank(seed, ObservationType::Discovery, Origin::Read)
        }
    }

    /// Files that were read in this session and that a text names.
    fn files_named(&self, text: &str) -> Vec<TouchedFile> {
        let read = self.steps().iter().rev().filter_map(Step::read);
        let named = read.filter(|it| text.contains(&it.file.path));
        let mut files = files_once(named.map(|it| it.file.clone()));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }
}

/// Files of an attempt: it changed nothing that is there now.
fn files_as_read(edits: &[&Edit]) -> Vec<TouchedFile> {
    let paths = changes::paths(edits).into_iter();
    paths
        .map(|path| TouchedFile {
            path: path.to_owned(),
            role: FileRole::Read,
            size: None,
            mtime: None,
            hash: None,
        })
        .collect()
}
