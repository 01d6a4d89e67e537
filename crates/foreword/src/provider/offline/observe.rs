//! Words what a turn came to as observations.
//!
//! A title names the thing changed, not the tool; facts carry files, commands and
//! the line that said what was wrong. Nothing is claimed that no event shows, and
//! what somebody said stands in quotes.

use foreword_core::model::{Event, FileRole, Observation, ObservationType, Origin, TouchedFile};
use foreword_core::text::{capitalised, shorten};

use super::findings::{Commit, Trouble};
use super::request::{self, Asked};
use super::steps::{Command, Edit};
use super::teller::{Rejected, Teller, Wording};
use super::{changes, output, said};

/// Decisions and findings of one turn; a reply with more of them is an essay.
const SAID_MAX: usize = 4;

pub fn observations(teller: &Teller<'_>) -> Vec<Observation> {
    let (on_the_way, troubles): (Vec<&Trouble>, Vec<&Trouble>) = teller
        .troubles()
        .into_iter()
        .partition(|trouble| teller.is_on_the_way(trouble));
    let (repairs, failures): (Vec<&Trouble>, Vec<&Trouble>) =
        troubles.into_iter().partition(|it| it.passed.is_some());
    let mut observations = decisions(teller);
    let mut accounted: Vec<usize> = Vec::new();
    let mut folded: Vec<usize> = Vec::new();
    for commit in teller.commits() {
        let within = |trouble: &&&Trouble| {
            trouble.last() < commit.step && trouble.edits.iter().all(|it| commit.edits.contains(it))
        };
        let fixed: Vec<&Trouble> = repairs.iter().filter(within).copied().collect();
        let passed: Vec<&Trouble> = on_the_way.iter().filter(within).copied().collect();
        folded.extend(fixed.iter().chain(&passed).map(|it| it.runs[0]));
        accounted.extend(&commit.edits);
        observations.push(teller.commit(commit, &fixed, &passed));
    }
    let is_left = |trouble: &&&Trouble| !folded.contains(&trouble.runs[0]);
    for repair in repairs.iter().filter(is_left) {
        accounted.extend(&repair.edits);
        observations.extend(teller.repair(repair));
    }
    let mut edits = teller.lasting();
    edits.retain(|at| !accounted.contains(at));
    if !edits.is_empty() {
        let passed: Vec<&Trouble> = on_the_way.iter().filter(is_left).copied().collect();
        // Also when the trouble went on and is told in a later turn.
        let failing = teller.findings.troubles.iter().any(|trouble| {
            trouble.passed.is_none() && edits.iter().any(|at| trouble.edits.contains(at))
        });
        observations.push(teller.changed(&edits, &passed, failing));
    }
    for failure in failures {
        observations.extend(teller.failure(failure));
    }
    let rejected = teller.rejected();
    observations.extend(rejected.iter().map(|it| teller.rejection(it)));
    observations.extend(findings(teller));
    if let Some(first) = observations.iter_mut().find(|it| it.origin != Origin::User) {
        first.facts.extend(teller.versions());
    }
    // The closing words are in the summary; here they would be paid for once per observation.
    if let [only] = observations.as_mut_slice()
        && only.origin == Origin::Agent
        && let Some(closing) = teller.closing_words()
    {
        only.narrative = format!("{} {closing}", only.narrative);
    }
    observations.sort_by_key(|observation| observation.at);
    observations
}

