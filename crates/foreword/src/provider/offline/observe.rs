//! Words findings as observations.
//!
//! A title names the thing changed, not the tool; facts carry files, commands and
//! the line that said what was wrong. Nothing is claimed that no event shows.

use foreword_core::model::{FileRole, Observation, ObservationType, Origin, TouchedFile, Turn};
use foreword_core::text::{capitalised, count, one_line, shorten};

use super::Story;
use super::findings::{Commit, Findings, Repair, command_at, edit_at};
use super::steps::{Command, Edit, Step, What};
use super::words;

const FACTS_MAX: usize = 7;
const CONCEPTS_MAX: usize = 5;

pub fn observations(turn: &Turn, story: &Story<'_>, findings: &Findings) -> Vec<Observation> {
    let teller = Teller { story };
    let mut observations = Vec::new();
    let mut folded = Vec::new();
    for commit in &findings.commits {
        let repairs: Vec<&Repair> = findings
            .repairs
            .iter()
            .filter(|repair| {
                repair.passed < commit.step
                    && repair.edits.iter().all(|edit| commit.edits.contains(edit))
            })
            .collect();
        folded.extend(repairs.iter().map(|repair| repair.failed));
        observations.push(teller.commit(commit, &repairs));
    }
    for repair in findings
        .repairs
        .iter()
        .filter(|it| !folded.contains(&it.failed))
    {
        observations.extend(teller.repair(repair));
    }
    if !findings.other_edits.is_empty() {
        observations.push(teller.edits(turn, &findings.other_edits));
    }
    for &failure in &findings.failures {
        observations.extend(teller.failure(failure));
    }
    // The closing words are in the summary; here they would be paid for once per observation.
    if let [only] = observations.as_mut_slice()
        && let Some(closing) = teller.closing_words()
    {
        only.narrative = format!("{} {closing}", only.narrative);
    }
    observations.sort_by_key(|observation| observation.at);
    observations
}

struct Teller<'a> {
    story: &'a Story<'a>,
}

