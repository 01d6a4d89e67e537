//! `foreword help`, `foreword --help` and the examples in the help of each command.
//!
//! One table has every command: what people use it for, whether the short list shows it, and examples.
//! The short list has at most twenty commands; `foreword help --all` lists all of them.

use std::fmt::Write as _;

use anyhow::Context as _;
use clap::Command;

use crate::colour;
use crate::output::SafeText;

#[derive(clap::Args)]
pub struct Args {
    /// The command to explain
    command: Vec<String>,
    /// List every command, also those that are rarely needed
    #[arg(long, conflicts_with = "command")]
    all: bool,
}

pub fn run(args: &Args, command: Command) -> anyhow::Result<()> {
    let mut command = if args.all {
        with_list(command, true)
    } else {
        command
    };
    command.build();
    let mut named = &mut command;
    for name in &args.command {
        named = named.find_subcommand_mut(name).with_context(|| {
            format!("there is no command '{name}'; `foreword help --all` lists them")
        })?;
    }
    let help = named.render_help();
    if colour::is_on() {
        SafeText::of_program(help.ansi().to_string()).print();
    } else {
        SafeText::of_program(help.to_string()).print();
    }
    Ok(())
}

/// A command in the table.
struct Entry {
    name: &'static str,
    /// Whether the short list shows it.
    is_listed: bool,
    /// One in each line. A command with subcommands has one for each of them.
    examples: &'static str,
}

/// A command that the short list shows.
const fn listed(name: &'static str, examples: &'static str) -> Entry {
    Entry {
        name,
        is_listed: true,
        examples,
    }
}

/// A command that only the long list shows.
const fn rare(name: &'static str, examples: &'static str) -> Entry {
    Entry {
        name,
        is_listed: false,
        examples,
    }
}

/// The commands by what people want to do with them.
#[rustfmt::skip] // A row is read in a line.
const GROUPS: &[(&str, &[Entry])] = &[
    ("Look", &[
        listed("status", "foreword status\nforeword status --json"),
        listed("search", "foreword search token expiry\nforeword search --type decision --since 30d\nforeword search --file src/pay --all-projects --json"),
        listed("show", "foreword show 12\nforeword show 5e5510a1\nforeword show 12 --json"),
        listed("sessions", "foreword sessions\nforeword sessions --since today --summaries\nforeword sessions 5e5510a1"),
        rare("timeline", "foreword timeline 12\nforeword timeline 5e5510a1\nforeword timeline token expiry --around 10"),
        rare("why", "foreword why 12\nforeword why 12 token expiry"),
        rare("receipts", "foreword receipts --since today\nforeword receipts --session 5e5510a1"),
        rare("context", "foreword context --preview\nforeword context --preview --source compact"),
        rare("projects", "foreword projects\nforeword projects rename app payments\nforeword projects merge app-old app\nforeword projects move app ~/work/app\nforeword projects forget app --dry-run"),
        rare("dropped", "foreword dropped"),
    ]),
    ("Correct", &[
        listed("remember", "foreword remember 'Money is integer cents'\nforeword remember 'Freeze until the release' --until friday"),
        listed("edit", "foreword edit 12\nforeword edit 12 --type decision"),
        listed("pin", "foreword pin 12\nforeword pin 12 --off"),
        listed("hide", "foreword hide 12\nforeword hide 12 --off"),
        listed("forget", "foreword forget 12 14\nforeword forget --session 5e5510a1 --dry-run"),
        listed("undo", "foreword undo\nforeword undo 3"),
        rare("relate", "foreword relate 12 9 --supersedes\nforeword relate 12 9 --unrelated"),
        rare("redo", "foreword redo 5e5510a1 --dry-run\nforeword redo '#12'"),
    ]),
    ("Keep", &[
        listed("recall", "foreword recall\nforeword recall --auto on"),
        listed("summarize", "foreword summarize\nforeword summarize 5e5510a1 --dry-run\nforeword summarize 5e5510a1 --sources"),
        listed("synthesize", "foreword synthesize --dry-run\nforeword synthesize --accept"),
        listed("export", "foreword export > memory.json\nforeword export --format markdown --type decision"),
        listed("import", "foreword import file memory.json --dry-run"),
        rare("notes", "foreword notes\nforeword notes export notes.json\nforeword notes import notes.json --overwrite"),
        rare("backup", "foreword backup"),
    ]),
    ("Connect", &[
        listed("install", "foreword install --dry-run\nforeword install --provider offline"),
        listed("off", "foreword off\nforeword off --everywhere\nforeword off --session 5e5510a1"),
        listed("on", "foreword on\nforeword on --everywhere"),
        rare("uninstall", "foreword uninstall --dry-run\nforeword uninstall"),
        rare("model", "foreword model install\nforeword model status\nforeword model remove"),
        rare("demo", "foreword demo"),
        rare("mcp", "foreword mcp"),
        rare("completions", "foreword completions bash > ~/.local/share/bash-completion/completions/foreword"),
        rare("man", "foreword man > ~/.local/share/man/man1/foreword.1"),
        rare("help", "foreword help search\nforeword help --all"),
    ]),
    ("Repair", &[
        listed("doctor", "foreword doctor\nforeword doctor --ask"),
        rare("retry", "foreword retry\nforeword retry 1"),
        rare("check", "foreword check"),
        rare("restore", "foreword restore --dry-run\nforeword restore ~/.foreword/backups/memory.2026-11-16T080000Z.db"),
        rare("vacuum", "foreword vacuum"),
        rare("worker", "foreword worker run\nforeword worker start\nforeword worker stop\nforeword worker status\nforeword worker drain"),
        rare("logs", "foreword logs --lines 200"),
    ]),
    ("Measure", &[
        listed("cost", "foreword cost\nforeword cost --since 7d --json"),
        rare("bench", "foreword bench hooks"),
    ]),
];

