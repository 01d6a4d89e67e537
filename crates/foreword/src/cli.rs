//! The command line: one file per command, an args struct and a `run`. Hooks are no commands: `main`
//! recognises them before arguments are parsed.
//!
//! Exit codes: 0 done, 1 failed, 64 wrong usage. Never 2: a host may read a hook's exit
//! code 2 as "block", and an older program may be called by newer settings.

mod backup;
mod bench;
mod check;
mod connect;
mod consent;
mod context;
mod cost;
mod demo;
mod doctor;
mod dropped;
mod edit;
mod export;
mod filters;
mod forget;
mod help;
mod logs;
mod model;
mod notes;
mod pages;
mod pin;
mod projects;
mod recall;
mod receipts;
mod redo;
mod relate;
mod remember;
mod restore;
mod retry;
mod search;
mod sessions;
mod show;
mod status;
mod summarize;
mod switch;
mod synthesize;
mod targets;
mod timeline;
mod undo;
mod vacuum;
mod why;
mod worker;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::colour;

/// A memory that lasts, for coding agents.
#[derive(Parser)]
#[command(name = "foreword", version = version(), max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Whether output has colours; auto looks at the terminal, NO_COLOR and CLICOLOR
    #[arg(long, global = true, value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    color: String,
}

#[derive(Subcommand)]
enum Command {
    /// Show what Foreword does, in a throw-away home
    Demo,
    /// Connect the coding agent to Foreword
    Install(connect::InstallArgs),
    /// Disconnect the coding agent; the memory stays
    Uninstall(connect::UninstallArgs),
    /// Show what was captured, what is pending, and what failed and why
    Status(JsonArgs),
    /// Show the calls to models, their cost, and how much memory came of them
    Cost(cost::Args),
    /// Process skipped events again, and end the pause of a provider
    Retry(retry::Args),
    /// Derive the memory of a session or a turn again, and replace the old one
    Redo(redo::Args),
    /// Find out what is wrong, and how to repair it
    Doctor(doctor::Args),
    /// Check every page and row of the databases
    Check(JsonArgs),
    /// Make a backup of the memory now
    Backup,
    /// Go back to a backup; recovers a damaged memory
    Restore(restore::Args),
    /// Make the databases smaller, and rebuild the full-text index
    Vacuum,
    /// Search the memory
    Search(search::Args),
    /// Show what came before and after an item
    Timeline(timeline::Args),
    /// List sessions and what each was about
    Sessions(sessions::Args),
    /// Show everything about one item
    Show(show::Args),
    /// Keep a text as it is, in the current project
    Remember(remember::Args),
    /// Change an observation, in an editor or by options
    Edit(edit::Args),
    /// Put observations at the top of the index of every session
    Pin(pin::Args),
    /// Never show observations unasked; search still finds them
    Hide(pin::Args),
    /// Say how two observations are related
    Relate(relate::Args),
    /// Delete items for good
    Forget(forget::Args),
    /// Take back the last changes by hand; what was forgotten stays forgotten
    Undo(undo::Args),
    /// Write the memory to a file, to carry away or to read
    Export(export::Args),
    /// Read in an export
    Import(export::ImportArgs),
    /// List what agents were shown of the memory, and whether they opened it
    Receipts(receipts::Args),
    /// Explain why an item is shown, ranked or marked as it is
    Why(why::Args),
    /// The projects in the memory: list, rename, merge, move, forget
    Projects(projects::Args),
    /// Print the project's memory in files, or have every session load it
    Recall(recall::Args),
    /// Write the note of a conversation into the project
    Summarize(summarize::Args),
    /// The notes of this project: list, export, import
    Notes(notes::Args),
    /// Make the project's memory from all notes in `_memory/`, checked against its files
    Synthesize(synthesize::Args),
    /// Switch Foreword off: in this project, for a session, or everywhere
    Off(switch::Args),
    /// Switch Foreword on again
    On(switch::Args),
    /// Count what was not kept, and why
    Dropped(JsonArgs),
    /// Print the logs of hooks and worker; they hold no content
    Logs(logs::Args),
    /// The sentence model, which lets search go by meaning: install, status, remove
    Model(model::Args),
    /// The background worker
    Worker(worker::Args),
    /// Measure Foreword on this machine
    Bench(bench::Args),
    /// Completions for a shell, to be put where that shell looks for them
    Completions(pages::CompletionsArgs),
    /// The manual page
    Man,
    /// Answer a coding agent over the Model Context Protocol, on standard input and output
    Mcp,
    /// With --preview: show the text that a session starting here gets, and why
    Context(context::Args),
    /// Explain a command, or list all of them
    Help(help::Args),
}