impl Teller<'_> {
    fn steps(&self) -> &[Step] {
        &self.story.steps
    }

    fn commit(&self, commit: &Commit, repairs: &[&Repair]) -> Observation {
        let edits = self.edits_at(&commit.edits);
        let mut facts = Vec::new();
        for repair in repairs {
            facts.extend(self.repair_facts(repair));
        }
        facts.extend(change_facts(&edits));
        let id = commit.id.as_deref().unwrap_or("a commit of unknown id");
        facts.push(format!("Committed as {id}: {}", names(&edits)));
        let mut narrative = self.asked();
        if let Some(repair) = repairs.first() {
            narrative.push(self.repair_sentence(repair));
        }
        narrative.push(format!(
            "{} Committed as {id}, “{}”.",
            changed_sentence(&edits),
            commit.subject
        ));
        let involved = commit
            .edits
            .iter()
            .copied()
            .chain(repairs.iter().flat_map(|it| [it.failed, it.passed]));
        self.observation(
            format!("commit:{}", self.steps()[commit.step].event),
            Wording {
                kind: kind_of(&commit.subject).unwrap_or(ObservationType::Feature),
                title: match without_prefix(&commit.subject) {
                    "" => format!("Committed {}", names(&edits)),
                    subject => capitalised(subject),
                },
                subtitle: format!("Committed as {id}: {}", names(&edits)),
                facts,
                narrative,
            },
            &edits,
            involved.chain([commit.step]),
        )
    }

    fn repair(&self, repair: &Repair) -> Option<Observation> {
        let failed = command_at(self.steps(), repair.failed)?;
        let edits = self.edits_at(&repair.edits);
        let line = words::key_line(&failed.output);
        let name = call_name(failed);
        let title = match &line {
            Some(line) => format!("Fixed “{}” in {}", shorten(line, 70), names(&edits)),
            None => format!("`{name}` passes again after changes to {}", names(&edits)),
        };
        let mut facts = self.repair_facts(repair);
        facts.extend(change_facts(&edits));
        let mut narrative = self.asked();
        narrative.push(self.repair_sentence(repair));
        narrative.push(format!(
            "{} After that `{name}` passed.",
            changed_sentence(&edits)
        ));
        Some(
            self.observation(
                format!("repair:{}", self.steps()[repair.failed].event),
                Wording {
                    kind: ObservationType::Bugfix,
                    title,
                    subtitle: format!("`{name}` failed and passes now"),
                    facts,
                    narrative,
                },
                &edits,
                repair
                    .edits
                    .iter()
                    .copied()
                    .chain([repair.failed, repair.passed]),
            ),
        )
    }

    fn edits(&self, turn: &Turn, at: &[usize]) -> Observation {
        let edits = self.edits_at(at);
        let request = self
            .story
            .request
            .map(foreword_core::text::title)
            .filter(|it| !it.is_empty());
        let by_words = request.as_deref().and_then(kind_of);
        let created = edits.iter().any(|edit| edit.created);
        let kind = by_words.unwrap_or(if created {
            ObservationType::Feature
        } else {
            ObservationType::Refactor
        });
        let title = match &request {
            Some(request) => format!("{} ({})", shorten(request, 80), names(&edits)),
            None => format!("Changed {}", names(&edits)),
        };
        let mut narrative = self.asked();
        narrative.push(changed_sentence(&edits));
        self.observation(
            format!(
                "edits:{}",
                turn.prompt_id.as_deref().unwrap_or("before-any-prompt")
            ),
            Wording {
                kind,
                title,
                // The user's word makes it a bugfix; only a run that passes would prove it.
                subtitle: match kind {
                    ObservationType::Bugfix => "Meant as a fix; no failing run was seen to pass",
                    _ => "Changed in this turn",
                }
                .to_owned(),
                facts: change_facts(&edits),
                narrative,
            },
            &edits,
            at.iter().copied(),
        )
    }

    fn failure(&self, at: usize) -> Option<Observation> {
        let command = command_at(self.steps(), at)?;
        let name = call_name(command);
        let line = words::key_line(&command.output)?;
        let mut narrative = self.asked();
        narrative.push(format!(
            "`{}` failed with “{line}” and did not pass afterwards in this turn.",
            shorten(&command.text, 120)
        ));
        Some(self.observation(
            format!("failure:{}", self.steps()[at].event),
            Wording {
                kind: ObservationType::Discovery,
                title: format!("`{name}` fails: {}", shorten(&line, 80)),
                subtitle: "Not seen to pass afterwards in this turn".to_owned(),
                facts: failure_facts(command),
                narrative,
            },
            &[],
            [at].into_iter(),
        ))
    }

    fn observation(
        &self,
        seed: String,
        wording: Wording,
        edits: &[&Edit],
        involved: impl Iterator<Item = usize>,
    ) -> Observation {
        let mut involved: Vec<usize> = involved.collect();
        involved.sort_unstable();
        involved.dedup();
        let steps: Vec<&Step> = involved.iter().map(|&at| &self.steps()[at]).collect();
        let narrative = wording.narrative;
        let mut facts = wording.facts;
        facts.truncate(FACTS_MAX);
        // A subagent's work is its own only if all of it is.
        let agent = steps.first().and_then(|step| step.agent_id.clone());
        let agent_id = agent.filter(|agent| {
            steps
                .iter()
                .all(|step| step.agent_id.as_ref() == Some(agent))
        });
        Observation {
            seed,
            kind: wording.kind,
            title: one_line(&wording.title),
            subtitle: one_line(&wording.subtitle),
            facts,
            narrative: narrative.join(" "),
            concepts: concepts(edits),
            files: self.files(edits, involved.first().copied()),
            origin: Origin::Agent,
            agent_id,
            events: steps.iter().map(|step| step.event).collect(),
            at: steps.last().map_or(0, |step| step.at),
        }
    }

    /// The edited files as they were last seen, and what was read before the first change.
    fn files(&self, edits: &[&Edit], first: Option<usize>) -> Vec<TouchedFile> {
        let mut files: Vec<TouchedFile> = Vec::new();
        for edit in edits {
            files.retain(|file| file.path != edit.file.path);
            files.push(edit.file.clone());
        }
        for step in &self.steps()[..first.unwrap_or(0)] {
            if let What::Read(file) = &step.what
                && !files.iter().any(|known| known.path == file.path)
            {
                files.push(file.clone());
            }
        }
        files.sort_by(|a, b| {
            (a.role == FileRole::Read, &a.path).cmp(&(b.role == FileRole::Read, &b.path))
        });
        files
    }

    fn edits_at(&self, at: &[usize]) -> Vec<&Edit> {
        at.iter()
            .filter_map(|&at| edit_at(self.steps(), at))
            .collect()
    }

    fn asked(&self) -> Vec<String> {
        let request = self.story.request.map(one_line).filter(|it| !it.is_empty());
        request
            .map(|request| format!("Asked: “{}”.", shorten(&request, 300).trim_end_matches('.')))
            .into_iter()
            .collect()
    }

    fn closing_words(&self) -> Option<String> {
        let closing = words::first_paragraph(self.story.reply?);
        (!closing.is_empty() && !self.story.failed)
            .then(|| format!("The agent's closing words: “{}”", shorten(&closing, 400)))
    }

    fn repair_facts(&self, repair: &Repair) -> Vec<String> {
        let Some(failed) = command_at(self.steps(), repair.failed) else {
            return Vec::new();
        };
        let mut facts = failure_facts(failed);
        if let Some(passed) = command_at(self.steps(), repair.passed) {
            let times = match repair.runs {
                1 => "after one failing run".to_owned(),
                runs => format!("after {runs} failing runs"),
            };
            facts.push(format!("`{}` passes {times}", shorten(&passed.text, 80)));
        }
        facts
    }

    fn repair_sentence(&self, repair: &Repair) -> String {
        let Some(failed) = command_at(self.steps(), repair.failed) else {
            return String::new();
        };
        match words::key_line(&failed.output) {
            Some(line) => format!("`{}` failed with “{line}”.", shorten(&failed.text, 100)),
            None => format!("`{}` failed.", shorten(&failed.text, 100)),
        }
    }
}