/// The command line with its short list of commands, and examples in the help of each command.
pub fn with_help(command: Command) -> Command {
    let entries = GROUPS.iter().flat_map(|(_, entries)| entries.iter());
    let command = entries.fold(command, |command, entry| {
        if command.find_subcommand(entry.name).is_none() {
            return command;
        }
        command.mut_subcommand(entry.name, |it| with_examples(it, entry.examples))
    });
    with_list(command, false)
}

/// A command with examples, of which each of its subcommands shows its own.
fn with_examples(command: Command, examples: &str) -> Command {
    let own = |name: &str| {
        let own = examples
            .lines()
            .filter(|it| it.split(' ').nth(2) == Some(name));
        own.collect::<Vec<_>>().join("\n")
    };
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |it| it.after_help(page(&own(name))))
    });
    command.after_help(page(examples))
}

fn page(examples: &str) -> String {
    let lines: String = examples.lines().map(|it| format!("\n  {it}")).collect();
    format!("Examples:{lines}")
}

/// The command line with a list of its commands by purpose.
fn with_list(command: Command, all: bool) -> Command {
    let styles = command.get_styles();
    let (heading, literal) = (*styles.get_header(), *styles.get_literal());
    let mut list = String::new();
    for (group, entries) in GROUPS {
        let shown = entries.iter().filter(|it| all || it.is_listed);
        let shown: Vec<&Command> = shown
            .filter_map(|it| command.find_subcommand(it.name))
            .collect();
        if shown.is_empty() {
            continue;
        }
        let _ = writeln!(list, "{heading}{group}:{heading:#}");
        for it in shown {
            let about = it.get_about().map(ToString::to_string).unwrap_or_default();
            let name = it.get_name();
            let _ = writeln!(list, "  {literal}{name:<12}{literal:#} {about}");
        }
        list.push('\n');
    }
    let more = if all {
        "`foreword help COMMAND` explains a command, with examples."
    } else {
        "`foreword help COMMAND` explains a command, with examples; `foreword help --all` lists all commands."
    };
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{heading}Options:{heading:#}\n{{options}}\n\n{more}\n"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::cli::Cli;

    fn entries() -> impl Iterator<Item = &'static Entry> {
        GROUPS.iter().flat_map(|(_, entries)| entries.iter())
    }

    #[test]
    fn every_command_is_in_the_table_once_and_at_most_twenty_are_listed() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert_eq!(entries().filter(|it| it.name == name).count(), 1, "{name}");
        }
        assert!(entries().filter(|it| it.is_listed).count() <= 20);
    }

    #[test]
    fn every_help_has_examples_and_each_example_is_right() {
        fn check(command: &Command) {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.lines().count() > 1, "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        let command = with_help(Cli::command());
        command.get_subcommands().for_each(check);
        for entry in entries().filter(|it| command.find_subcommand(it.name).is_some()) {
            for example in entry.examples.lines() {
                let (words, _) = example.split_once(" > ").unwrap_or((example, ""));
                let words = words.split(' ').map(|it| it.trim_matches('\''));
                let matches = command.clone().try_get_matches_from(words);
                let parsed = matches.and_then(|it| Cli::from_arg_matches(&it).map(drop));
                assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
            }
        }
    }
}
