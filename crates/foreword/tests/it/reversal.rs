//! A later session that takes back what an earlier one changed, and one that only seems to.
//!
//! `testdata/reversal/cases.jsonl` was written before the rules. Those of the group `kept` were not looked
//! at while the rules were made.

use serde_json::{Value, json};

use crate::support::{Sandbox, checkout};

#[test]
fn what_a_later_session_takes_back_is_superseded_and_nothing_else() {
    let cases = checkout().join("testdata/reversal/cases.jsonl");
    let cases = std::fs::read_to_string(cases).unwrap();
    let mut wrong = Vec::new();
    for case in cases.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let marked = is_superseded(&case);
        println!("{}: superseded: {marked:?}", case["name"]);
        if marked != [case["reversal"].as_bool().unwrap()] {
            wrong.push(format!("{}: {marked:?}", case["name"]));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Replays both sessions; says of each change of the first one whether it is superseded.
fn is_superseded(case: &Value) -> Vec<bool> {
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
    let sql = "select superseded_by is not null
               from observations o
               join sessions s on s.id = o.session_id
               where host_session_id = 'first' and type <> 'discovery'";
    let mut statement = database.prepare(sql).unwrap();
    let marked = statement.query_map([], |row| row.get(0)).unwrap();
    marked.map(Result::unwrap).collect()
}
