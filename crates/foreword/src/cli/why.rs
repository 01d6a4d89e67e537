//! `foreword why ID [WORDS]`: explains why an item is shown, ranked or marked as it is.

use super::JsonArgs;
use crate::service::Reader;
use crate::service::why::why;
use crate::{service, show};

#[derive(clap::Args)]
pub struct Args {
    /// Its number, as in #12
    #[arg(value_parser = super::show::number)]
    id: i64,
    /// Also explain where a search for these words ranks it
    words: Vec<String>,
    #[command(flatten)]
    json: JsonArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let why = why(&reader, args.id, &args.words.join(" "))?;
    let waiting = service::waiting(&reader.home);
    show::print_recalled(
        args.json.json(),
        || show::why_json(&why),
        || show::why(&why) + &show::waiting(waiting),
    );
    Ok(())
}
