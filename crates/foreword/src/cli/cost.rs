//! `foreword cost`: what models were asked, what that cost, and what came of it.

use foreword_core::model::Millis;
use foreword_core::store::ledger::{Cost, ModelCost, StoodIn};

use super::agent::Agent;
use super::scope::{When, when};
use crate::config::Config;
use crate::home;
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// From when on: today, 24h, 7d, or a date (UTC) such as 2026-11-01; all time if not given
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<When>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Everything that is told.
pub struct Bill {
    /// None for all time.
    pub since: Option<Millis>,
    pub cost: Cost,
    pub models: Vec<ModelCost>,
    pub stand_ins: Vec<StoodIn>,
    pub agent: Agent,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let home = super::home_to_look_at()?;
    let config = Config::load(&home)?;
    let now = home::now();
    let since = args.since.map(|since| since.start(now));
    let store = super::memory(&home)?;
    let agent = Agent::look(&home, &config, store.as_ref(), now)?;
    let start = since.unwrap_or(Millis::MIN);
    let bill = match &store {
        Some(store) => Bill {
            since,
            cost: store.cost(start)?,
            models: store.cost_by_model(start)?,
            stand_ins: store.stand_ins(start)?,
            agent,
        },
        None => Bill {
            since,
            cost: agent.today.clone(),
            models: Vec::new(),
            stand_ins: Vec::new(),
            agent,
        },
    };
    show::print(args.json, || show::bill_json(&bill), || show::bill(&bill));
    Ok(())
}