struct Wording {
    kind: ObservationType,
    title: String,
    subtitle: String,
    facts: Vec<String>,
    narrative: Vec<String>,
}

/// What a message or request says it is about; none if its words do not tell.
fn kind_of(message: &str) -> Option<ObservationType> {
    let message = message.to_lowercase();
    let first = message
        .split(|it: char| !it.is_alphanumeric())
        .find(|word| !word.is_empty())?;
    Some(match first {
        "fix" | "fixes" | "fixed" | "bugfix" | "hotfix" | "repair" | "correct" => {
            ObservationType::Bugfix
        }
        "feat" | "feature" | "add" | "adds" | "added" | "implement" | "introduce" | "support"
        | "create" | "build" | "write" => ObservationType::Feature,
        "refactor" | "rename" | "move" | "extract" | "clean" | "cleanup" | "simplify" | "split"
        | "inline" | "style" | "chore" | "perf" => ObservationType::Refactor,
        _ => return None,
    })
}

/// `fix(auth): compare in UTC` without the part that the type already says.
fn without_prefix(subject: &str) -> &str {
    match subject.split_once(": ") {
        Some((prefix, rest))
            if kind_of(prefix).is_some() && !prefix.contains(' ') && !rest.is_empty() =>
        {
            rest
        }
        _ => subject,
    }
}

fn call_name(command: &Command) -> String {
    words::Call::of(&command.text)
        .map_or_else(|| shorten(&command.text, 60).into_owned(), |call| call.name)
}

fn paths<'a>(edits: &[&'a Edit]) -> Vec<&'a str> {
    let mut paths: Vec<&str> = Vec::new();
    for edit in edits {
        if !paths.contains(&edit.file.path.as_str()) {
            paths.push(&edit.file.path);
        }
    }
    paths
}

