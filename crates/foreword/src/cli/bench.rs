//! `foreword bench`: runs `foreword-bench`, the program beside this one that measures it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context as _;

use crate::platform;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Arguments for `foreword-bench`; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let program = platform::program()?.0.with_file_name("foreword-bench");
    // Returns only if the program could not be started.
    let failed = Command::new(program).args(&args.arguments).exec();
    Err(failed).context(
        "the benchmarks are a program of their own, foreword-bench, and it is not beside this one: \
         take it from the release archive, or `cargo run --release -p foreword-bench` in a checkout",
    )
}
