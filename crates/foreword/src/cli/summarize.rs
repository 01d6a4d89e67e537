//! `foreword summarize`: writes the note of one conversation, after showing it and asking.

use std::path::PathBuf;

use super::notes::{folder_of, input, may_write};
use crate::host;
use crate::notes::summarize::{NoteSource, sources, summarize};
use crate::service::{self, named};
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// The session, by its id or the beginning of it; else the one that this runs in, else the last
    /// one of this project
    session: Option<String>,
    /// Save this draft, which somebody approved, instead of reading the conversation; `-` is standard input
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
    /// The transcript, if it is not where the coding agent keeps it
    #[arg(long, value_name = "FILE", conflicts_with = "draft")]
    transcript: Option<PathBuf>,
    /// Print the conversation, for an agent that writes the note and hands it in with --draft
    #[arg(long, conflicts_with_all = ["draft", "yes", "dry_run"])]
    sources: bool,
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
    let place = service::current_place().unwrap_or_default();
    let folder = folder_of(&place, args.scope.as_deref())?;
    let here = host::session_here();
    let client = host::client_here();
    let wanted = args.session.clone().or(here.map(|(_, session)| session));
    let (source, session) = match (&args.draft, &args.transcript) {
        (Some(file), _) => {
            let session = wanted.map(|id| named::whole_id(&id)).transpose()?;
            (NoteSource::Draft(input("the draft", file)?), session)
        }
        (None, Some(path)) => {
            let (path, is_named) = (path.clone(), true);
            (
                NoteSource::Transcript { path, is_named },
                args.session.clone(),
            )
        }
        (None, None) => {
            let path = (client.find_transcript)(wanted.as_deref(), &folder.root)?;
            let is_named = false;
            // The note is named after the transcript, which has the whole id of the session.
            (NoteSource::Transcript { path, is_named }, None)
        }
    };
    let say = |line: &str| eprintln!("{line}");
    if let (true, NoteSource::Transcript { path, is_named }) = (args.sources, &source) {
        sources(client.host, &place, &folder, path, *is_named, &say)?.print();
        return Ok(());
    }
    let summary = summarize(client.host, &place, &folder, session, &source, &say)?;
    let name = folder.name(&summary.path);
    let (shown, by_hand) = (name.display(), summary.by_hand());
    if summary.is_there() {
        println!("{shown} says all of this already{by_hand}");
        return Ok(());
    }
    let before = summary.before.as_deref();
    show::print_diff(name, before, Some(&summary.kept.text));
    let yes = args.yes || args.draft.is_some();
    match may_write("Save?", yes, args.dry_run)? {
        None => eprintln!("Nothing was written; --yes writes it."),
        Some(false) => {}
        Some(true) => {
            summary.save(&folder)?;
            println!("Saved {shown}{by_hand}");
        }
    }
    Ok(())
}
