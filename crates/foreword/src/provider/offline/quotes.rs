//! Observations that rest on somebody's words: decisions, findings, and what was
//! tried and given up. The words are quoted, and the origin says whose they are.

use foreword_core::model::{Event, FileRole, Observation, ObservationType, Origin, TouchedFile};
use foreword_core::text::shorten;

use super::steps::{Command, Edit};
use super::teller::{Rejected, Teller, Wording};
use super::{changes, decisions, output, said, speech};

/// Of one turn; a text with more of them is an essay.
const DECISIONS_MAX: usize = 3;
const FINDINGS_MAX: usize = 4;

/// What the user's and the agent's own words decide.
pub fn decisions(teller: &Teller<'_>) -> Vec<Observation> {
    let words = teller.words();
    let by_user = words.request().map(decisions::of_user);
    let by_agent = words.reply().map(decisions::of_agent);
    let tell = |who: Origin, event: Option<&Event>, said: Option<Vec<String>>| {
        let sentences = said.unwrap_or_default().into_iter().enumerate();
        let wordings = sentences.map(|(at, it)| teller.decision(who, at, &it));
        let wordings: Vec<Wording> = wordings.collect();
        event
            .map(|event| {
                let observations = wordings
                    .into_iter()
                    .map(|it| it.observation(vec![event.id], event.at, None));
                observations.collect::<Vec<_>>()
            })
            .unwrap_or_default()
    };
    let mut decisions = tell(Origin::User, words.prompt, by_user);
    if !words.failed() {
        decisions.extend(tell(Origin::Agent, words.stop, by_agent));
    }
    decisions.truncate(DECISIONS_MAX);
    decisions
}

/// What the agent found by reading, in its own words.
pub fn findings(teller: &Teller<'_>) -> Vec<Observation> {
    let Some(stop) = teller.words().stop else {
        return Vec::new();
    };
    let concluded = teller
        .concluded()
        .into_iter()
        .take(FINDINGS_MAX)
        .enumerate();
    concluded
        .map(|(at, it)| {
            teller
                .finding(at, &it)
                .observation(vec![stop.id], stop.at, None)
        })
        .collect()
}

impl Teller<'_> {
    pub fn rejection(&self, rejected: &Rejected<'_>) -> Observation {
        let attempt = rejected.attempt;
        let edits = self.edits(&attempt.edits);
        let names = changes::names(&edits);
        let said = rejected.reason.as_ref();
        let mut facts: Vec<String> = changes::facts(&edits)
            .into_iter()
            .map(|it| format!("Tried and undone in {it}"))
            .collect();
        let between = attempt.edits[0]..attempt.undone_by;
        let failed = between.rev().find_map(|at| {
            let command = self.command(at).filter(|it| !it.passed && it.matters())?;
            Some((command, output::key_line(&command.output)?))
        });
        if let Some((command, line)) = failed {
            let before = (0..attempt.edits[0]).filter_map(|at| self.command(at));
            let same = |it: &Command| output::key_line(&it.output).as_ref() == Some(&line);
            let still = before.filter(|it| !it.passed).any(same);
            let still = if still { "still " } else { "" };
            facts.push(format!(
                "With it `{}` {still}failed: {line}",
                command.name()
            ));
        }
        let undo = self.command(attempt.undone_by);
        let how = match undo {
            Some(command) => format!("Undone with `{}`", shorten(&command.text, 80)),
            None => format!("Edited back in {names}"),
        };
        let mut narrative = match rejected.origin {
            Origin::User => Vec::new(),
            _ => self.asked(160),
        };
        let described = undo
            .map(|it| it.description.as_str())
            .filter(|it| !it.is_empty());
        narrative.push(match (said, described) {
            (Some(reason), _) => {
                let whose = match rejected.origin {
                    Origin::User => "user's",
                    _ => "agent's",
                };
                format!(
                    "The reason in the {whose} words: “{}”",
                    shorten(&reason.quote, 320)
                )
            }
            (None, Some(described)) => format!("The agent's note on undoing it: “{described}”."),
            (None, None) => "No reason was given.".to_owned(),
        });
        let mut involved = attempt.edits.clone();
        involved.push(attempt.undone_by);
        self.resting_on(
            Wording {
                seed: format!("attempt:{}", self.steps()[attempt.undone_from].event),
                kind: ObservationType::Decision,
                origin: rejected.origin,
                title: format!("Rejected: {} ({names})", self.tried(rejected)),
                subtitle: how,
                facts,
                narrative,
                files: files_as_read(&edits),
            },
            involved,
        )
    }

    fn decision(&self, who: Origin, number: usize, sentence: &str) -> Wording {
        let request = self.words().request().map(foreword_core::text::title);
        let request = request.unwrap_or_default();
        let opening: String = sentence.chars().take(20).collect();
        let (seed, whose) = match who {
            Origin::User => ("user", "The user"),
            _ => ("agent", "The agent"),
        };
        Wording {
            seed: format!("decided:{seed}:{}:{number}", self.prompt_seed()),
            kind: ObservationType::Decision,
            origin: who,
            title: shorten(&decisions::as_title(sentence), 110).into_owned(),
            subtitle: if request.contains(&opening) {
                format!("{whose}'s own words")
            } else {
                format!("{whose} said so, about “{}”", shorten(&request, 80))
            },
            facts: vec![format!("{whose}: “{}”", shorten(sentence, 300))],
            narrative: self.asked(160),
            files: Vec::new(),
        }
    }

    fn finding(&self, number: usize, finding: &str) -> Wording {
        let sentences = speech::sentences(finding);
        let read = self.files_read();
        let paths: Vec<&str> = read.iter().map(|file| file.path.as_str()).collect();
        let from = match paths.as_slice() {
            [] => self.commands_here().join(", "),
            paths => paths.join(", "),
        };
        let named = self.files_named(finding);
        let files = if named.is_empty() { read } else { named };
        let mut narrative = self.asked(160);
        narrative.push("The agent's words; no run was made to check them.".to_owned());
        Wording {
            seed: format!("finding:{}:{number}", self.prompt_seed()),
            kind: ObservationType::Discovery,
            origin: Origin::Read,
            title: shorten(&said::first_words(finding), 110).into_owned(),
            subtitle: format!("The agent's conclusion from {}", shorten(&from, 120)),
            facts: sentences
                .iter()
                .map(|it| format!("“{}”", shorten(it, 320)))
                .collect(),
            narrative,
            files,
        }
    }

    fn commands_here(&self) -> Vec<String> {
        let here = (0..self.steps().len()).filter(|&at| self.is_here(at));
        let commands = here.filter_map(|at| self.command(at));
        commands.map(|it| format!("`{}`", it.name())).collect()
    }

    /// Files that were read in this session and that a text names.
    fn files_named(&self, text: &str) -> Vec<TouchedFile> {
        let mut files: Vec<TouchedFile> = Vec::new();
        for read in self.steps().iter().rev().filter_map(|step| step.read()) {
            let path = &read.file.path;
            if text.contains(path.as_str()) && !files.iter().any(|it| it.path == *path) {
                files.push(read.file.clone());
            }
        }
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
