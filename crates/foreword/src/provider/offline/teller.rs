//! One turn of a story, ready to be told: what belongs to it, and the parts that
//! observations and the summary are built from.

use foreword_core::model::{FileRole, Millis, Observation, ObservationType, Origin, TouchedFile};
use foreword_core::text::{one_line, shorten};
use uuid::Uuid;

use super::findings::{Commit, Findings, Trouble};
use super::git::Undo;
use super::steps::{Command, Edit, Step};
use super::undone::Attempt;
use super::{Story, Words, changes, concepts, output, request, said, speech};

const FACTS_MAX: usize = 8;

pub struct Teller<'a> {
    pub story: &'a Story<'a>,
    pub findings: &'a Findings,
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
    pub fn new(story: &'a Story<'a>, findings: &'a Findings, turn: usize) -> Teller<'a> {
        Teller {
            story,
            findings,
            turn,
        }
    }

    pub fn steps(&self) -> &'a [Step] {
        &self.story.steps
    }

    pub fn words(&self) -> Words<'a> {
        self.story.turns[self.turn]
    }

    pub fn is_here(&self, at: usize) -> bool {
        self.steps()[at].turn == self.turn
    }

    pub fn command(&self, at: usize) -> Option<&'a Command> {
        self.steps()[at].command()
    }

    pub fn edits(&self, at: &[usize]) -> Vec<&'a Edit> {
        at.iter()
            .filter_map(|&at| self.steps()[at].edit())
            .collect()
    }

    /// The turn's own lasting edits.
    pub fn lasting(&self) -> Vec<usize> {
        let lasting = self.findings.lasting.iter().copied();
        lasting.filter(|&at| self.is_here(at)).collect()
    }

    pub fn commits(&self) -> impl Iterator<Item = &'a Commit> {
        let here = |commit: &&Commit| self.is_here(commit.step);
        self.findings.commits.iter().filter(here)
    }

    /// Troubles that end in this turn, as far as is known.
    pub fn troubles(&self) -> Vec<&'a Trouble> {
        let all = self.findings.troubles.iter();
        all.filter(|trouble| self.is_here(trouble.last()) && !self.is_of_an_attempt(trouble))
            .collect()
    }

    /// Whether a command was only seen to fail with something that was given up.
    fn is_of_an_attempt(&self, trouble: &Trouble) -> bool {
        let within = |attempt: &&Attempt| {
            let during = attempt.edits[0]..attempt.undone_by;
            trouble.passed.is_none() && trouble.runs.iter().all(|at| during.contains(at))
        };
        self.findings.attempts.iter().filter(within).any(|attempt| {
            let turn = self.steps()[attempt.undone_by].turn;
            let told = Teller::new(self.story, self.findings, turn).rejected();
            told.iter().any(|it| it.attempt == attempt)
        })
    }

    /// Whether the work itself made a command fail: a test that was written first,
    /// a change half done. Mending that is part of the work, not a bugfix.
    pub fn is_on_the_way(&self, trouble: &Trouble) -> bool {
        let first = trouble.runs[0];
        let turn = self.steps()[first].turn;
        let edited = self.steps()[..first]
            .iter()
            .any(|step| step.turn == turn && step.edit().is_some());
        let request = self.story.turns[turn].request().unwrap_or_default();
        edited && !request::speaks_of_a_fault(request) && trouble.passed.is_some()
    }

    /// Attempts that were given up in this turn and are worth a word: somebody said
    /// why, or git was used to throw them away. Others are slips and scaffolding.
    pub fn rejected(&self) -> Vec<Rejected<'a>> {
        let attempts = self.findings.attempts.iter();
        attempts
            .filter(|attempt| self.is_here(attempt.undone_by))
            .filter_map(|attempt| {
                let names = changes::words(&self.edits(&attempt.edits));
                let by_agent = self
                    .words()
                    .reply()
                    .and_then(|reply| said::given_up(reply, Some(&names)));
                let origin = match by_agent {
                    Some(_) => Origin::Agent,
                    None => Origin::User,
                };
                // Who asks for an undoing means what was done for an earlier prompt.
                let earlier = attempt.edits.iter().all(|&at| !self.is_here(at));
                let names = (!earlier).then_some(names.as_slice());
                let by_user = || said::given_up(self.words().request()?, names);
                let reason = by_agent.or_else(by_user);
                let thrown_away = self
                    .command(attempt.undone_by)
                    .is_some_and(|it| !matches!(Undo::of(&it.typed), None | Some(Undo::Stash)));
                (reason.is_some() || thrown_away).then(|| Rejected {
                    attempt,
                    origin: if reason.is_some() {
                        origin
                    } else {
                        Origin::Agent
                    },
                    reason,
                })
            })
            .collect()
    }

    /// What was tried: as somebody named it, or else by its names or its line.
    pub fn tried(&self, rejected: &Rejected<'_>) -> String {
        let named = rejected.reason.as_ref().and_then(|it| it.thing.as_deref());
        if let Some(thing) = named {
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
            (Some(line), _) => format!("`{}`", shorten(line, 60)),
            (None, Some(line)) => format!("removing `{}`", shorten(line, 60)),
            (None, None) => "a change".to_owned(),
        }
    }

    /// What the agent concluded in a turn that changed nothing.
    pub fn concluded(&self) -> Vec<String> {
        let here = || self.steps().iter().filter(|step| step.turn == self.turn);
        let idle = here().next().is_none() || !self.lasting().is_empty();
        if idle || self.commits().next().is_some() || self.words().failed() {
            return Vec::new();
        }
        let seen = |name: &str| {
            let so_far = self.steps().iter().filter(|step| step.turn <= self.turn);
            so_far.into_iter().any(|step| match &step.what {
                super::steps::What::Read(read) => {
                    read.content.contains(name) || read.file.path.ends_with(name)
                }
                super::steps::What::Command(command) => command.output.contains(name),
                super::steps::What::Edit(_) => false,
            })
        };
        self.words()
            .reply()
            .map(|reply| said::findings(reply, &seen))
            .unwrap_or_default()
    }

    /// Files that were read in this turn, as they were then.
    pub fn files_read(&self) -> Vec<TouchedFile> {
        let mut files: Vec<TouchedFile> = Vec::new();
        for step in self.steps().iter().filter(|step| step.turn == self.turn) {
            if let Some(read) = step.read()
                && !files.iter().any(|known| known.path == read.file.path)
            {
                files.push(read.file.clone());
            }
        }
        files
    }

    /// Versions that commands printed, and those that a manifest asks for.
    pub fn versions(&self) -> Vec<String> {
        let mut versions: Vec<String> = Vec::new();
        for step in self.steps().iter().filter(|step| step.turn == self.turn) {
            if let Some(command) = step.command().filter(|it| it.passed) {
                let version = output::version(&command.text, &command.output);
                versions.extend(version.map(|it| format!("{it} (`{}`)", command.name())));
            }
            if let Some(read) = step.read() {
                let keys = [
                    "requires-python",
                    "python_requires",
                    "rust-version",
                    "\"node\":",
                ];
                let lines = read.content.lines().map(str::trim);
                let asks = lines.filter(|line| keys.iter().any(|key| line.starts_with(key)));
                versions.extend(asks.map(|line| format!("{}: {}", read.file.path, one_line(line))));
            }
        }
        versions.dedup();
        versions
    }

    /// `Asked: “…”.`, up to this many characters of it.
    pub fn asked(&self, max: usize) -> Vec<String> {
        let request = self.words().request().map(one_line);
        let request = request.filter(|it| !it.is_empty());
        request
            .map(|it| {
                let asked = shorten(&it, max);
                let asked = asked.trim_end_matches('.');
                let end = if asked.ends_with(['?', '!', '…']) {
                    ""
                } else {
                    "."
                };
                format!("Asked: “{asked}”{end}")
            })
            .into_iter()
            .collect()
    }

    pub fn closing_words(&self) -> Option<String> {
        let closing = speech::first_paragraph(self.words().reply()?);
        (!closing.is_empty() && !self.words().failed())
            .then(|| format!("The agent's closing words: “{}”", shorten(&closing, 400)))
    }

    pub fn prompt_seed(&self) -> &'a str {
        self.words().prompt_id.unwrap_or("before-any-prompt")
    }

    /// An observation that rests on these steps.
    pub fn resting_on(&self, wording: Wording, mut involved: Vec<usize>) -> Observation {
        involved.sort_unstable();
        involved.dedup();
        let steps: Vec<&Step> = involved.iter().map(|&at| &self.steps()[at]).collect();
        // A subagent's work is its own only if all of it is.
        let agent = steps.first().and_then(|step| step.agent_id.clone());
        let agent_id = agent.filter(|agent| {
            let same = |step: &&Step| step.agent_id.as_ref() == Some(agent);
            steps.iter().all(same)
        });
        let events = steps.iter().map(|step| step.event).collect();
        let at = steps.last().map_or(0, |step| step.at);
        wording.observation(events, at, agent_id)
    }

    /// The edited files as they were last seen, and what this turn read before that.
    pub fn files(&self, edits: &[&Edit], first: Option<usize>) -> Vec<TouchedFile> {
        let mut files: Vec<TouchedFile> = Vec::new();
        for edit in edits {
            files.retain(|file| file.path != edit.file.path);
            files.push(edit.file.clone());
        }
        for step in &self.steps()[..first.unwrap_or(0)] {
            if let Some(read) = step.read().filter(|_| step.turn == self.turn)
                && !files.iter().any(|known| known.path == read.file.path)
            {
                files.push(read.file.clone());
            }
        }
        files.sort_by(|a, b| {
            (a.role == FileRole::Read, &a.path).cmp(&(b.role == FileRole::Read, &b.path))
        });
        files
    }
}

/// An observation's words, before it is known which events they rest on.
pub struct Wording {
    pub seed: String,
    pub kind: ObservationType,
    pub origin: Origin,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: Vec<String>,
    pub files: Vec<TouchedFile>,
}

impl Wording {
    pub fn observation(
        self,
        events: Vec<Uuid>,
        at: Millis,
        agent_id: Option<String>,
    ) -> Observation {
        let paths: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        let said = format!("{} {}", self.title, self.facts.join(" "));
        let concepts = concepts::concepts(&paths, &said);
        let mut facts = self.facts;
        facts.truncate(FACTS_MAX);
        Observation {
            seed: self.seed,
            kind: self.kind,
            title: one_line(&self.title),
            subtitle: one_line(&self.subtitle),
            facts,
            narrative: self.narrative.join(" "),
            concepts,
            files: self.files,
            origin: self.origin,
            agent_id,
            events,
            at,
        }
    }
}
