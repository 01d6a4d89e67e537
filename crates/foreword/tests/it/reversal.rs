//! A later session that takes back what an earlier one changed, and one that only seems to.
//!
//! The cases in `testdata/reversal` were written before the rules; its README says how they are used.

use serde_json::{Value, json};

use crate::support::{Sandbox, checkout};

#[test]
fn what_a_later_session_takes_back_is_superseded_and_nothing_else() {
    let cases = checkout().join("testdata/reversal/cases.jsonl");
    let cases = std::fs::read_to_string(cases).unwrap();
    let mut wrong = Vec::new();
    for case in cases.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let first = first_changes(&case);
        let expected = case["reversal"].as_bool().unwrap();
        let is_wrong = |it: &&Change| it.superseded != expected || it.in_index == expected;
        let name = &case["name"];
        wrong.extend(
            first
                .iter()
                .filter(is_wrong)
                .map(|it| format!("{name}: {it:?}")),
        );
        assert_eq!(first.len(), 1, "{}", case["name"]);
    }
    assert_eq!(wrong, [""; 0]);
}

/// A change of the first session, after the second one.
#[derive(Debug)]
struct Change {
    superseded: bool,
    in_index: bool,
}

/// Replays both sessions.
fn first_changes(case: &Value) -> Vec<Change> {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let project = sandbox.project("shop");
    for (session, turns) in ["first", "second"]
        .iter()
        .zip(case["sessions"].as_array().unwrap())
    {
        for (number, turn) in turns.as_array().unwrap().iter().enumerate() {
            let prompt_id = format!("{session}-{number}");
            let hook = |hook: &str, event: &str, more: Value| {
                let mut input = json!({
                    "session_id": session,
                    "prompt_id": prompt_id,
                    "cwd": project,
                    "transcript_path": "/nonexistent",
                    "hook_event_name": event,
                });
                input
                    .as_object_mut()
                    .unwrap()
                    .extend(more.as_object().unwrap().clone());
                sandbox.run_hook(hook, &project, &input);
            };
            hook("new", "UserPromptSubmit", json!({"prompt": turn["prompt"]}));
            for (at, edit) in turn["edits"].as_array().unwrap().iter().enumerate() {
                let path = project.join(edit["path"].as_str().unwrap());
                let given = json!({
                    "tool_name": "Edit",
                    "tool_use_id": format!("{prompt_id}-edit-{at}"),
                    "tool_input": {"file_path": path, "old_string": edit["before"], "new_string": edit["after"]},
                    "tool_response": {"filePath": path},
                });
                hook("save", "PostToolUse", given);
            }
            for (at, command) in turn["commands"].as_array().unwrap().iter().enumerate() {
                let given = json!({
                    "tool_name": "Bash",
                    "tool_use_id": format!("{prompt_id}-command-{at}"),
                    "tool_input": {"command": command["command"]},
                    "tool_response": {"stdout": command["output"], "stderr": "", "interrupted": false},
                });
                hook("save", "PostToolUse", given);
            }
            hook(
                "summary",
                "Stop",
                json!({"last_assistant_message": turn["said"]}),
            );
        }
        sandbox.drain();
    }
    let database = sandbox.database("memory.db");
    let sql = "select o.title, superseded_by is not null
               from observations o
               join sessions s on s.id = o.session_id
               where host_session_id = 'first' and type <> 'discovery'";
    let mut statement = database.prepare(sql).unwrap();
    let mut preview = sandbox.command(&["context", "--preview"]);
    let preview = preview.current_dir(&project).output().unwrap();
    let preview = String::from_utf8(preview.stdout).unwrap();
    let index = preview.split("Why each line").next().unwrap();
    let change = |row: &rusqlite::Row<'_>| {
        let title: String = row.get(0)?;
        Ok(Change {
            in_index: index.contains(&title),
            superseded: row.get(1)?,
        })
    };
    let changes = statement.query_map([], change).unwrap();
    changes.map(Result::unwrap).collect()
}
