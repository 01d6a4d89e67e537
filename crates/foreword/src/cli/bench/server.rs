//! How much memory the MCP server takes: a real one, asked what `bench search` asks.
//!
//! The kernel notes the most that a process ever had (`VmHWM`), so it is enough to look
//! once, when all queries are answered.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::home::Home;

/// The most memory in bytes that a server had while it answered these queries.
pub fn most_memory(home: &Home, queries: &[String]) -> anyhow::Result<u64> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("mcp")
        .current_dir(home.dir())
        .env("FOREWORD_HOME", home.dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("could not run the MCP server")?;
    let mut client = Client {
        to: server.stdin.take().context("its input is a pipe")?,
        from: BufReader::new(server.stdout.take().context("its output is a pipe")?),
        asked: 0,
    };
    let peak = client.converse(queries).and_then(|()| peak(server.id()));
    // It ends with its client.
    drop(client);
    server.wait()?;
    peak
}

struct Client {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    fn converse(&mut self, queries: &[String]) -> anyhow::Result<()> {
        let client = json!({"name": "bench", "version": "1"});
        self.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        )?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        for query in queries {
            let arguments = json!({"query": query, "projects": ["*"]});
            let answer = self.ask(
                "tools/call",
                &json!({"name": "search", "arguments": arguments}),
            )?;
            let failed = answer["result"]["isError"] == json!(true);
            ensure!(!failed && answer["error"].is_null(), "{answer}");
        }
        Ok(())
    }

    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).context("the MCP server did not answer")
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        writeln!(self.to, "{message}")?;
        Ok(self.to.flush()?)
    }
}

fn peak(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let noted = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kilobytes = noted.and_then(|it| it.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.context("the kernel notes no peak")?.parse()?;
    Ok(kilobytes * 1024)
}
