//! Sessions as hook inputs, and what is derived from them without a model.

use std::path::{Path, PathBuf};

use foreword_core::capture::{CaptureContext, CaptureSettings, Captured, capture};
use foreword_core::host::{HOSTS, Hook};
use foreword_core::model::{Event, EventKind, Turn};
use foreword_core::project::Rules;
use serde_json::Value;
use uuid::Uuid;

use super::derive;

/// Turns of a session, from the inputs of its hooks.
#[derive(Default)]
struct Replay {
    turns: Vec<Turn>,
    count: i64,
}

impl Replay {
    fn input(&mut self, hook: Hook, input: &Value) {
        self.count += 1;
        let context = CaptureContext {
            host: &HOSTS[0],
            now: self.count * 1_000,
            event_id: Uuid::from_u128(self.count.unsigned_abs().into()),
            project_dir: Some(PathBuf::from("/project")),
            rules: Rules::default(),
        };
        let captured = capture(
            hook,
            input.to_string().as_bytes(),
            &context,
            &CaptureSettings::default(),
        );
        if let Captured::Event(event) = captured {
            self.event(*event);
        }
    }

    fn event(&mut self, event: Event) {
        if event.kind == EventKind::Prompt {
            self.turns.push(Turn {
                prompt_id: Some(format!("p{}", self.turns.len() + 1)),
                events: Vec::new(),
            });
        }
        if let Some(turn) = self.turns.last_mut().filter(|_| event.kind.is_of_a_turn()) {
            turn.events.push(event);
        }
    }

    /// A recorded session: one line of JSON for each hook.
    fn file(path: &Path) -> Replay {
        let mut replay = Replay::default();
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let line = line
                .replace("${PROJECT}", "/project")
                .replace("${USER}", "/home/user");
            let line: Value = serde_json::from_str(&line).unwrap();
            let hook = Hook::parse(line["hook"].as_str().unwrap()).unwrap();
            replay.input(hook, &line["input"]);
        }
        replay
    }
}

/// The share of prompts of a language whose kind is recognised, and of those without anything laid
/// down that are left alone.
#[test]
#[ignore]
fn cues_report() {
    for language in ["en", "de", "es", "fr", "pt", "ja", "zh"] {
        let path = data(&format!("cues/{language}.jsonl"));
        let text = std::fs::read_to_string(path).unwrap();
        let (mut right, mut all, mut quiet, mut none) = (0, 0, 0, 0);
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (prompt, kind) = (
                line["prompt"].as_str().unwrap(),
                line["kind"].as_str().unwrap(),
            );
            let found = super::turn::laid_down_by(prompt);
            let name = found
                .map(|it| format!("{it:?}").to_lowercase())
                .unwrap_or("none".into());
            if kind == "none" {
                none += 1;
                quiet += usize::from(name == "none");
            } else {
                all += 1;
                right += usize::from(name == kind);
            }
            if name != kind {
                println!(
                    "{language} {kind} -> {name}: {}",
                    prompt.replace('\n', " / ")
                );
            }
        }
        println!("FIGURE {language}: {right}/{all} recognised, {quiet}/{none} left alone");
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}

#[test]
#[ignore]
fn dump() {
    let dir = std::env::var("Q_DIR").unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".jsonl") || name.ends_with(".transcript.jsonl") {
            continue;
        }
        let replay = Replay::file(&path);
        let started = std::time::Instant::now();
        let derived = derive(&replay.turns);
        let took = started.elapsed();
        println!("##### {name} {took:?} DIGEST {:?}", derived.digest);
        for (turn, it) in replay.turns.iter().zip(&derived.turns) {
            let prompt = turn.events[0].payload.prompt.as_deref().unwrap_or_default();
            let prompt: String = prompt.replace('\n', " ").chars().take(140).collect();
            println!("T {} [{prompt}]", turn.prompt_id.as_deref().unwrap());
            for o in &it.observations {
                println!(
                    "   {}: {}   ({}){}",
                    o.kind,
                    o.title,
                    o.origin,
                    o.retracted
                        .as_ref()
                        .map(|it| format!(" RETRACTED {it}"))
                        .unwrap_or_default()
                );
                if !o.subtitle.is_empty() {
                    println!("     = {}", o.subtitle);
                }
                for fact in &o.facts {
                    println!("     - {fact}");
                }
                println!(
                    "     ~ {:?} {:?}",
                    o.concepts,
                    o.files.iter().map(|it| &it.path).collect::<Vec<_>>()
                );
            }
        }
    }
}
