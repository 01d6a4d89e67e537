//! One sample: a program from spawn to exit, with its input ready in a pipe.

use std::io::{Read as _, Write as _, pipe};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;

use super::statistics;
use super::system;

/// What everything is compared to: the cheapest program that there is.
pub const REFERENCE: &str = "/bin/true";

/// So much fits into a pipe that nobody reads yet.
const PIPE_ROOM: usize = 64 << 10;

pub struct Spawned {
    pub milliseconds: f64,
    pub minor_faults: u64,
    pub success: bool,
    pub answer: String,
}

/// Runs a command to its end. The clock stands while pipes are made and read.
pub fn spawn(mut command: Command, input: &str) -> anyhow::Result<Spawned> {
    let (stdin, mut to_stdin) = pipe()?;
    let (mut from_stdout, stdout) = pipe()?;
    command.stdin(stdin).stdout(stdout).stderr(Stdio::null());
    let (ready, rest) = input.as_bytes().split_at(input.len().min(PIPE_ROOM));
    to_stdin.write_all(ready)?;

    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("could not run {command:?}"))?;
    // Our copies of the child's ends: one that stayed open would hide its end.
    drop(command);
    // `/bin/true` leaves without reading; so may a hook that has seen enough.
    let _ = to_stdin.write_all(rest);
    drop(to_stdin);
    let ended = system::wait_counting(&child)?;
    let milliseconds = statistics::milliseconds(start.elapsed());

    let mut answer = String::new();
    from_stdout.read_to_string(&mut answer)?;
    Ok(Spawned {
        milliseconds,
        minor_faults: ended.minor_faults,
        success: ended.status.success(),
        answer,
    })
}