/// What the user's and the agent's own words decide.
fn decisions(teller: &Teller<'_>) -> Vec<Observation> {
    let words = teller.words();
    let by_user = words.request().map(said::decisions_of_user);
    let by_agent = words.reply().map(said::decisions_of_agent);
    let tell = |who: Origin, event: Option<&Event>, said: Option<Vec<String>>| {
        let sentences = said
            .unwrap_or_default()
            .into_iter()
            .take(SAID_MAX)
            .enumerate();
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
    decisions
}

/// What the agent found by reading, in its own words.
fn findings(teller: &Teller<'_>) -> Vec<Observation> {
    let Some(stop) = teller.words().stop else {
        return Vec::new();
    };
    let concluded = teller.concluded().into_iter().take(SAID_MAX).enumerate();
    concluded
        .map(|(at, it)| {
            teller
                .finding(at, &it)
                .observation(vec![stop.id], stop.at, None)
        })
        .collect()
}

impl Teller<'_> {
    fn commit(&self, commit: &Commit, fixed: &[&Trouble], passed: &[&Trouble]) -> Observation {
        let here: Vec<usize> = commit
            .edits
            .iter()
            .copied()
            .filter(|&at| self.is_here(at))
            .collect();
        let (all, own) = (self.edits(&commit.edits), self.edits(&here));
        let mut facts: Vec<String> = fixed.iter().flat_map(|it| self.run_facts(it)).collect();
        facts.extend(passed.iter().filter_map(|it| self.passed_fact(it)));
        facts.extend(changes::facts(&own));
        if all.is_empty() {
            facts.extend(self.commands_that_change_files(commit.step));
        }
        let id = match &commit.id {
            Some(id) => format!("Committed as {id}"),
            None => "Committed".to_owned(),
        };
        let what = match all.as_slice() {
            [] => "its files were changed by commands, not by edits".to_owned(),
            all => changes::names(all),
        };
        let mut narrative = self.asked(300);
        narrative.extend(fixed.first().map(|it| self.failed_sentence(it)));
        narrative.push(changes::sentence(&own));
        if own.len() < all.len() {
            narrative.push("The commit takes in edits of an earlier prompt.".to_owned());
        }
        narrative.push(format!("{id}, “{}”.", commit.subject));
        narrative.retain(|it| !it.is_empty());
        let kind = request::kind_of(&commit.subject);
        let runs = fixed.iter().flat_map(|it| [it.runs[0], it.last()]);
        let first = here.first().copied();
        self.from_steps(
            Wording {
                seed: format!("commit:{}", self.steps()[commit.step].event),
                kind: kind.unwrap_or(ObservationType::Feature),
                origin: Origin::Agent,
                title: match request::without_prefix(&commit.subject) {
                    "" => format!("Committed {}", changes::names(&all)),
                    subject => capitalised(subject),
                },
                subtitle: format!("{id}: {what}"),
                facts,
                narrative,
                files: self.files(&all, first),
            },
            here.iter()
                .copied()
                .chain(runs)
                .chain([commit.step])
                .collect(),
        )
    }

    fn repair(&self, repair: &Trouble) -> Option<Observation> {
        let failed = self.command(repair.runs[0])?;
        let edits = self.edits(&repair.edits);
        let names = changes::names(&edits);
        let name = failed.name();
        let title = match (
            output::failing_test(&failed.output),
            output::key_line(&failed.output),
        ) {
            (Some(test), Some(line)) => {
                format!("Fixed {test} in {names}: “{}”", shorten(&line, 70))
            }
            (_, Some(line)) => format!("Fixed “{}” in {names}", shorten(&line, 70)),
            _ => format!("`{name}` passes again after changes to {names}"),
        };
        let mut facts = self.run_facts(repair);
        facts.extend(changes::facts(&edits));
        let mut narrative = self.asked(300);
        narrative.push(self.failed_sentence(repair));
        narrative.push(format!(
            "{} After that `{name}` passed.",
            changes::sentence(&edits)
        ));
        narrative.extend(self.cause());
        let runs = [repair.runs[0], repair.last()];
        Some(self.from_steps(
            Wording {
                seed: self.trouble_seed(repair),
                kind: ObservationType::Bugfix,
                origin: Origin::Agent,
                title,
                subtitle: format!("`{name}` failed and passes now"),
                facts,
                narrative,
                files: self.files(&edits, Some(repair.runs[0])),
            },
            repair.edits.iter().copied().chain(runs).collect(),
        ))
    }

    /// Edits that neither a repair nor a commit accounts for.
    fn changed(&self, at: &[usize], passed: &[&Trouble], failing: bool) -> Observation {
        let edits = self.edits(at);
        let request = self.words().request().unwrap_or_default();
        let asked = Asked::of(request);
        let defined = changes::new_names(&edits);
        let created = edits.iter().any(|edit| edit.created);
        let kind = asked.as_ref().and_then(|it| it.kind).unwrap_or({
            if failing {
                ObservationType::Bugfix
            } else if created || !defined.is_empty() {
                ObservationType::Feature
            } else {
                ObservationType::Refactor
            }
        });
        let names = changes::names(&edits);
        let mut facts: Vec<String> = passed
            .iter()
            .filter_map(|it| self.passed_fact(it))
            .collect();
        let change = changes::facts(&edits);
        let title = match (asked, defined.as_slice(), change.as_slice()) {
            (Some(asked), ..) => format!("{} ({names})", asked.title),
            (None, [], [one]) => one.clone(),
            (None, [], _) => format!("Changed {names}"),
            (None, defined, _) => format!("Added {} ({names})", changes::quoted(defined)),
        };
        facts.extend(change.into_iter().filter(|fact| *fact != title));
        let mut narrative = self.asked(300);
        narrative.push(changes::sentence(&edits));
        let sizes = changes::sizes(&edits);
        self.from_steps(
            Wording {
                seed: format!("edits:{}", self.prompt_seed()),
                kind,
                origin: Origin::Agent,
                title,
                // The user's word makes it a bugfix; only a run that passes would prove it.
                subtitle: match kind {
                    ObservationType::Bugfix => {
                        format!("{sizes}; meant as a fix, no failing run was seen to pass")
                    }
                    _ => sizes,
                },
                facts,
                narrative,
                files: self.files(&edits, at.first().copied()),
            },
            at.to_vec(),
        )
    }

    fn failure(&self, trouble: &Trouble) -> Option<Observation> {
        let last = *trouble.runs.last()?;
        let command = self.command(last)?;
        let name = command.name();
        let line = output::key_line(&command.output)?;
        let mut facts = self.run_facts(trouble);
        facts.extend(self.ran_after(last));
        let mut narrative = self.asked(300);
        narrative.push(format!(
            "`{}` failed with “{line}” and was not seen to pass afterwards.",
            shorten(&command.text, 120)
        ));
        narrative.extend(self.cause());
        let runs = match trouble.runs.len() {
            1 => "One failing run".to_owned(),
            runs => format!("{runs} failing runs"),
        };
        let edits = self.edits(&trouble.edits);
        Some(self.from_steps(
            Wording {
                seed: self.trouble_seed(trouble),
                kind: ObservationType::Discovery,
                origin: Origin::Agent,
                title: format!("`{name}` fails: {}", shorten(&line, 80)),
                subtitle: format!("{runs} of `{name}`, none that passed afterwards"),
                facts,
                narrative,
                files: self.files(&edits, Some(trouble.runs[0])),
            },
            trouble.runs.clone(),
        ))
    }

    fn rejection(&self, rejected: &Rejected<'_>) -> Observation {
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
            facts.push(format!("With it `{}` failed: {line}", command.name()));
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
        self.from_steps(
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
        let (seed, whose) = match who {
            Origin::User => ("user", "The user"),
            _ => ("agent", "The agent"),
        };
        Wording {
            seed: format!("decided:{seed}:{}:{number}", self.prompt_seed()),
            kind: ObservationType::Decision,
            origin: who,
            title: shorten(&said::as_title(sentence), 110).into_owned(),
            subtitle: if request.contains(&sentence[..sentence.len().min(20)]) {
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
        let sentences = said::sentences(finding);
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

    fn trouble_seed(&self, trouble: &Trouble) -> String {
        format!("trouble:{}", self.steps()[trouble.runs[0]].event)
    }

    /// Each thing that a command said was wrong, and what had been done before.
    fn run_facts(&self, trouble: &Trouble) -> Vec<String> {
        let mut facts = Vec::new();
        let mut before: Option<(usize, Option<String>)> = None;
        for &at in &trouble.runs {
            let Some(command) = self.command(at) else {
                continue;
            };
            let line = output::key_line(&command.output);
            match &before {
                None => facts.push(failed_fact(command)),
                Some((_, same)) if *same == line => {}
                Some((last, _)) => {
                    let after = self.done_between(*last, at);
                    facts.push(format!("Then{after}: {}", line.clone().unwrap_or_default()));
                }
            }
            before = Some((at, line));
        }
        if let Some(passed) = trouble.passed.and_then(|at| self.command(at)) {
            let times = match trouble.runs.len() {
                1 => "after one failing run".to_owned(),
                runs => format!("after {runs} failing runs"),
            };
            facts.push(format!("`{}` passes {times}", shorten(&passed.text, 80)));
        }
        facts
    }

    /// `, after changes to a and b (undone later)`.
    fn done_between(&self, from: usize, to: usize) -> String {
        let edits: Vec<usize> = (from..to)
            .filter(|&at| self.steps()[at].edit().is_some())
            .collect();
        if edits.is_empty() {
            return String::new();
        }
        let undone = edits.iter().all(|at| !self.findings.lasting.contains(at));
        let later = if undone { " (undone later)" } else { "" };
        format!(
            ", after changes to {}{later}",
            changes::names(&self.edits(&edits))
        )
    }

    /// `python3 -m unittest` failed on the way: it is part of the work.
    fn passed_fact(&self, trouble: &Trouble) -> Option<String> {
        let failed = self.command(trouble.runs[0])?;
        let line = output::key_line(&failed.output)?;
        let name = failed.name();
        Some(format!(
            "`{name}` passes; on the way it failed with “{}”",
            shorten(&line, 120)
        ))
    }

    /// What else was done in this turn after a failure, as far as it went well.
    fn ran_after(&self, last: usize) -> Vec<String> {
        let after = (last + 1..self.steps().len()).filter(|&at| self.is_here(at));
        after
            .filter_map(|at| self.command(at))
            .filter(|command| command.passed && command.matters())
            .filter(|command| !command.text.starts_with("git "))
            .take(2)
            .map(|command| {
                let said = command
                    .output
                    .trim()
                    .lines()
                    .next_back()
                    .unwrap_or_default();
                format!(
                    "Then `{}` went well: {}",
                    command.name(),
                    shorten(said, 120)
                )
            })
            .collect()
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

    fn commands_that_change_files(&self, before: usize) -> Vec<String> {
        let here = (0..before).filter(|&at| self.is_here(at));
        here.filter_map(|at| self.command(at))
            .filter(|it| it.passed && (it.text.starts_with("sed -i") || it.text.starts_with("mv ")))
            .map(|it| format!("Ran `{}`", shorten(&it.text, 120)))
            .collect()
    }

    fn failed_sentence(&self, trouble: &Trouble) -> String {
        let Some(failed) = self.command(trouble.runs[0]) else {
            return String::new();
        };
        match output::key_line(&failed.output) {
            Some(line) => format!("`{}` failed with “{line}”.", shorten(&failed.text, 100)),
            None => format!("`{}` failed.", shorten(&failed.text, 100)),
        }
    }

    fn cause(&self) -> Option<String> {
        let cause = said::cause(self.words().reply()?)?;
        (!self.words().failed())
            .then(|| format!("The cause in the agent's words: “{}”", shorten(&cause, 300)))
    }
}

fn failed_fact(command: &Command) -> String {
    let code = command.exit_code.as_ref();
    let code = code.map(|code| format!(" with exit code {code}"));
    let test = output::failing_test(&command.output).map(|test| format!(" in {test}"));
    let line = output::key_line(&command.output).map(|line| format!(": {line}"));
    format!(
        "`{}` failed{}{}{}",
        shorten(&command.text, 80),
        code.unwrap_or_default(),
        test.unwrap_or_default(),
        line.unwrap_or_default()
    )
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
