//! Foreword: a memory that lasts, for coding agents.
//!
//! A hook is by far the most frequent way in, and its time is the user's time. So
//! it is looked for first and takes the short synchronous road, before an argument
//! parser or a runtime exist. Everything else goes through `cli`.

mod hook;
mod start;
mod switch;

mod ask;
mod compress;
mod provider;
mod recover;
mod synthesize;
mod worker;

mod cli;
mod config;
mod install;
mod mcp;
mod meaning;
mod model_files;
mod notice;
mod recall;
mod show;

mod home;
mod log;
mod platform;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use foreword_core::capture::Hook;

fn main() -> ExitCode {
    arm_failure_point();
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), None) = (arguments.next(), arguments.next())
        && let Some(hook) = first.to_str().and_then(Hook::parse)
    {
        hook::run(hook);
        return ExitCode::SUCCESS;
    }
    cli::run()
}

/// In test builds a named point can be told to kill the process.
fn arm_failure_point() {
    #[cfg(any(debug_assertions, feature = "faults"))]
    if let Ok(point) = std::env::var("FOREWORD_FAULT") {
        foreword_core::fault::arm(&point);
    }
}
