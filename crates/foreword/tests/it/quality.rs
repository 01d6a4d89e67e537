//! What a colleague would expect of the memory of written sessions, made without a model.
//!
//! `testdata/quality` has the sessions and, for each, facts that must be remembered and traps that
//! must not; its README says how they were written. The expectations of the held-out group were
//! written before any output of the program on it was seen: a figure that falls below its floor is
//! for the program to mend.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Sandbox, checkout, feed};

/// The least share of the facts that one observation states in its title, subtitle or facts.
const STATED: f64 = 0.70;
/// The least share of the facts that the index of the next session has.
const IN_INDEX: f64 = 0.65;

#[test]
fn sessions_used_in_development_are_remembered() {
    Group::replay("dev").check();
}

#[test]
fn held_out_sessions_are_remembered() {
    Group::replay(".").check();
}

/// A folder of sessions, all in one memory.
struct Group {
    sandbox: Sandbox,
    expected: Vec<Value>,
}

impl Group {
    fn replay(name: &str) -> Group {
        let folder = checkout().join("testdata/quality").join(name);
        let expected = std::fs::read_to_string(folder.join("gold.json")).unwrap();
        let group = Group {
            sandbox: Sandbox::new(),
            expected: serde_json::from_str(&expected).unwrap(),
        };
        for session in &group.expected {
            // Only a drain derives, so that every run has the same batches.
            group.sandbox.keep_workers_away();
            let project = group.project(session);
            let recording = format!("{}.jsonl", session["name"].as_str().unwrap());
            let recording = std::fs::read_to_string(folder.join(recording)).unwrap();
            for line in recording.lines() {
                let line = line
                    .replace("${PROJECT}", project.to_str().unwrap())
                    .replace("${USER}", group.sandbox.user_home().to_str().unwrap());
                let line: Value = serde_json::from_str(&line).unwrap();
                write_file(&line["input"], &project);
                let hook = line["hook"].as_str().unwrap();
                group.sandbox.run_hook(hook, &project, &line["input"]);
            }
            group.sandbox.drain();
        }
        group
    }

    fn project(&self, session: &Value) -> PathBuf {
        self.sandbox.project(session["project"].as_str().unwrap())
    }

    fn check(&self) {
        let (mut facts, mut stated, mut indexed, mut missed) = (0, 0, 0, String::new());
        let mut lines = Vec::new();
        for session in &self.expected {
            let name = session["name"].as_str().unwrap();
            let observations = self.observations(session);
            let index = self.index(session);
            for fact in session["gold"].as_array().unwrap() {
                let is_stated = observations.iter().any(|it| has(&it.stated(), fact));
                let is_indexed = has(&index, fact);
                facts += 1;
                stated += u32::from(is_stated);
                indexed += u32::from(is_indexed);
                if !is_stated || !is_indexed {
                    let place = if is_stated { "in the index" } else { "at all" };
                    let _ = writeln!(missed, "{name}: not {place}: {}", fact["fact"]);
                }
            }
            for trap in session["traps"].as_array().unwrap() {
                for observation in &observations {
                    for line in observation.lines() {
                        lines.push(json!([name, trap["pattern"], line]));
                    }
                }
            }
        }
        let [stated, indexed] = [stated, indexed].map(|it| f64::from(it) / f64::from(facts));
        println!("stated {stated:.2}, in the index {indexed:.2} of {facts} facts\n{missed}");
        assert_eq!(trapped(&lines), "");
        assert!(stated >= STATED, "stated {stated:.2}:\n{missed}");
        assert!(indexed >= IN_INDEX, "in the index {indexed:.2}:\n{missed}");
    }

    /// The observations of a session that hold.
    fn observations(&self, session: &Value) -> Vec<Remembered> {
        let database = self.sandbox.database("memory.db");
        let sql = "select type, observation.title, observation.subtitle, facts, narrative
                   from observations observation
                   join sessions session on session.id = session_id
                   where host_session_id = ? and retracted is null and superseded_by is null
                   order by observation.id";
        let mut statement = database.prepare(sql).unwrap();
        let id = session["session"].as_str().unwrap();
        let observations = statement.query_map([id], |row| {
            let facts: String = row.get(3)?;
            Ok(Remembered {
                kind: row.get(0)?,
                title: row.get(1)?,
                subtitle: row.get(2)?,
                facts: serde_json::from_str(&facts).unwrap(),
                narrative: row.get(4)?,
            })
        });
        observations.unwrap().map(Result::unwrap).collect()
    }

    fn index(&self, session: &Value) -> String {
        let mut command = self.sandbox.command(&["context", "--preview"]);
        let output = command.current_dir(self.project(session)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let preview = String::from_utf8(output.stdout).unwrap();
        preview.split("Why each line").next().unwrap().to_owned()
    }
}

struct Remembered {
    kind: String,
    title: String,
    subtitle: String,
    facts: Vec<String>,
    narrative: String,
}

impl Remembered {
    fn stated(&self) -> String {
        format!(
            "{}\n{}\n{}",
            self.title,
            self.subtitle,
            self.facts.join("\n")
        )
    }

    /// The lines that traps are tried on.
    fn lines(&self) -> Vec<String> {
        let text = format!(
            "{}: {}\n{}\n{}",
            self.kind,
            self.title,
            self.stated(),
            self.narrative
        );
        text.lines().map(str::to_owned).collect()
    }
}

/// Whether a text has all keywords of one of the fact's groups.
fn has(text: &str, fact: &Value) -> bool {
    let text = text.to_lowercase();
    let groups = fact["any"].as_array().unwrap();
    groups.iter().any(|group| {
        let mut words = group.as_array().unwrap().iter();
        words.all(|it| text.contains(it.as_str().unwrap().trim_matches(['(', ')'])))
    })
}

/// The lines that a trap matches. Traps look ahead and behind, so Python's expressions read them.
fn trapped(lines: &[Value]) -> String {
    let program = "import json, re, sys\n\
                   for name, pattern, line in json.load(sys.stdin):\n    \
                   if re.search(pattern, line): print(f'{name}: {pattern}: {line}')";
    let mut command = Command::new("python3");
    command
        .args(["-c", program])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let output = feed(command, Value::from(lines).to_string().as_bytes());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Leaves a file as a tool use of the session left it.
fn write_file(input: &Value, project: &Path) {
    let (tool, given) = (&input["tool_name"], &input["tool_input"]);
    let Some(path) = given["file_path"].as_str().map(PathBuf::from) else {
        return;
    };
    if input["hook_event_name"] != "PostToolUse" || !path.starts_with(project) {
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let old = text(&given["old_string"]);
    let content = match tool.as_str().unwrap() {
        "Write" => text(&given["content"]),
        "Edit" => std::fs::read_to_string(&path)
            .unwrap_or_else(|_| old.clone())
            .replacen(&old, &text(&given["new_string"]), 1),
        "Read" if !path.exists() => text(&input["tool_response"]["file"]["content"]),
        _ => return,
    };
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}
