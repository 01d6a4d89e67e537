//! Checks of the MCP server: it is listed where the hooks are, and it answers.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::host::Hooks;
use super::{Diagnosis, Examination};
use crate::host::Listed;
use crate::install;
use crate::platform;

pub fn missing(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam).filter(Hooks::any)?;
    let listed = install::listed(&hooks.place).ok()?;
    let list = install::servers(&hooks.place).ok()?.settings;
    let list = list.display();
    match listed {
        Listed::Ours(_) => None,
        Listed::Nobody => Diagnosis::cured_by(
            hooks.install(exam),
            format!("{list} does not list Foreword: the agent cannot search its memory"),
        ),
        Listed::Another => Diagnosis::advised(
            format!("rename it there, then run: {}", hooks.install(exam)),
            format!("{list} lists another server that is called foreword"),
        ),
    }
}

pub fn silent(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam).filter(Hooks::any)?;
    let Ok(Listed::Ours(program)) = install::listed(&hooks.place) else {
        return None;
    };
    let is_gone = !Path::new(&program).exists();
    // If the hooks run the same program, `hooks_binary_gone` reports it.
    if is_gone
        && hooks
            .first_program(|it| it == Path::new(&program))
            .is_some()
    {
        return None;
    }
    let evidence = if is_gone {
        format!("the server that is listed is {program}, which is not there")
    } else if answers(&program) {
        return None;
    } else {
        format!("{program} mcp does not answer a client that introduces itself")
    };
    Diagnosis::cured_by(hooks.install(exam), evidence)
}

/// The time in which the server must answer; the host's first request waits for it.
const DEADLINE: Duration = Duration::from_secs(5);

fn answers(program: &str) -> bool {
    let hello = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "foreword doctor", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let mut command = Command::new(program);
    let output = platform::output_within(command.arg("mcp"), &format!("{hello}\n"), DEADLINE);
    let answer =
        output.and_then(|(text, _)| serde_json::from_str::<Value>(text.lines().next()?).ok());
    answer.is_some_and(|answer| answer["result"]["serverInfo"]["name"] == "foreword")
}
