//! `foreword redo`: derives again from a session or from one turn, and replaces the items that were
//! derived before.
//!
//! A running worker is ended first and this process holds its lock, so that nothing else writes at
//! the same time.

use anyhow::{Context as _, bail};
use foreword_core::store::{HostSession, Store};
use foreword_core::text::count;

use crate::config::Config;
use crate::config::provider::{self};
use crate::home::Home;
use crate::service;
use crate::service::named::{Named, named};
use crate::show;
use crate::start::alone;
use crate::worker::redo::{self, RedoTarget};

#[derive(clap::Args)]
pub struct Args {
    /// A session's id or how it begins, or a number as in #12: then only the turn that it
    /// came from
    #[arg(value_name = "SESSION|#ID")]
    what: String,
    /// Show what would be asked, and ask nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let config = Config::load(&home)?;
    let provider = provider::choose(&config, &home).name;
    let store = service::memory(&home)?.context("nothing is remembered yet")?;
    // Check the argument before a worker is ended.
    let subject = find(&store, &args.what, &config)?;
    if args.dry_run {
        let made = store.made_of(&subject.kept.events)?;
        let plan = redo::plan(&home, &config, subject.kept.events.clone());
        print!("{}", show::redo_plan(&subject, provider, &plan, &made));
        eprintln!("Nothing was changed: this was a dry run.");
        return Ok(());
    }
    drop(store);
    let redone = alone(&home, || again(&home, &config, &args.what))?;
    print!("{redone}");
    Ok(())
}

/// Looks up the events again, because they may have changed before the lock was taken, and redoes
/// them.
fn again(home: &Home, config: &Config, what: &str) -> anyhow::Result<String> {
    let store = service::memory_to_write(home)?;
    store
        .close_abandoned_calls()
        .context("could not complete the ledger")?;
    let subject = find(&store, what, config)?;
    let events = &subject.kept.events;
    let before = store.made_of(events)?;
    let redone = redo::redo(home, config, events.clone())?;
    let after = store.made_of(events)?;
    let provider = provider::choose(config, home).name;
    Ok(show::redone(&subject, provider, redone, &before, &after))
}

fn find(store: &Store, what: &str, config: &Config) -> anyhow::Result<RedoTarget> {
    let (session, item) = target(store, what)?;
    let kept = store.whole_turns(&session, item)?;
    if kept.turns == 0 {
        let days = u64::from(config.retention.events_days);
        bail!(
            "the events that it came from are gone: they are kept for {} (retention.events_days); nothing was changed",
            count(days, "day", "days")
        );
    }
    Ok(RedoTarget { session, kept })
}

/// The session, and the item whose turn alone is to be redone, if a number was given.
fn target(store: &Store, what: &str) -> anyhow::Result<(HostSession, Option<i64>)> {
    match named(store, what)? {
        Named::Session(session) => Ok((session, None)),
        Named::Item(id) => {
            let session = store.session_of(id)?;
            let session = session.with_context(|| {
                format!("#{id} came from no session; find others with `foreword search WORDS`")
            })?;
            Ok((session, Some(id)))
        }
    }
}
