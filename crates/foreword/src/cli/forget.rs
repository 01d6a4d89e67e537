//! `foreword forget`: deletes items for good.

use super::targets::{ChangeFlags, TargetFlags};
use crate::service::{self, Reader, hands};
use crate::show::{HandsReport, Verb};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    targets: TargetFlags,
    #[command(flatten)]
    change: ChangeFlags,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let ids = args.targets.resolve(&reader, &store)?;
    let gone = store.would_forget(&ids)?;
    let mut report = HandsReport::of(Verb::Forget, &reader, &store, &ids)?;
    report.extend(&reader, &store, &gone)?;
    report.waiting = service::waiting(&reader.home);
    if args.change.dry_run {
        args.change.print(&report);
        return Ok(());
    }
    if !args.change.json {
        print!("{}", report.list());
    }
    if !args.change.agreed(&report.question())? {
        return Ok(());
    }
    drop(store);
    report.done(hands::forget(&reader, &ids)?);
    args.change.print(&report);
    Ok(())
}
