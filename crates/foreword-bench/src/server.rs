//! The memory of the MCP server: a real one, which answers the queries of `foreword-bench search`.
//!
//! The kernel records the peak of a process, so it is read once, after the last answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{machine, process};
use foreword::home::Home;

/// The most memory in bytes that a server had while it answered these queries.
pub fn peak_memory(home: &Home, queries: &[String]) -> anyhow::Result<u64> {
    let mut server = Command::new(machine::beside()?)
        .arg("mcp")
        .current_dir(home.dir())
        .env("FOREWORD_HOME", home.dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("could not run the MCP server")?;
    let peak = converse(&mut server, queries);
    // The server ends when its client closes the pipe.
    server.wait()?;
    peak
}

fn converse(server: &mut Child, queries: &[String]) -> anyhow::Result<u64> {
    let mut to = server.stdin.take().context("its input is a pipe")?;
    let mut from = BufReader::new(server.stdout.take().context("its output is a pipe")?);
    let client = json!({"name": "bench", "version": "1"});
    let begin = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let searches = queries.iter().map(|query| {
        let arguments = json!({"query": query, "projects": ["*"]});
        request(
            "tools/call",
            &json!({"name": "search", "arguments": arguments}),
        )
    });
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [request("initialize", &begin), begun]
        .into_iter()
        .chain(searches)
    {
        writeln!(to, "{message}")?;
        if message["id"].is_null() {
            continue;
        }
        let mut line = String::new();
        from.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).context("the MCP server did not answer")?;
        let failed = answer["result"]["isError"] == json!(true);
        ensure!(!failed && answer["error"].is_null(), "{answer}");
    }
    Ok(process::peak_kilobytes(server.id()) * 1024)
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}
