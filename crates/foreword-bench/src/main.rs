//! The program `foreword-bench`; the benches are in the library.

use std::process::ExitCode;

use clap::CommandFactory as _;
use foreword_bench::Args;

fn main() -> ExitCode {
    foreword::cli::run_as(Args::command(), |args: Args| foreword_bench::run(&args))
}
