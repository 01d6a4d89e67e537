//! `foreword-bench redaction`: the time of both stages for a text of 5 KB, of several kinds.
//!
//! The fast stage is part of every hook; the thorough one runs in the worker.

use std::hint::black_box;
use std::time::Instant;

use foreword_core::redact::Stage;
use serde_json::{Map, Value, json};

use super::report;
use super::statistics::median;

#[derive(clap::Args)]
pub struct Args {
    /// How often each text is redacted
    #[arg(long, default_value_t = 2_000)]
    rounds: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The length of a usual tool output.
const LENGTH: usize = 5 << 10;

/// A line of each kind of text, repeated with a number in it. A brace is left out: it keeps the made-up
/// password from being one in this file.
const KINDS: &[(&str, &str)] = &[
    (
        "code",
        "    let token = parser.next_token(#)?; // the key of map `a_b`\n",
    ),
    (
        "log",
        "2026-11-18T12:00:# INFO app::auth request=# user=dev took=#ms ok\n",
    ),
    (
        "lock file",
        "checksum = \"b50b0bf5f9f8bd5ffa8b3b0c9a5cbf8a2d6c1f6a7bf7f#\"\n",
    ),
    (
        "prose",
        "The worker stores the summary of turn #; nothing else is sent.\n",
    ),
    (
        "settings",
        "DB_HOST=db#.internal\nDB_PASSWORD={aB3dE5gH7jK9#\n",
    ),
];

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut measured = Map::new();
    for (kind, line) in KINDS {
        let numbers = (0..).map(|number| line.replace('#', &number.to_string()).replace('{', ""));
        let mut text: String = numbers.take(LENGTH / line.len() + 1).collect();
        text.truncate(LENGTH);
        let microseconds = |stage: Stage| {
            let round = |_| {
                let begun = Instant::now();
                black_box(stage.redact(black_box(&text)));
                begun.elapsed().as_secs_f64() * 1e6
            };
            let times: Vec<f64> = (0..args.rounds).map(round).collect();
            (median(&times) * 10.0).round() / 10.0
        };
        let times = json!({
            "fast_us": microseconds(Stage::Fast),
            "thorough_us": microseconds(Stage::Thorough),
        });
        measured.insert((*kind).to_owned(), times);
    }
    report::print("redaction", Value::Object(measured), args.json);
    Ok(())
}