/// How a command that reads prints its answer.
#[derive(clap::Args)]
struct JsonArgs {
    /// Print JSON, with times in UTC
    #[arg(long)]
    json: bool,
    /// `--format json` is another way to write --json
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"], hide = true)]
    format: Option<String>,
}

impl JsonArgs {
    fn json(&self) -> bool {
        self.json || self.format.as_deref() == Some("json")
    }
}

const WRONG_USAGE: u8 = 64;

/// The error of a command that has printed what is wrong: it ends with exit code 1 and no further line.
#[derive(Debug)]
struct AlreadyPrinted;

impl std::error::Error for AlreadyPrinted {}

impl std::fmt::Display for AlreadyPrinted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("see what was printed")
    }
}

/// `0.1.0 (1a2b3c4, SQLite 3.51.3)`; without a commit if it was not built in a repository.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let commit = option_env!("FOREWORD_COMMIT").map(|commit| format!("{commit}, "));
        format!(
            "{} ({}SQLite {})",
            env!("CARGO_PKG_VERSION"),
            commit.unwrap_or_default(),
            rusqlite::version()
        )
    });
    &VERSION
}

pub fn run() -> ExitCode {
    let command = help::with_help(Cli::command());
    run_as(command, |cli: Cli| {
        // What an agent reads has no colours, whatever the environment wants.
        let is_for_agent = matches!(cli.command, Command::Mcp);
        colour::choose(if is_for_agent { "never" } else { &cli.color });
        dispatch(cli.command)
    })
}

/// Parses the arguments of a program and runs it. Error messages and exit codes are the same for
/// `foreword` and `foreword-bench`.
pub fn run_as<Args: Parser>(
    command: clap::Command,
    run: impl FnOnce(Args) -> anyhow::Result<()>,
) -> ExitCode {
    let name = command.get_name().to_owned();
    end_quietly_when_nobody_reads(name.clone());
    let args = command.try_get_matches();
    let args = match args.and_then(|it| Args::from_arg_matches(&it)) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(WRONG_USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<AlreadyPrinted>() => ExitCode::FAILURE,
        Err(error) => {
            let error = format!("{error:#}");
            eprintln!("{name}: {}", foreword_core::text::one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Handles the panic of `println!` when it cannot write: a closed pipe (`foreword status | head`) ends
/// the program silently, any other error (a full disk) prints one line.
fn end_quietly_when_nobody_reads(name: String) {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or_default();
        let why = message.strip_prefix("failed printing to std");
        let Some((_, why)) = why.and_then(|it| it.split_once(": ")) else {
            return report(panic);
        };
        if why.contains("Broken pipe") {
            std::process::exit(0);
        }
        eprintln!("{name}: could not write the answer: {why}");
        std::process::exit(1);
    }));
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo => demo::run(),
        Command::Install(args) => connect::install(&args),
        Command::Uninstall(args) => connect::uninstall(&args),
        Command::Status(args) => status::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::Retry(args) => retry::run(&args),
        Command::Redo(args) => redo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Backup => backup::run(),
        Command::Restore(args) => restore::run(&args),
        Command::Vacuum => vacuum::run(),
        Command::Search(args) => search::run(&args),
        Command::Timeline(args) => timeline::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Remember(args) => remember::run(&args),
        Command::Edit(args) => edit::run(&args),
        Command::Pin(args) => pin::pin(&args),
        Command::Hide(args) => pin::hide(&args),
        Command::Relate(args) => relate::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Export(args) => export::export(&args),
        Command::Import(args) => export::import(&args),
        Command::Receipts(args) => receipts::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Projects(args) => projects::run(&args),
        Command::Recall(args) => recall::run(&args),
        Command::Summarize(args) => summarize::run(&args),
        Command::Notes(args) => notes::run(&args),
        Command::Synthesize(args) => synthesize::run(&args),
        Command::Off(args) => switch::off(&args),
        Command::On(args) => switch::on(&args),
        Command::Dropped(args) => dropped::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => pages::completions(&args),
        Command::Man => pages::man(),
        Command::Mcp => crate::mcp::run(),
        Command::Context(args) => context::run(&args),
        Command::Help(args) => help::run(&args, help::with_help(Cli::command())),
    }
}
