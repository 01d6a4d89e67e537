//! Which commands of a shell line passed.
//!
//! The exit code is that of the last command, so it proves something only for those that `&&` ties
//! to it. Of the others the output decides, and only for checks: a test, a lint, a build or a type
//! check. A command of which nothing is known gives no run.

use foreword_core::text::flat;

use super::output::{self, is_shown_by};
use super::programs::{Kind, is_check, kind};
use super::shell::{Joint, ShellCommand};
use super::{Run, ShellLine};

/// The commands that pipes tie together.
pub struct Pipeline<'a> {
    pub commands: &'a [ShellCommand],
    /// The command that the result is about: the check, or else the first one.
    main: &'a ShellCommand,
    joint: Joint,
    /// None if it is not known or did not run.
    pub passed: Option<bool>,
}

impl Pipeline<'_> {
    fn is_check(&self) -> bool {
        is_check(&self.main.words)
    }
}

/// The pipelines of a line, and whether they passed.
pub fn pipelines<'a>(line: &'a ShellLine<'_>) -> Vec<Pipeline<'a>> {
    let parts = line.commands.split_inclusive(|it| it.joint != Joint::Pipe);
    let pipeline = |commands: &'a [ShellCommand]| {
        let check = commands.iter().find(|it| is_check(&it.words));
        Some(Pipeline {
            commands,
            main: check.or(commands.first())?,
            joint: commands.last()?.joint,
            passed: None,
        })
    };
    let mut pipelines: Vec<Pipeline<'a>> = parts.filter_map(pipeline).collect();
    let mut exit = Some(!line.failed);
    let mut unknown = Vec::new();
    let mut end = pipelines.len();
    // A list ends at `;`. From the last one backwards, because `echo $?` shows the one before it.
    while end > 0 {
        let before = pipelines[..end - 1].iter();
        let from = before.rev().position(|it| it.joint == Joint::Then);
        let from = from.map_or(0, |it| end - 1 - it);
        let next_exit = printed_exit(&pipelines[from..end], &line.output);
        let list = &mut pipelines[from..end];
        let has_or = list.iter().any(|it| it.joint == Joint::Or);
        let exit_of_list = exit.filter(|passed| !(*passed && has_or));
        let last = match exit_of_list {
            Some(false) => blamed(line, list),
            _ => list.len(),
        };
        for (number, pipeline) in list.iter_mut().enumerate() {
            let is_hidden = pipeline.commands.len() > 1 || exit_of_list.is_none();
            if number <= last {
                pipeline.passed = Some(number != last);
                if is_hidden && pipeline.is_check() {
                    unknown.push(from + number);
                }
            }
        }
        exit = next_exit;
        end = from;
    }
    by_output(line, &unknown, &mut pipelines);
    pipelines
}

/// Decides about the checks whose exit code is hidden by a pipe, a `;` or a `||`.
fn by_output(line: &ShellLine<'_>, unknown: &[usize], pipelines: &mut [Pipeline<'_>]) {
    let is_red = !unknown.is_empty() && output::verdict(&line.output) == Some(false);
    let failed: Vec<bool> = unknown
        .iter()
        .map(|&at| is_red && is_shown_by(&pipelines[at].main.words, &line.output))
        .collect();
    let none_speaks = !failed.contains(&true);
    for &at in unknown {
        pipelines[at].passed = None;
    }
    let is_known = pipelines.iter().any(|it| it.passed == Some(false));
    for (&at, failed) in unknown.iter().zip(&failed) {
        pipelines[at].passed = match (is_red, none_speaks) {
            (false, _) => Some(true),
            (true, false) => Some(!failed),
            // The output is that of another command, or of the last check.
            (true, true) => (!is_known && Some(&at) == unknown.iter().max()).then_some(false),
        };
    }
}

/// The exit code that a list prints of the one before it: `echo "exit: $?"`.
fn printed_exit(list: &[Pipeline<'_>], output: &str) -> Option<bool> {
    let words = &list.first()?.main.words;
    let text = words[1..].join(" ");
    let (before, _) = text.split_once("$?").filter(|_| words[0] == "echo")?;
    let lines = output.lines().rev();
    let code = lines.filter_map(|line| line.trim().strip_prefix(before.trim_start()));
    let mut code = code.filter_map(|it| it.split(|it: char| !it.is_ascii_digit()).next());
    code.find(|it| !it.is_empty()).map(|code| code == "0")
}

/// The pipeline of `a && b && c` that failed.
fn blamed(line: &ShellLine<'_>, list: &[Pipeline<'_>]) -> usize {
    // A folder that is not there: nothing after `cd` ran.
    let mut lines = line.output.lines().filter(|it| it.contains("cd:"));
    let has_no_folder = lines.any(|it| it.contains("o such file or directory"));
    let changes_folder = |it: &Pipeline<'_>| has_no_folder && it.main.words[0] == "cd";
    let has_passed = || output::verdict(&line.output) == Some(true);
    let is_blamed = |it: &Pipeline<'_>| it.is_check() && !has_passed();
    let last = |is_it: &dyn Fn(&Pipeline<'_>) -> bool| list.iter().rposition(is_it);
    let found = list.iter().position(changes_folder);
    found
        .or_else(|| last(&|it| it.is_check() && is_shown_by(&it.main.words, &line.output)))
        // A check before a pipe has not the exit code of the line.
        .or_else(|| last(&|it| it.commands.len() == 1 && is_blamed(it)))
        .or_else(|| last(&is_blamed))
        .or_else(|| last(&|it| kind(&it.main.words) != Kind::Silent))
        .unwrap_or(list.len() - 1)
}

/// The runs of a line, without commands that only prepare or print.
pub fn runs(line: &ShellLine<'_>, pipelines: &[Pipeline<'_>]) -> Vec<Run> {
    // The shell's exit code for a program that is not installed.
    let not_found = line.exit_code == Some("127");
    let pipelines = pipelines.iter();
    let pipelines = pipelines.filter(|it| kind(&it.main.words) != Kind::Silent);
    let runs = pipelines.filter_map(|pipeline| {
        let passed = pipeline.passed?;
        Some(Run {
            command: flat(&pipeline.main.text),
            passed,
            check: pipeline.is_check() && (passed || !not_found),
            telling: match passed {
                true => String::new(),
                false => output::telling(&line.output),
            },
        })
    });
    runs.collect()
}
