//! The program `foreword-bench`; the benches are in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    foreword::cli::run_as("foreword-bench", |args: foreword_bench::Args| {
        foreword_bench::run(&args)
    })
}
