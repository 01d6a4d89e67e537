//! Words for runs of commands: how they failed, what was done in between, and what
//! the agent said about the cause.

use foreword_core::text::shorten;

use super::findings::Trouble;
use super::steps::{Command, Step};
use super::teller::Teller;
use super::{changes, code, output, quote, said};

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
            let line = command.key_line();
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
                1 => "one failing run".to_owned(),
                runs => format!("{runs} failing runs"),
            };
            facts.push(format!("{} passes after {times}", code(&passed.text, 80)));
        }
        facts
    }

    /// `, after changes to a and b (undone later)`.
    fn done_between(&self, from: usize, to: usize) -> String {
        let is_edit = |at: &usize| self.steps()[*at].edit().is_some();
        let edits: Vec<usize> = (from..to).filter(is_edit).collect();
        if edits.is_empty() {
            return String::new();
        }
        let lasting = &self.story.findings.edits.lasting;
        let undone = edits.iter().all(|at| !lasting.contains(at));
        let later = if undone { " (undone later)" } else { "" };
        let names = changes::names(&self.edits(&edits));
        format!(", after changes to {names}{later}")
    }

    /// `python3 -m unittest` failed on the way: it is part of the work.
    pub fn passed_fact(&self, trouble: &Trouble) -> Option<String> {
        let failed = self.command(trouble.runs[0])?;
        let line = quote(&failed.key_line()?, 120);
        let name = failed.name();
        Some(format!("`{name}` passes; on the way it failed with {line}"))
    }

    /// What else was done in this turn after a failure, as far as it went well.
    pub fn ran_after(&self, last: usize) -> Vec<String> {
        let after = self.here_in(last + 1..self.steps().len());
        let commands = after.filter_map(Step::command);
        commands
            .filter(|it| it.passed && it.matters() && !it.text.starts_with("git "))
            .take(2)
            .map(|command| {
                let said = command.output.trim().lines().next_back();
                let said = shorten(said.unwrap_or_default(), 120);
                format!("Then `{}` went well: {said}", command.name())
            })
            .collect()
    }

    pub fn commands_that_change_files(&self, before: usize) -> Vec<String> {
        let commands = self.here_in(0..before).filter_map(Step::command);
        let changing = commands.filter(|it| it.passed && it.changes_files);
        changing
            .map(|it| format!("Ran {}", code(&it.text, 120)))
            .collect()
    }

    /// `` `sed -i …` and 2 more ``, of commands that changed files.
    pub fn changed_by(&self, commands: &[usize]) -> String {
        let mut commands = commands.iter().filter_map(|&at| self.command(at));
        let first = commands.next().map_or("", |it| &it.text);
        match commands.count() {
            0 => code(first, 60),
            more => format!("{} and {more} more", code(first, 60)),
        }
    }

    pub fn cause(&self) -> Option<String> {
        let cause = said::cause(self.words().conclusion()?)?;
        Some(format!(
            "The cause in the agent's words: {}",
            quote(&cause, 300)
        ))
    }
}

pub fn failed_sentence(failed: &Command) -> String {
    let line = failed.key_line().map(|line| format!(" with “{line}”"));
    let command = code(&failed.text, 100);
    format!("{command} failed{}.", line.unwrap_or_default())
}

fn failed_fact(command: &Command) -> String {
    let code = command.exit_code.as_ref();
    let code = code.map(|code| format!(" with exit code {code}"));
    let test = output::failing_test(&command.output).map(|test| format!(" in {test}"));
    let line = command.key_line().map(|line| format!(": {line}"));
    let details = [code, test, line].into_iter().flatten().collect::<String>();
    format!("{} failed{details}", super::code(&command.text, 80))
}
