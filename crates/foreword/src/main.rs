//! The entry point: runs a hook, or else a command.
//!
//! Hooks are by far the most frequent, and the user waits for them. So their arguments are checked
//! first, before there is an argument parser or an async runtime.

use std::process::ExitCode;

use foreword::{cli, hook};
use foreword_core::host::{self, DEFAULT_HOST, Hook, Host};

fn main() -> ExitCode {
    arm_failure_point();
    if let Some((hook, host)) = hook_command() {
        hook::run(hook, host);
        return ExitCode::SUCCESS;
    }
    cli::run()
}

/// Parses `foreword HOOK`, or `foreword HOOK --host NAME` for another host than the default.
fn hook_command() -> Option<(Hook, &'static Host)> {
    let arguments: Vec<_> = std::env::args_os().skip(1).take(4).collect();
    let arguments: Option<Vec<&str>> = arguments.iter().map(|it| it.to_str()).collect();
    match arguments?.as_slice() {
        [hook] => Some((Hook::parse(hook)?, DEFAULT_HOST)),
        [hook, "--host", name] => Some((Hook::parse(hook)?, host::named(name)?)),
        _ => None,
    }
}

/// In test builds, `FOREWORD_FAULT` names a point at which the process kills itself.
fn arm_failure_point() {
    #[cfg(any(debug_assertions, feature = "faults"))]
    if let Ok(point) = std::env::var("FOREWORD_FAULT") {
        foreword_core::fault::arm(&point);
    }
}
