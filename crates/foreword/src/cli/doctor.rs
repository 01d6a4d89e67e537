//! `foreword doctor`

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::json;

use super::{AlreadyPrinted, JsonArgs};
use crate::config::Config;
use crate::doctor::{self, Examined, Severity};
use crate::{service, show};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    json: JsonArgs,
    /// Ask the chosen model one question, and say whether its answer can be used
    #[arg(long)]
    ask: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.ask {
        return ask(args.json.json());
    }
    let Examined {
        findings,
        unknown_fields,
        notes,
    } = doctor::examine()?;
    let as_json = || {
        json!({
            "findings": findings,
            "unknown_fields": unknown_fields.iter().cloned().collect::<BTreeMap<_, _>>(),
            "notes": notes,
            "checked": doctor::check_ids().collect::<Vec<_>>(),
        })
    };
    show::print(args.json.json(), as_json, || {
        show::findings(&findings, doctor::check_ids().len())
            + &show::unknown_fields(&unknown_fields)
            + &show::doctor_notes(&notes)
    });
    // The findings were printed; an error among them is told by the exit code alone.
    let has_error = findings.iter().any(|it| it.severity == Severity::Error);
    if has_error {
        return Err(AlreadyPrinted.into());
    }
    Ok(())
}

fn ask(as_json: bool) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let answer = doctor::ask::ask_about_sample(&home, &Config::load(&home)?)?;
    let to_json = || {
        json!({
            "seconds": answer.seconds,
            "usable": answer.usable.is_ok(),
            "titles": answer.usable.as_ref().ok(),
            "reason": answer.usable.as_ref().err(),
        })
    };
    show::print(as_json, to_json, || show::sample_answer(&answer));
    match answer.usable {
        Ok(_) => Ok(()),
        Err(_) => bail!("the model's answer cannot be used"),
    }
}
