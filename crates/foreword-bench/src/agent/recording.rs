//! A session that was recorded with the real client: each hook and its input.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::host::TOOL_FIELDS;
use super::super::sandbox::{BenchSandbox, captured};

pub struct Recording {
    lines: Vec<RecordedLine>,
}

#[derive(Deserialize)]
struct RecordedLine {
    hook: String,
    /// The hook's input as the client wrote it, with placeholders for folders.
    input: Box<RawValue>,
}

impl Recording {
    pub fn read(path: &Path) -> anyhow::Result<Recording> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "there is no recorded session at {}; run this in a checkout of Foreword, or name one with --session",
                path.display()
            )
        })?;
        let lines: Result<_, _> = text.lines().map(serde_json::from_str).collect();
        let lines = lines.with_context(|| format!("{} is not a recording", path.display()))?;
        Ok(Recording { lines })
    }

    /// The hooks in order, each with its input for this sandbox.
    pub fn lines(&self, sandbox: &BenchSandbox) -> impl Iterator<Item = (&str, String)> {
        let lines = self.lines.iter();
        lines.map(|line| (line.hook.as_str(), sandbox.with_folders(line.input.get())))
    }

    pub fn count(&self, hook: &str) -> usize {
        self.lines.iter().filter(|line| line.hook == hook).count()
    }

    /// Tokens of the tools' input and output, as the host sent them.
    pub fn sent_tokens(&self) -> u64 {
        let fields = self.tool_uses().flat_map(|input| {
            let input: Value = serde_json::from_str(input).unwrap_or_default();
            TOOL_FIELDS.map(|field| input.get(field).cloned())
        });
        tokens(fields.flatten())
    }

    /// Tokens of the same fields after capture, with the default settings.
    pub fn kept_tokens(&self) -> anyhow::Result<u64> {
        let mut kept = Vec::new();
        for input in self.tool_uses() {
            let payload = captured(input, None)?.payload;
            kept.extend(payload.input);
            kept.extend(payload.response);
            kept.extend(payload.error.map(Value::String));
        }
        Ok(tokens(kept.into_iter()))
    }

    fn tool_uses(&self) -> impl Iterator<Item = &str> {
        let tool_uses = self.lines.iter().filter(|line| line.hook == "save");
        tool_uses.map(|line| line.input.get())
    }
}

fn tokens(fields: impl Iterator<Item = Value>) -> u64 {
    let characters = fields.map(|it| it.to_string().chars().count());
    characters.sum::<usize>() as u64 / 4
}
