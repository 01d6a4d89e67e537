//! Recorded sessions of the real client, and the memory that is made of them offline.
//!
//! `scripts/record` made the recordings (testdata/sessions). Here they are sent to
//! the real hooks, the worker drains the queue without a model, and one snapshot per session has
//! everything that is remembered: the output of `show`, and the index that the next
//! session gets. `docs/offline-memory.md` shows the same text of two of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Host, Sandbox};

/// The recordings and the folders that they were made in.
pub const SESSIONS: &[(&str, &str)] = &[
    ("bug-hunt", "tally"),
    ("feature", "shelf"),
    ("refactor", "ledger"),
    ("research", "runner"),
    ("failed-deployment", "courier"),
];

#[test]
fn a_reader_of_the_observations_can_say_what_happened() {
    for (name, project) in SESSIONS {
        insta::assert_snapshot!(*name, Replay::new(name, project).turn_by_turn().memory());
    }
}

/// A worker that starts late processes several turns at once, and must derive the same.
#[test]
fn it_does_not_matter_when_the_worker_comes() {
    for (name, project) in SESSIONS {
        let late = Replay::new(name, project).at_once().words();
        assert_eq!(late, Replay::new(name, project).turn_by_turn().words());
    }
}

#[test]
fn the_page_shows_what_is_remembered_of_two_sessions() {
    let page = std::fs::read_to_string(repository().join("docs/offline-memory.md")).unwrap();
    let shown: Vec<_> = SESSIONS
        .iter()
        .filter(|(name, _)| page.contains(&format!("```text {name}\n")))
        .collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    for (name, project) in shown {
        let memory = Replay::new(name, project).turn_by_turn().memory();
        assert!(
            page.contains(&memory),
            "docs/offline-memory.md shows another {name}; run `scripts/record --page`"
        );
    }
}

pub struct Replay {
    pub sandbox: Sandbox,
    pub project: PathBuf,
    recording: Vec<Value>,
}

impl Replay {
    pub fn new(name: &str, project: &str) -> Replay {
        let sandbox = Sandbox::new();
        // Only a drain derives, so that every run has the same batches.
        sandbox.keep_workers_away();
        let recording = repository().join(format!("testdata/sessions/{name}.jsonl"));
        let recording = std::fs::read_to_string(recording).unwrap();
        Replay {
            project: sandbox.project(project),
            sandbox,
            recording: recording
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        }
    }

    /// Drains after every turn, as the worker does.
    pub fn turn_by_turn(self) -> Replay {
        for line in &self.recording {
            self.send(line);
            if line["hook"] == "summary" {
                self.sandbox.drain();
                self.sandbox.keep_workers_away();
            }
        }
        self.sandbox.drain();
        self
    }

    fn at_once(self) -> Replay {
        for line in &self.recording {
            self.send(line);
        }
        self.sandbox.drain();
        self
    }

    fn send(&self, line: &Value) {
        if let Some(file) = line["file"].as_object() {
            let path = PathBuf::from(self.fill(&file["path"]));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file["content"].as_str().unwrap()).unwrap();
        }
        let input: Value = serde_json::from_str(&self.fill(&line["input"])).unwrap();
        let hook = line["hook"].as_str().unwrap();
        self.sandbox.run_hook(hook, &self.project, &input);
    }

    /// A recorded value as text, with this test's folders in it.
    fn fill(&self, value: &Value) -> String {
        let text = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        text.replace("${PROJECT}", self.project.to_str().unwrap())
            .replace("${USER}", self.sandbox.user_home().to_str().unwrap())
    }

    /// The remembered items without their ids, which depend on the order of processing.
    fn words(&self) -> Vec<String> {
        let database = self.sandbox.database("memory.db");
        let sql = "select type || title || subtitle || facts || narrative || concepts || origin || prompt.number
                   from observations join prompts prompt on prompt.id = prompt_id
                   union all
                   select request || investigated || learned || completed || next_steps || notes
                   from summaries
                   order by 1";
        let mut statement = database.prepare(sql).unwrap();
        let words = statement.query_map([], |row| row.get(0)).unwrap();
        words.map(Result::unwrap).collect()
    }

    /// The output of `show` for the session's items, and the index of the next session.
    fn memory(&self) -> String {
        let database = self.sandbox.database("memory.db");
        let mut statement = database
            .prepare("select id from observations union select id from summaries order by 1")
            .unwrap();
        let ids = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        let mut memory = String::new();
        for id in ids {
            let shown = self.sandbox.run(&["show", &id.unwrap().to_string()]);
            // Fields that differ from run to run, and the other items of the turn, which follow.
            let mut is_left_out = false;
            for line in shown.lines() {
                let field = line.split("  ").next().unwrap();
                is_left_out = ["project", "session", "when", "same turn"].contains(&field)
                    || is_left_out && line.starts_with(' ');
                if !is_left_out {
                    let _ = writeln!(memory, "{line}");
                }
            }
            memory.push('\n');
        }
        let _ = write!(memory, "The next session opens with:\n\n{}", self.index());
        memory
    }

    fn index(&self) -> String {
        let start = Host::new("next", &self.project).start("startup");
        let answer = self.sandbox.run_hook("context", &self.project, &start);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let index = answer["hookSpecificOutput"]["additionalContext"].as_str();
        let mut index = index
            .unwrap()
            .replace(env!("CARGO_BIN_EXE_foreword"), "foreword");
        let days: Vec<String> = index
            .split([' ', ':', '\n'])
            .filter(|word| is_date(word))
            .map(str::to_owned)
            .collect();
        for day in days {
            index = index.replace(&day, "DATE");
        }
        index
    }
}

fn is_date(word: &str) -> bool {
    word.len() == 10
        && word.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
