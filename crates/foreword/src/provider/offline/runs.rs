//! Words for runs of commands: how they failed, what was done in between, and what
//! the agent said about the cause.

use foreword_core::text::shorten;

use super::call::changes_files;
use super::findings::Trouble;
use super::steps::Command;
use super::teller::Teller;
use super::{changes, output, said};

impl Teller<'_> {
    pub fn trouble_seed(&self, trouble: &Trouble) -> String {
        format!("trouble:{}", self.steps()[trouble.runs[0]].event)
    }

    /// Each thing that a command said was wrong, and what had been done before.
    pub fn run_facts(&self, trouble: &Trouble) -> Vec<String> {
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
    pub fn done_between(&self, from: usize, to: usize) -> String {
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
    pub fn passed_fact(&self, trouble: &Trouble) -> Option<String> {
        let failed = self.command(trouble.runs[0])?;
        let line = output::key_line(&failed.output)?;
        let name = failed.name();
        Some(format!(
            "`{name}` passes; on the way it failed with “{}”",
            shorten(&line, 120)
        ))
    }

    /// What else was done in this turn after a failure, as far as it went well.
    pub fn ran_after(&self, last: usize) -> Vec<String> {
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

    pub fn commands_that_change_files(&self, before: usize) -> Vec<String> {
        let here = (0..before).filter(|&at| self.is_here(at));
        here.filter_map(|at| self.command(at))
            .filter(|it| it.passed && changes_files(&it.typed))
            .map(|it| format!("Ran `{}`", shorten(&it.text, 120)))
            .collect()
    }

    /// `` `sed -i …` and 2 more ``, of commands that changed files.
    pub fn changed_by(&self, commands: &[usize]) -> String {
        let mut commands = commands.iter().filter_map(|&at| self.command(at));
        let first = commands.next().map(|it| shorten(&it.text, 60));
        let first = first.unwrap_or_default();
        match commands.count() {
            0 => format!("`{first}`"),
            more => format!("`{first}` and {more} more"),
        }
    }

    pub fn failed_sentence(&self, trouble: &Trouble) -> String {
        let Some(failed) = self.command(trouble.runs[0]) else {
            return String::new();
        };
        match output::key_line(&failed.output) {
            Some(line) => format!("`{}` failed with “{line}”.", shorten(&failed.text, 100)),
            None => format!("`{}` failed.", shorten(&failed.text, 100)),
        }
    }

    pub fn cause(&self) -> Option<String> {
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
