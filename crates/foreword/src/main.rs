//! Chooses the road: a hook takes the short one, everything else is a command.
//!
//! A hook is by far the most frequent way in, and its time is the user's time. So it is
//! looked for first, before an argument parser or a runtime exist.

use std::process::ExitCode;

use foreword::{cli, hook};
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

/// In test builds, `FOREWORD_FAULT` names a point at which the process kills itself.
fn arm_failure_point() {
    #[cfg(any(debug_assertions, feature = "faults"))]
    if let Ok(point) = std::env::var("FOREWORD_FAULT") {
        foreword_core::fault::arm(&point);
    }
}
