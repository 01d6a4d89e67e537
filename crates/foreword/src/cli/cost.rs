//! `foreword cost`: calls to models, their cost, and how much memory came of them.

use super::JsonArgs;
use crate::config::Config;
use crate::doctor::agent::AgentStatus;
use crate::doctor::bill::Bill;
use crate::service::when::{When, when};
use crate::{home, service, show};

#[derive(clap::Args)]
pub struct Args {
    /// Only since then: today, 24h, 7d, or a date such as 2026-11-01; else all time
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<When>,
    #[command(flatten)]
    json: JsonArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let config = Config::load(&home)?;
    let now = home::now();
    let store = service::memory(&home)?;
    let agent = AgentStatus::look(&home, &config, store.as_ref(), now)?;
    let since = args.since.map(|since| since.start(now));
    let bill = Bill::look(store.as_ref(), since, agent)?;
    show::print(
        args.json.json(),
        || show::bill_json(&bill),
        || show::bill(&bill),
    );
    Ok(())
}
