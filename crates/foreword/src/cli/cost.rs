//! `foreword cost`: what models were asked, what that cost, and what came of it.

use foreword_core::model::Millis;
use foreword_core::store::Store;
use foreword_core::store::ledger::{Cost, ModelCost, StoodIn};

use super::agent::Agent;
use crate::config::Config;
use crate::home;
use crate::show;
use crate::worker::leash;

#[derive(clap::Args)]
pub struct Args {
    /// From when on: today, 24h, 7d, or a date such as 2026-11-01; all time if not given
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Since>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A point in time, as one says it. Days are UTC's, as they are for budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Today,
    Ago(Millis),
    At(Millis),
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
    let store = Store::look(&home.memory())?;
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
    if args.json {
        println!("{}", show::json(&show::bill_json(&bill)));
    } else {
        print!("{}", show::bill(&bill));
    }
    Ok(())
}

fn since(text: &str) -> Result<Since, String> {
    let ago = |unit: char, length: Millis| {
        let number: Millis = text.strip_suffix(unit)?.parse().ok()?;
        (0..=100_000)
            .contains(&number)
            .then(|| Since::Ago(number * length))
    };
    let date = || {
        let date: jiff::civil::Date = text.parse().ok()?;
        let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Since::At(start.timestamp().as_millisecond()))
    };
    match text {
        "today" => Some(Since::Today),
        _ => ago('d', 24 * 3_600_000)
            .or_else(|| ago('h', 3_600_000))
            .or_else(date),
    }
    .ok_or_else(|| format!("'{text}' is no time; write today, 24h, 7d or 2026-11-01"))
}

impl Since {
    fn start(self, now: Millis) -> Millis {
        match self {
            Since::Today => leash::day(now),
            Since::Ago(length) => now - length,
            Since::At(at) => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_four_ways() {
        assert_eq!(since("today"), Ok(Since::Today));
        assert_eq!(since("24h"), Ok(Since::Ago(86_400_000)));
        assert_eq!(since("7d"), Ok(Since::Ago(604_800_000)));
        assert_eq!(since("1970-01-02"), Ok(Since::At(86_400_000)));
        for wrong in [
            "",
            "d",
            "-1d",
            "7 d",
            "yesterday",
            "2026-13-01",
            "99999999999d",
        ] {
            assert!(since(wrong).unwrap_err().contains("is no time"), "{wrong}");
        }
    }

    #[test]
    fn today_begins_at_midnight() {
        let noon = 20_000 * 86_400_000 + 43_200_000;
        assert_eq!(Since::Today.start(noon), 20_000 * 86_400_000);
        assert_eq!(Since::Ago(3_600_000).start(noon), noon - 3_600_000);
    }
}
