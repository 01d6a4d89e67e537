//! `foreword summarize`: the note of one conversation.
//!
//! The agent in the conversation hands in a draft that its user approved; or the transcript
//! is read here, and the model that was chosen writes the draft, or offline does. Either way
//! the same file is written, what a person did to it stays, and nothing is written unasked.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use foreword_core::capture::is_excluded;
use foreword_core::fill::Terms;
use foreword_core::host::{Host, lines};
use foreword_core::model::Turn;
use foreword_core::notes::{Kept, Note, conversation, keep};
use foreword_core::project::Place;
use foreword_core::redact::redact;
use foreword_core::text::{self, count, one_line};

use super::notes::{Here, input, may_write};
use crate::config::provider::{self};
use crate::config::{self, Config, HookSettings};
use crate::home::{self, Home};
use crate::host::{self, CLIENTS};
use crate::offline;
use crate::service;
use crate::switch::{self, Switches};
use crate::{platform, show};

#[derive(clap::Args)]
pub struct Args {
    /// The session; else the one that this runs in, else the last one of this project
    session: Option<String>,
    /// Save this draft, which somebody approved, instead of reading the conversation; `-` is standard input
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
    /// The transcript, if it is not where the coding agent keeps it
    #[arg(long, value_name = "FILE", conflicts_with = "draft")]
    transcript: Option<PathBuf>,
    /// A sub-area of the project with notes of its own
    #[arg(long)]
    scope: Option<String>,
    /// Save without asking
    #[arg(long)]
    yes: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let Here { place, folder } = Here::find(args.scope.as_deref())?;
    let here = host::session_here();
    let client = here.as_ref().map_or(&CLIENTS[0], |(client, _)| client);
    let named = here.map(|(_, session)| session);
    let named = args.session.clone().or(named);
    let transcript = match (&args.draft, &args.transcript) {
        (Some(_), _) => None,
        (None, Some(path)) => Some(path.clone()),
        (None, None) => Some((client.find_transcript)(named.as_deref(), &folder.root)?),
    };
    let of_file = |it: &PathBuf| Some(it.file_stem()?.to_str()?.to_owned());
    let told = transcript.as_ref().and_then(of_file);
    let session = args.session.clone().or(told).or(named);
    let which = "which session? Write its id: `foreword summarize SESSION --draft FILE`";
    let session = session.context(which)?;
    let path = folder.note(&session)?;
    let home = service::home_to_look_at()?;
    let settings = settings_where_on(&home, &place, &session)?;
    let there = folder.read(&path)?;
    let mut last = None;
    let draft = match &transcript {
        None => drafted(args.draft.as_deref().unwrap_or(Path::new("-")))?,
        Some(path) => {
            let turns = turns(&home, client.host, &settings, path, &session)?;
            let first = turns.iter().flat_map(|it| &it.events).next();
            let project = first.and_then(|it| it.project.clone());
            if args.transcript.is_none() && project != place.project {
                let whose = one_line(project.as_deref().unwrap_or("no project"));
                bail!("session {session} is of {whose}; run this there");
            }
            last = turns.iter().flat_map(|it| &it.events).map(|it| it.at).max();
            match (platform::keep_umask(|| derived(&turns))?, &there) {
                ((draft, false), Some(there)) => add_to(draft, there),
                ((draft, _), _) => draft,
            }
        }
    };
    // A note is as old as its conversation.
    let at = text::rfc3339(last.unwrap_or_else(home::now));
    let kept = keep(&draft, there.as_deref(), &at);
    let name = folder.name(&path);
    let shown = name.display();
    if there.as_deref() == Some(kept.text.as_str()) {
        println!("{shown} says all of this already{}", of_theirs(&kept));
        return Ok(());
    }
    print!("{}", show::diff(name, there.as_deref(), Some(&kept.text)));
    let yes = args.yes || args.draft.is_some();
    match may_write("Save?", yes, args.dry_run)? {
        None => eprintln!("Nothing was written; --yes writes it."),
        Some(false) => {}
        Some(true) => {
            if folder.read(&path)? != there {
                bail!("{shown} was changed by somebody else meanwhile; run this again");
            }
            folder.write(&path, &kept.text)?;
            println!("Saved {shown}{}", of_theirs(&kept));
        }
    }
    Ok(())
}

