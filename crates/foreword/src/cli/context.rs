//! `foreword context --preview`: what a session that starts here is told, and why.

use anyhow::bail;
use foreword_core::capture;
use foreword_core::host::{HOSTS, Hook};
use foreword_core::project::Place;
use foreword_core::recall::index::{self, Request, Source};

use crate::home::Home;
use crate::service;
use crate::switch::{self, Switches};
use crate::{config, hook, show};

#[derive(clap::Args)]
pub struct Args {
    /// Show what a session that starts here would be told, and why each line is there
    #[arg(long)]
    preview: bool,
    /// As if it started for this reason
    #[arg(long, default_value = "startup", value_parser = SOURCES, requires = "preview")]
    source: String,
    /// As if it had this id
    #[arg(
        long,
        default_value = "a-session-that-starts-now",
        requires = "preview"
    )]
    session: String,
}

const SOURCES: [&str; 5] = ["startup", "resume", "clear", "compact", "fork"];

pub fn run(args: &Args) -> anyhow::Result<()> {
    if !args.preview {
        hook::run(Hook::Context, &HOSTS[0]);
        return Ok(());
    }
    let home = service::home_to_look_at()?;
    let Some(place) = service::current_place() else {
        bail!("the current directory is gone");
    };
    if let Some(why) = silenced(&home, &place, &args.session) {
        println!("A session that starts here is told nothing: {why}.");
        return Ok(());
    }
    let store = service::memory(&home)?;
    let program = hook::program();
    let request = Request {
        project: place.project.as_deref(),
        host_session_id: &args.session,
        source: Source::parse(Some(&args.source)),
        branch: place.head.branch.as_deref(),
        root: place.root.as_deref(),
        program: &program,
    };
    match index::index(store.as_ref(), &request)? {
        Some(index) => print!("{}", show::preview(&index)),
        None => println!(
            "A session that starts here is told nothing: nothing is remembered yet that it does not know."
        ),
    }
    Ok(())
}

/// What keeps the hook from saying anything here.
fn silenced(home: &Home, place: &Place, session: &str) -> Option<&'static str> {
    let (settings, _) = config::hook_settings(home);
    let off = switch::off_in_environment()
        || Switches::read(home).covers(place.project.as_deref(), session);
    match settings {
        _ if off => Some("Foreword is switched off here; `foreword on` switches it on"),
        None => Some("the settings cannot be read; `foreword doctor` says why"),
        Some(settings) if !settings.show.index => Some("show.index is false in the settings"),
        Some(settings) if capture::is_excluded(place, &settings.capture.exclude_projects) => {
            Some("the settings exclude this project")
        }
        Some(_) => None,
    }
}
