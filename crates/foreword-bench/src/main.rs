//! The program `foreword-bench`; what it measures is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    foreword::cli::run_as("foreword-bench", |args: foreword_bench::Args| {
        foreword_bench::run(&args)
    })
}