/// What offline proves is plainer than what somebody wrote: it is added, and replaces nothing.
fn add_to(draft: Note, there: &str) -> Note {
    let (mut note, _) = Note::read(there);
    for point in draft.points {
        if !note.points.contains(&point) && point.text != offline::NOTHING {
            note.points.push(point);
        }
    }
    for file in draft.related {
        if !note.related.contains(&file) {
            note.related.push(file);
        }
    }
    note
}

fn of_theirs(kept: &Kept) -> String {
    let mut said = String::new();
    if kept.theirs > 0 {
        let theirs = count(kept.theirs as u64, "part", "parts");
        said += &format!("; {theirs} edited by hand stayed");
    }
    if !kept.left_out.is_empty() {
        let left_out = count(kept.left_out.len() as u64, "point", "points");
        said += &format!("; {left_out} removed by hand stayed out");
    }
    said
}

/// Off means that nothing is written, asked or not.
fn settings_where_on(home: &Home, place: &Place, session: &str) -> anyhow::Result<HookSettings> {
    let off = switch::off_in_environment()
        || Switches::read(home).covers(place.project.as_deref(), session);
    if off {
        bail!("Foreword is off here; `foreword on` switches it on again");
    }
    let (settings, mistake) = config::hook_settings(home);
    let settings = settings.with_context(|| mistake.unwrap_or_default());
    let settings = settings.context("the settings may exclude this project, but cannot be read")?;
    if is_excluded(place, &settings.capture.exclude_projects) {
        bail!("this project is excluded in config.toml, so nothing is written here");
    }
    Ok(settings)
}

fn drafted(file: &Path) -> anyhow::Result<Note> {
    let draft = input("the draft", file)?;
    let draft = draft.replace(|it| text::is_unsafe(it) && !matches!(it, '\n' | '\t'), "");
    let clean = redact(&draft);
    let (note, problems) = Note::read(&clean.text);
    for problem in &problems {
        eprintln!("{}", one_line(&problem.to_string()));
    }
    if !problems.is_empty() {
        let problems = count(problems.len() as u64, "problem", "problems");
        bail!("the draft has {problems}; nothing was written");
    }
    if clean.count > 0 {
        let secrets = count(clean.count.into(), "secret", "secrets");
        eprintln!("{secrets} replaced");
    }
    Ok(note)
}

/// What may be known of the conversation.
fn turns(
    home: &Home,
    host: &'static Host,
    settings: &HookSettings,
    transcript: &Path,
    session: &str,
) -> anyhow::Result<Vec<Turn>> {
    let switches = Switches::read(home);
    let terms = Terms {
        now: home::now(),
        since: switch::on_since(home),
        rules: &home::project_rules(settings.separate_worktrees),
        settings: &settings.capture,
        is_off: &|project| switches.covers(project, session),
    };
    let forgotten = match service::memory(home)? {
        Some(store) => store.forgotten(session)?,
        None => Default::default(),
    };
    if fs::metadata(transcript).is_ok_and(|it| it.len() > lines::FILE_MAX) {
        let max = lines::FILE_MAX >> 20;
        eprintln!("the transcript is very long: only its last {max} MB are read");
    }
    let mut turns = conversation(host, transcript, session, &terms, &forgotten);
    if switch::is_withheld(home, session) {
        turns.clear();
    }
    if turns.is_empty() {
        bail!(
            "there is nothing in {} that may be used: it is empty, or Foreword was off or the project excluded",
            transcript.display()
        );
    }
    Ok(turns)
}

/// The note, and whether a model wrote it.
fn derived(turns: &[Turn]) -> anyhow::Result<(Note, bool)> {
    let home = service::home_to_write()?;
    let config = Config::load(&home)?;
    let provider = provider::choose(&config, &home).name;
    if provider != provider::Name::Offline {
        let say = |what: &str| eprintln!("{} is asked: {what}", provider.as_str());
        match crate::agent::note::note(&home, &config, turns, say) {
            Ok(note) => return Ok((note, true)),
            Err(why) => {
                let why = one_line(&format!("{why:#}"));
                eprintln!("{why}; the note is made without a model");
            }
        }
    }
    let note = offline::note(turns);
    let note = note.context("nobody asked for anything in this conversation")?;
    Ok((note, false))
}
