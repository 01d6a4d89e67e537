//! `foreword doctor`

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::json;

use super::JsonArgs;
use crate::doctor::{self, Examined, Severity};
use crate::show;

pub fn run(args: &JsonArgs) -> anyhow::Result<()> {
    let Examined {
        findings,
        unknown_fields,
    } = doctor::examine()?;
    let as_json = || {
        json!({
            "findings": findings,
            "unknown_fields": unknown_fields.iter().cloned().collect::<BTreeMap<_, _>>(),
            "checked": doctor::check_ids().collect::<Vec<_>>(),
        })
    };
    show::print(args.json, as_json, || {
        show::findings(&findings, doctor::check_ids().len())
            + &show::unknown_fields(&unknown_fields)
    });
    let errors = findings.iter().filter(|it| it.severity == Severity::Error);
    match errors.count() {
        0 => Ok(()),
        1 => bail!("an error was found"),
        errors => bail!("{errors} errors were found"),
    }
}
