//! `foreword relate A B`: says how two observations are related, which the worker respects.

use foreword_core::model::Verdict;

use super::show::number;
use super::targets::ChangeFlags;
use crate::service::Reader;
use crate::service::hands::{self, Who};
use crate::show::{HandsReport, Verb};

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("verdict").required(true).args(["supersedes", "unrelated"])))]
pub struct Args {
    /// Its number, as in #12
    #[arg(value_parser = number)]
    a: i64,
    #[arg(value_parser = number)]
    b: i64,
    /// A replaces B
    #[arg(long)]
    supersedes: bool,
    /// Neither replaces the other
    #[arg(long)]
    unrelated: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let (verb, verdict) = match args.supersedes {
        true => (Verb::Supersede, Verdict::Supersedes),
        false => (Verb::Unrelate, Verdict::Unrelated),
    };
    let ids = [args.a, args.b];
    let mut report = HandsReport::of(verb, &reader, &store, &ids)?;
    drop(store);
    if !args.change.dry_run {
        hands::relate(&reader, args.a, args.b, verdict, Who::Shell)?;
        report.done(ids.to_vec());
    }
    args.change.print(&report);
    Ok(())
}
