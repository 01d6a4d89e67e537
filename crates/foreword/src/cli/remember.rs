//! `foreword remember TEXT`: keeps a text as it is, in the current project.

use std::path::Path;

use anyhow::ensure;
use foreword_core::model::{ObservationType, Origin};
use serde_json::json;

use super::notes;
use crate::service::Reader;
use crate::service::hands::{self, RememberRequest, Who};
use crate::service::search::named;
use crate::service::when::until;
use crate::show;

#[derive(clap::Args)]
pub struct Args {
    /// The text, complete in itself; `-` reads it from standard input
    #[arg(required = true)]
    text: Vec<String>,
    /// decision, bugfix, feature, refactor or discovery
    #[arg(long = "type", value_name = "TYPE", default_value = "decision", value_parser = named::<ObservationType>)]
    observation_type: ObservationType,
    /// Its title, if that is not the first sentence
    #[arg(long)]
    title: Option<String>,
    /// A further fact; may be given several times
    #[arg(long)]
    fact: Vec<String>,
    /// A file it is about; may be given several times
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// A word to find it by; may be given several times
    #[arg(long)]
    concept: Vec<String>,
    /// Put it at the top of the index of every session
    #[arg(long)]
    pin: bool,
    /// The last day or time at which it holds: 2026-12-01, 7d, tomorrow or friday
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Check it, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    ensure!(
        !reader.is_off(),
        "Foreword is switched off here; `foreword on` switches it on"
    );
    let text = match args.text.as_slice() {
        [dash] if dash == "-" => notes::input("the text", Path::new("-"))?,
        words => words.join(" "),
    };
    let limit = args.until.as_deref().map(|it| until(it, reader.now));
    let request = RememberRequest {
        text: text.trim().to_owned(),
        title: args.title.clone(),
        kind: args.observation_type,
        origin: Origin::User,
        facts: args.fact.clone(),
        concepts: args.concept.clone(),
        files: args.file.clone(),
        pin: args.pin,
        until: limit.transpose().map_err(anyhow::Error::msg)?,
    };
    let done = hands::remember(&reader, &request, Who::Shell, args.dry_run)?;
    let id = (!args.dry_run).then_some(done.id);
    show::print(
        args.json,
        || json!({"id": id, "new": done.is_new, "redacted": done.redacted, "dry_run": args.dry_run}),
        || show::remembered(&done, args.dry_run),
    );
    Ok(())
}
