//! `foreword context --preview`: the text that a session starting here gets, and why.

use foreword_core::host::Hook;
use foreword_core::recall::index::{self, IndexRequest, StartReason};
use foreword_core::store::HostSession;

use super::JsonArgs;
use crate::service::{self, Reader};
use crate::{hook, host, show};

#[derive(clap::Args)]
pub struct Args {
    /// Show the text that a session starting here would get, and why each line is there
    #[arg(long)]
    preview: bool,
    /// The reason for which the session starts
    #[arg(long, default_value = "startup", value_parser = SOURCES, requires = "preview")]
    source: String,
    /// The id of the session
    #[arg(
        long,
        default_value = "a-session-that-starts-now",
        requires = "preview"
    )]
    session: String,
    #[command(flatten)]
    json: JsonArgs,
}

const SOURCES: [&str; 5] = ["startup", "resume", "clear", "compact", "fork"];

pub fn run(args: &Args) -> anyhow::Result<()> {
    let host = host::client_here().host;
    if !args.preview {
        hook::run(Hook::Context, host);
        return Ok(());
    }
    let reader = Reader {
        session: Some(HostSession {
            host: host.name.to_owned(),
            id: args.session.clone(),
        }),
        ..Reader::here()?
    };
    if let Some(why) = silenced(&reader) {
        nothing(args, why);
        return Ok(());
    }
    let place = &reader.place;
    let store = service::memory(&reader.home)?;
    let request = IndexRequest {
        asks_agent: hook::asks_agent(&reader.home, host::client_here(), place.root.as_deref()),
        project: place.project.as_deref(),
        host_session_id: &args.session,
        start_reason: StartReason::parse(Some(&args.source)),
        branch: place.head.branch.as_deref(),
        root: place.root.as_deref(),
        now: reader.now,
        unopened_kept: reader.unopened_kept(),
    };
    match index::index(store.as_ref(), &request)? {
        Some(index) if args.json.json() => {
            println!("{}", show::json(&show::preview_json(Some(&index))));
        }
        Some(index) => show::preview(&index),
        None => nothing(args, "nothing is remembered yet that it does not know"),
    }
    Ok(())
}

/// Prints why a session that starts here is shown nothing.
fn nothing(args: &Args, why: &str) {
    let to_json = || {
        let mut value = show::preview_json(None);
        value["reason"] = why.into();
        value
    };
    show::print(args.json.json(), to_json, || {
        format!("A session that starts here is shown nothing: {why}.\n")
    });
}

/// The reason why the hook shows nothing here.
fn silenced(reader: &Reader) -> Option<&'static str> {
    match &reader.settings {
        _ if reader.is_off() => Some("Foreword is off here; `foreword status` says why"),
        None => Some("the settings cannot be read; `foreword doctor` says why"),
        Some(settings) if !settings.show.index => Some("show.index is false in the settings"),
        Some(_) if reader.is_excluded() => Some("the settings exclude this project"),
        Some(_) => None,
    }
}
