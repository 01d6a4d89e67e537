//! `foreword pin` and `foreword hide`: what stands at the top of the index, and what is never shown
//! unasked.

use foreword_core::model::Kind;

use super::targets::{ChangeFlags, TargetFlags};
use crate::service::Reader;
use crate::service::hands::{self, Who};
use crate::show::{HandsReport, Verb};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    targets: TargetFlags,
    /// Take it back
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

pub fn pin(args: &Args) -> anyhow::Result<()> {
    let verb = if args.off { Verb::Unpin } else { Verb::Pin };
    run(args, verb, |reader, ids| {
        hands::pin(reader, ids, !args.off, Who::Shell)
    })
}

pub fn hide(args: &Args) -> anyhow::Result<()> {
    let verb = if args.off { Verb::Unhide } else { Verb::Hide };
    run(args, verb, |reader, ids| {
        hands::hide(reader, ids, !args.off, Who::Shell)
    })
}

fn run(
    args: &Args,
    verb: Verb,
    change: impl Fn(&Reader, &[i64]) -> anyhow::Result<Vec<i64>>,
) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let mut ids = args.targets.resolve(&reader, &store)?;
    if args.targets.by_filter() {
        // Summaries and prompts of the same turns pass the filters, too.
        ids.retain(|id| {
            let item = store.item(*id).ok().flatten();
            item.is_some_and(|it| it.body.kind() == Kind::Observation)
        });
    }
    let mut report = HandsReport::of(verb, &reader, &store, &ids)?;
    if args.change.dry_run {
        args.change.print(&report);
        return Ok(());
    }
    if args.targets.by_filter() && !args.change.agreed(&report.question())? {
        return Ok(());
    }
    drop(store);
    report.done(change(&reader, &ids)?);
    args.change.print(&report);
    Ok(())
}
