//! The MCP server: listed where the hooks are, and answering.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::host::{Hooks, said_by};
use super::{Trouble, World};
use crate::host::Listed;
use crate::install;

pub fn missing(world: &World) -> Option<Trouble> {
    let hooks = Hooks::find(world).filter(Hooks::any)?;
    let listed = install::listed(&hooks.place).ok()?;
    let list = install::servers(&hooks.place).ok()?.settings;
    let list = list.display();
    match listed {
        Listed::Ours(_) => None,
        Listed::Nobody => Trouble::cured_by(
            hooks.install(world),
            format!("{list} does not list Foreword: the agent cannot search its memory"),
        ),
        Listed::Another => Trouble::advised(
            format!("rename it there, then run: {}", hooks.install(world)),
            format!("{list} lists another server that is called foreword"),
        ),
    }
}

pub fn silent(world: &World) -> Option<Trouble> {
    let hooks = Hooks::find(world).filter(Hooks::any)?;
    let Ok(Listed::Ours(program)) = install::listed(&hooks.place) else {
        return None;
    };
    let is_gone = !Path::new(&program).exists();
    // If the hooks run it too, another check says so.
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
    Trouble::cured_by(hooks.install(world), evidence)
}

/// Longer, and the host's first request would have to wait.
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
    let said = said_by(command.arg("mcp"), &format!("{hello}\n"), DEADLINE);
    let answer = said.and_then(|said| serde_json::from_str::<Value>(said.lines().next()?).ok());
    answer.is_some_and(|answer| answer["result"]["serverInfo"]["name"] == "foreword")
}
