//! Takes one sample: the time of a program from spawn to exit, with its input ready in a pipe.

use std::io::{Read as _, Write as _, pipe};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;

use super::statistics;
use super::system;

/// The program that times are compared with, because it does nothing.
pub const REFERENCE: &str = "/bin/true";

/// Bytes that a pipe holds before anybody reads from it.
const PIPE_ROOM: usize = 64 << 10;

/// How a program ended: its time, page faults and output.
pub struct Spawned {
    pub milliseconds: f64,
    pub minor_faults: u64,
    pub success: bool,
    pub answer: String,
}

/// Runs a command to its end. The time of making and reading the pipes is not included.
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
    // Closes this process's copies of the child's pipe ends; else reading would never end.
    drop(command);
    // `/bin/true` ends without reading its input, and a hook may; the write then fails.
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
