//! `foreword check`: finds damage inside the databases, and how to repair it.
//!
//! `doctor` is quick and checks everything around the memory; this reads each page and row, so its
//! time grows with the size of the memory.

use foreword_core::db::OpenError;
use foreword_core::queue::Queue;
use foreword_core::safety::check::Defect;
use foreword_core::store::Store;
use serde_json::json;

use super::{AlreadyPrinted, JsonArgs};
use crate::doctor::{Diagnosis, Finding, Severity};
use crate::home::Home;
use crate::platform::Lock;
use crate::service;
use crate::show;

/// The number of checks.
const CHECKS: usize = 11;

pub fn run(args: &JsonArgs) -> anyhow::Result<()> {
    let home = service::home_to_look_at()?;
    let found: Vec<_> = look(&home)?.into_iter().map(finding).collect();
    show::print(
        args.json(),
        || json!({"findings": found}),
        || show::findings(&found, CHECKS),
    );
    if !found.is_empty() {
        return Err(AlreadyPrinted.into());
    }
    Ok(())
}

fn look(home: &Home) -> anyhow::Result<Vec<Defect>> {
    let worker = Lock::holder(&home.lock())?.is_some();
    let memory = Store::inspect(&home.memory());
    let queue = Queue::inspect(&home.queue());
    let mut wrong = checked(memory, ["memory-damaged", "memory-newer"], Store::check)?;
    wrong.extend(checked(queue, ["queue-damaged", "queue-newer"], |queue| {
        queue.check(worker)
    })?);
    Ok(wrong)
}

/// The problems that the check found, or the reason why the file could not be opened.
fn checked<T>(
    opened: Result<Option<T>, OpenError>,
    [damaged, newer]: [&'static str; 2],
    check: impl FnOnce(&T) -> rusqlite::Result<Vec<Defect>>,
) -> anyhow::Result<Vec<Defect>> {
    let error = match opened.map(|database| database.map(|it| check(&it))) {
        Ok(None) => return Ok(Vec::new()),
        Ok(Some(Ok(wrong))) => return Ok(wrong),
        Ok(Some(Err(error))) => OpenError::from(error),
        Err(error) => error,
    };
    let id = match error {
        // An older schema is no problem: the next worker migrates it.
        OpenError::OtherSchema { found, known, .. } if found < known => return Ok(Vec::new()),
        OpenError::OtherSchema { .. } => newer,
        _ if error.is_damage() => damaged,
        error => return Err(error.into()),
    };
    let what = format!("{}: {error}", damaged.replace("-damaged", ".db"));
    Ok(vec![Defect { id, what }])
}

fn finding(wrong: Defect) -> Finding {
    let cure = match wrong.id {
        "memory-newer" | "queue-newer" => "foreword doctor",
        "memory-damaged" | "queue-damaged" | "memory-schema" | "queue-schema" => "foreword restore",
        "memory-references" => "foreword restore --yes",
        "claim-left" => "foreword worker drain",
        _ => "foreword vacuum",
    };
    Finding {
        id: wrong.id,
        severity: Severity::Error,
        diagnosis: Diagnosis {
            evidence: wrong.what,
            cure: cure.to_owned(),
            cure_is_command: true,
        },
    }
}