/// `src/a.rs, src/b.rs and 3 more`.
fn names(edits: &[&Edit]) -> String {
    let paths = paths(edits);
    match paths.as_slice() {
        [] => "no edited files".to_owned(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one}, {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

fn changed_sentence(edits: &[&Edit]) -> String {
    if edits.is_empty() {
        return String::new();
    }
    let created: Vec<_> = edits.iter().copied().filter(|edit| edit.created).collect();
    let created = paths(&created);
    let changed: Vec<_> = paths(edits)
        .into_iter()
        .filter(|path| !created.contains(path))
        .collect();
    let mut parts = Vec::new();
    if !created.is_empty() {
        parts.push(format!("Created {}", created.join(", ")));
    }
    if !changed.is_empty() {
        parts.push(format!(
            "{} {}",
            if parts.is_empty() {
                "Changed"
            } else {
                "changed"
            },
            changed.join(", ")
        ));
    }
    format!("{}.", parts.join("; "))
}

/// One fact per file: the line that changed, or how much there is of it.
fn change_facts(edits: &[&Edit]) -> Vec<String> {
    paths(edits)
        .into_iter()
        .map(|path| {
            let of_file: Vec<_> = edits.iter().filter(|edit| edit.file.path == path).collect();
            let replaced = of_file.iter().find_map(|edit| {
                match (edit.removed.as_slice(), edit.added.as_slice()) {
                    ([old], [new]) if !edit.created => Some((old, new)),
                    _ => None,
                }
            });
            if let Some(edit) = of_file.iter().find(|edit| edit.created) {
                return format!(
                    "{path} is new, {}",
                    count(edit.lines as u64, "line", "lines")
                );
            }
            match replaced {
                Some((old, new)) => format!(
                    "{path}: `{}` became `{}`",
                    shorten(old, 70),
                    shorten(new, 70)
                ),
                None => {
                    let added: usize = of_file.iter().map(|edit| edit.added.len()).sum();
                    let removed: usize = of_file.iter().map(|edit| edit.removed.len()).sum();
                    let first = of_file.iter().find_map(|edit| edit.added.first());
                    let sample = first.map(|line| format!(", among them `{}`", shorten(line, 60)));
                    let added = count(added as u64, "line", "lines");
                    format!(
                        "{path}: {added} in, {removed} out{}",
                        sample.unwrap_or_default()
                    )
                }
            }
        })
        .collect()
}

fn failure_facts(command: &Command) -> Vec<String> {
    let code = command
        .exit_code
        .as_ref()
        .map(|code| format!(" with exit code {code}"))
        .unwrap_or_default();
    let line = words::key_line(&command.output)
        .map(|line| format!(": {line}"))
        .unwrap_or_default();
    vec![format!(
        "`{}` failed{code}{line}",
        shorten(&command.text, 80)
    )]
}

/// Broad words from the paths: folders, names and the language.
fn concepts(edits: &[&Edit]) -> Vec<String> {
    let mut concepts: Vec<String> = Vec::new();
    let mut add = |word: &str| {
        let word = word.to_lowercase();
        let known = [
            "src", "lib", "main", "mod", "index", "crates", "packages", "app", "init", "",
        ];
        if !known.contains(&word.as_str()) && !concepts.contains(&word) {
            concepts.push(word);
        }
    };
    for path in paths(edits) {
        let path = std::path::Path::new(path);
        if path.is_absolute() {
            continue;
        }
        if let Some(stem) = path.file_stem() {
            add(stem.to_string_lossy().trim_start_matches('.'));
        }
        if let Some(folder) = path.parent().and_then(|it| it.file_name()) {
            add(&folder.to_string_lossy());
        }
        if let Some(language) = path
            .extension()
            .and_then(|it| language(&it.to_string_lossy()))
        {
            add(language);
        }
    }
    concepts.truncate(CONCEPTS_MAX);
    concepts
}

fn language(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "rs" => "rust",
        "py" => "python",
        "ts" | "tsx" => "typescript",
        "js" | "jsx" | "mjs" => "javascript",
        "go" => "go",
        "java" => "java",
        "rb" => "ruby",
        "c" | "h" => "c",
        "cpp" | "cc" | "hpp" => "c++",
        "sql" => "sql",
        "sh" => "shell",
        "md" => "documentation",
        "css" | "scss" => "css",
        "html" => "html",
        "toml" | "yaml" | "yml" | "json" => "configuration",
        _ => return None,
    })
}
