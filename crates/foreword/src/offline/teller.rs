//! One turn of a story, ready to be told: what belongs to it, and the parts that
//! observations and the summary are built from.

use std::ops::Range;

use foreword_core::model::{FileRole, Observation, Origin, TouchedFile};
use foreword_core::text::{one_line, shorten};

use super::findings::Trouble;
use super::git::Undo;
use super::steps::{Command, Edit, Step, What};
use super::undone::{Attempt, Commit};
use super::{Story, Words, changes, code, once, output, quote, request, said, speech};

/// How lines of a manifest begin that ask for a version.
const VERSION_KEYS: &str = "requires-python|python_requires|rust-version|\"node\":";

#[derive(Clone, Copy)]
pub struct Teller<'a> {
    pub story: &'a Story<'a>,
    pub turn: usize,
}

/// An attempt, and what is said about giving it up.
pub struct Rejected<'a> {
    pub attempt: &'a Attempt,
    pub reason: Option<said::Reason>,
    /// Whose words the reason is.
    pub origin: Origin,
}

impl<'a> Teller<'a> {
    pub fn steps(&self) -> &'a [Step] {
        &self.story.steps
    }

    pub fn words(&self) -> Words<'a> {
        self.story.turns[self.turn]
    }

    pub fn is_here(&self, at: usize) -> bool {
        self.steps()[at].turn == self.turn
    }

    /// The turn's own steps.
    pub fn here(&self) -> impl Iterator<Item = &'a Step> {
        self.here_in(0..self.steps().len())
    }

    pub fn here_in(&self, range: Range<usize>) -> impl Iterator<Item = &'a Step> {
        let steps = self.steps()[range].iter();
        steps.filter(|step| step.turn == self.turn)
    }

    pub fn command(&self, at: usize) -> Option<&'a Command> {
        self.steps()[at].command()
    }

    pub fn edits(&self, at: &[usize]) -> Vec<&'a Edit> {
        let edits = at.iter().filter_map(|&at| self.steps()[at].edit());
        edits.collect()
    }

    /// The turn's own lasting edits.
    pub fn lasting(&self) -> Vec<usize> {
        let lasting = self.story.findings.edits.lasting.iter().copied();
        lasting.filter(|&at| self.is_here(at)).collect()
    }

    pub fn commits(&self) -> Vec<&'a Commit> {
        let commits = self.story.findings.edits.commits.iter();
        commits.filter(|it| self.is_here(it.step)).collect()
    }

    /// Troubles that end in this turn, as far as is known.
    pub fn troubles(&self) -> Vec<&'a Trouble> {
        let all = self.story.findings.troubles.iter();
        all.filter(|trouble| self.is_here(trouble.last()) && !self.is_of_an_attempt(trouble))
            .collect()
    }

    /// Whether a command was only seen to fail with something that was given up.
    fn is_of_an_attempt(&self, trouble: &Trouble) -> bool {
        let mut attempts = self.story.findings.edits.attempts.iter();
        attempts.any(|attempt| {
            let during = attempt.edits[0]..attempt.undone_by;
            let turn = self.steps()[attempt.undone_by].turn;
            let told = || Teller { turn, ..*self }.rejected();
            trouble.passed.is_none()
                && trouble.runs.iter().all(|at| during.contains(at))
                && told().iter().any(|it| it.attempt == attempt)
        })
    }

    /// Whether the work itself made a command fail: a test that was written first,
    /// a change half done. Mending that is part of the work, not a bugfix.
    pub fn is_on_the_way(&self, trouble: &Trouble) -> bool {
        let first = trouble.runs[0];
        let turn = self.steps()[first].turn;
        let mut before = self.steps()[..first].iter();
        let edited = before.any(|step| step.turn == turn && step.edit().is_some());
        let request = self.story.turns[turn].request().unwrap_or_default();
        edited && !request::speaks_of_a_fault(request) && trouble.passed.is_some()
    }

    /// Attempts that were given up in this turn and are worth a word: somebody said
    /// why, or git was used to throw them away. Others are slips and scaffolding.
    pub fn rejected(&self) -> Vec<Rejected<'a>> {
        let attempts = self.story.findings.edits.attempts.iter();
        attempts
            .filter(|attempt| self.is_here(attempt.undone_by))
            .filter_map(|attempt| {
                let names = changes::words(&self.edits(&attempt.edits));
                let by_agent = || said::given_up(self.words().reply()?, Some(&names));
                // Who asks for an undoing means what was done for an earlier prompt.
                let earlier = attempt.edits.iter().all(|&at| !self.is_here(at));
                let names = (!earlier).then_some(names.as_slice());
                let by_user = || said::given_up(self.words().request()?, names);
                let undo = self.command(attempt.undone_by);
                let undo = undo.and_then(|command| command.undo.as_ref());
                let thrown_away = undo.is_some_and(|it| *it != Undo::Stash);
                let reason = by_agent().map(|it| (it, Origin::Agent));
                let reason = reason.or_else(|| Some((by_user()?, Origin::User)));
                let origin = reason.as_ref().map_or(Origin::Agent, |it| it.1);
                (reason.is_some() || thrown_away).then(|| Rejected {
                    attempt,
                    reason: reason.map(|it| it.0),
                    origin,
                })
            })
            .collect()
    }

    /// What was tried: as somebody named it, or else by its names or its line.
    pub fn tried(&self, rejected: &Rejected<'_>) -> String {
        if let Some(thing) = rejected.reason.as_ref().and_then(|it| it.thing.as_deref()) {
            return match thing.strip_prefix("The ") {
                Some(rest) => format!("the {rest}"),
                None => thing.to_owned(),
            };
        }
        let edits = self.edits(&rejected.attempt.edits);
        let names = changes::new_names(&edits);
        if !names.is_empty() {
            return changes::quoted(&names);
        }
        let changes = changes::changes(&edits);
        let added = changes.iter().find_map(|it| it.added.first());
        let removed = changes.iter().find_map(|it| it.removed.first());
        match (added, removed) {
            (Some(line), _) => code(line, 60),
            (None, Some(line)) => format!("removing {}", code(line, 60)),
            (None, None) => "a change".to_owned(),
        }
    }

    /// What the agent concluded in a turn that changed nothing.
    pub fn concluded(&self) -> Vec<String> {
        let idle = self.here().next().is_none();
        let changed = !self.lasting().is_empty() || !self.commits().is_empty();
        let Some(reply) = self.words().conclusion().filter(|_| !idle && !changed) else {
            return Vec::new();
        };
        let so_far = || self.steps().iter().filter(|step| step.turn <= self.turn);
        let seen = |name: &str| {
            so_far().any(|step| match &step.what {
                What::Read(it) => it.content.contains(name) || it.file.path.ends_with(name),
                What::Command(command) => command.output.contains(name),
                What::Edit(_) => false,
            })
        };
        said::findings(reply, &seen)
    }

    /// Files that were read in this turn, as they were then.
    pub fn files_read(&self) -> Vec<TouchedFile> {
        let read = self.here().filter_map(Step::read);
        files_once(read.map(|it| it.file.clone()))
    }

    /// Versions that commands printed, and those that a manifest asks for.
    pub fn versions(&self) -> Vec<String> {
        let mut versions: Vec<String> = Vec::new();
        for step in self.here() {
            if let Some(command) = step.command().filter(|it| it.passed) {
                let version = output::version(&command.text, &command.output);
                versions.extend(version.map(|it| format!("{it} (`{}`)", command.name())));
            }
            if let Some(read) = step.read() {
                let lines = read.content.lines().map(str::trim);
                let asks = lines.filter(|line| {
                    let mut keys = VERSION_KEYS.split('|');
                    keys.any(|key| line.starts_with(key))
                });
                versions.extend(asks.map(|line| format!("{}: {}", read.file.path, one_line(line))));
            }
        }
        versions.dedup();
        versions
    }

    /// `Asked: “…”.`, up to this many characters of it.
    pub fn asked(&self, max: usize) -> Vec<String> {
        let request = one_line(self.words().request().unwrap_or_default());
        let asked = shorten(&request, max);
        match asked.trim_end_matches('.') {
            "" => Vec::new(),
            asked if asked.ends_with(['?', '!', '…']) => vec![format!("Asked: “{asked}”")],
            asked => vec![format!("Asked: “{asked}”.")],
        }
    }

    pub fn closing_words(&self) -> Option<String> {
        let closing = speech::first_paragraph(self.words().conclusion()?);
        let said = || format!("The agent's closing words: {}", quote(&closing, 400));
        (!closing.is_empty()).then(said)
    }

    pub fn prompt_seed(&self) -> &'a str {
        self.words().prompt_id.unwrap_or("before-any-prompt")
    }

    /// The same observation, resting on these steps.
    pub fn resting_on(&self, mut involved: Vec<usize>, observation: Observation) -> Observation {
        involved.sort_unstable();
        involved.dedup();
        let steps: Vec<&Step> = involved.iter().map(|&at| &self.steps()[at]).collect();
        // A subagent's work is its own only if all of it is.
        let agent = steps.first().and_then(|step| step.agent_id.clone());
        Observation {
            agent_id: agent.filter(|_| steps.iter().all(|it| it.agent_id == steps[0].agent_id)),
            events: steps.iter().map(|step| step.event).collect(),
            at: steps.last().map_or(0, |step| step.at),
            ..observation
        }
    }

    /// The edited files as they were last seen, and what this turn read before that.
    pub fn files(&self, edits: &[&Edit], first: Option<usize>) -> Vec<TouchedFile> {
        let edited = edits.iter().rev().map(|edit| &edit.file);
        let before = self.here_in(0..first.unwrap_or(0));
        let read = before.filter_map(Step::read).map(|read| &read.file);
        let mut files = files_once(edited.chain(read).cloned());
        files.sort_by_key(|it| (it.role == FileRole::Read, it.path.clone()));
        files
    }
}

pub fn files_once(files: impl Iterator<Item = TouchedFile>) -> Vec<TouchedFile> {
    once(files, |a, b| a.path == b.path)
}
