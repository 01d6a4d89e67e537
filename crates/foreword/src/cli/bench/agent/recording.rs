//! A session that was recorded with the real client: what it told the hooks.

use std::path::Path;

use anyhow::{Context as _, bail};
use foreword_core::capture::{self, Captured, Hook};
use foreword_core::project::Rules;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::World;
use crate::home;

pub struct Recording {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    hook: String,
    /// As the client wrote it, but for the folders.
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
        let lines = lines.with_context(|| format!("{} is no recording", path.display()))?;
        Ok(Recording { lines })
    }

    /// The hooks in turn, and what they are told in this world.
    pub fn lines(&self, world: &World) -> impl Iterator<Item = anyhow::Result<(String, String)>> {
        let (project, user) = (world.host.project.clone(), world.user());
        self.lines.iter().map(move |line| {
            let place = |path: &Path| {
                path.to_str()
                    .context("a path that is no text")
                    .map(str::to_owned)
            };
            let input = line.input.get();
            let input = input.replace("${PROJECT}", &place(&project)?);
            Ok((line.hook.clone(), input.replace("${USER}", &place(&user)?)))
        })
    }

    pub fn count(&self, hook: &str) -> usize {
        self.lines.iter().filter(|line| line.hook == hook).count()
    }

    pub fn sent_tokens(&self) -> u64 {
        let fields = ["tool_input", "tool_response", "error"];
        let characters = |line: &Line| -> usize {
            let input: Value = serde_json::from_str(line.input.get()).unwrap_or_default();
            let fields = fields.iter().filter_map(|&field| input.get(field));
            fields.map(|it| it.to_string().chars().count()).sum()
        };
        self.tool_uses().map(characters).sum::<usize>() as u64 / 4
    }

    /// What capture leaves of it, with the default settings.
    pub fn kept_tokens(&self) -> anyhow::Result<u64> {
        let world = capture::World {
            now: home::now(),
            event_id: Uuid::nil(),
            project_dir: None,
            rules: Rules::default(),
        };
        let mut characters = 0;
        for line in self.tool_uses() {
            let input = line.input.get().as_bytes();
            match capture::capture(Hook::Save, input, &world, &capture::Settings::default()) {
                Captured::Event(event) => {
                    let payload = event.payload;
                    let values = payload.input.iter().chain(&payload.response);
                    characters += values
                        .map(|it| it.to_string().chars().count())
                        .sum::<usize>();
                    characters += payload.error.map_or(0, |error| error.chars().count());
                }
                Captured::Dropped(reason) => bail!("a recorded tool use was dropped: {reason}"),
            }
        }
        Ok(characters as u64 / 4)
    }

    fn tool_uses(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.hook == "save")
    }
}
