//! The real client with hooks that fail: their events are taken from its transcript. And clients
//! that are killed in the middle of a tool.

use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};

use super::claude::Claude;
use super::{LINE, PROMPT, remembers, repair};
use crate::support::{signal, wait_until};

/// The kind and text of all events of the last session, in order of time.
fn events(claude: &Claude) -> Vec<String> {
    let memory = claude.sandbox.database("memory.db");
    let mut statement = memory
        .prepare(
            "select kind || ' ' || coalesce(event ->> '$.payload.input.command', event ->> '$.tool_name', '')
             from events
             where kind <> 'receipt'
               and session_id = (select max(id) from sessions)
             order by at, id",
        )
        .unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn state(claude: &Claude) -> String {
    let memory = claude.sandbox.database("memory.db");
    let sql = "select state from sessions order by id desc limit 1";
    memory.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The keys of all events, to compare those from hooks with those from the transcript.
fn keys(claude: &Claude) -> Vec<String> {
    let memory = claude.sandbox.database("memory.db");
    let sql = "select replace(e.key, s.host_session_id, '') from events e join sessions s on s.id = e.session_id
               where e.kind in ('tool_use', 'tool_failure', 'stop', 'prompt') order by e.at, e.id";
    let mut statement = memory.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

const REPAIRED: [&str; 9] = [
    "session_start ",
    "prompt ",
    "tool_use Write",
    "tool_use Edit",
    "tool_failure sh check.sh",
    "tool_use Edit",
    "tool_use sh check.sh",
    "stop ",
    "session_end ",
];

#[test]
fn hooks_that_do_not_come_through_are_made_up_for_by_the_transcript() {
    for lost in [
        &["save"][..],
        &["save", "summary"],
        &["save", "cleanup"],
        &["summary", "cleanup"],
    ] {
        let claude = Claude::new(repair);
        for hook in lost {
            claude.unhook(hook);
        }
        let run = claude.ask(&claude.app, PROMPT);
        claude.sandbox.drain();
        let mut expected = REPAIRED.to_vec();
        if lost.contains(&"cleanup") {
            expected.pop();
        }
        assert_eq!(events(&claude), expected, "without {lost:?}");
        // A second end of the session adds nothing.
        let end = json!({
            "session_id": run.session, "hook_event_name": "SessionEnd", "reason": "other",
            "cwd": claude.app,
        });
        claude.sandbox.run_hook("cleanup", &claude.app, &end);
        claude.sandbox.drain();
        assert_eq!(state(&claude), "completed");
        assert_eq!(
            events(&claude)[..expected.len()],
            expected,
            "without {lost:?}"
        );
        // The next session is shown it.
        let next = claude.ask(&claude.app, "What now?");
        assert_eq!(remembers(&next.requests), Ok(()), "{LINE}");
    }
}

#[test]
fn what_comes_from_the_transcript_has_the_keys_that_the_hooks_have() {
    let claude = Claude::new(repair);
    claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    let by_hooks = keys(&claude);
    assert_eq!(by_hooks.len(), 7);
    // Deletes all events but the start, and the record that they were processed.
    let memory = claude.sandbox.database("memory.db");
    memory
        .execute_batch(
            "delete from processed_events where key not like 'session_start:%';
             delete from events where kind <> 'session_start';",
        )
        .unwrap();
    drop(memory);
    let session = "select host_session_id from sessions";
    let session: String = {
        let memory = claude.sandbox.database("memory.db");
        memory.query_row(session, [], |row| row.get(0)).unwrap()
    };
    let end = json!({"session_id": session, "hook_event_name": "SessionEnd", "reason": "other", "cwd": claude.app});
    claude.sandbox.run_hook("cleanup", &claude.app, &end);
    claude.sandbox.drain();
    assert_eq!(keys(&claude), by_hooks);
}

/// A model that calls a tool which works, and then one that never ends.
fn endless(app: &Path) -> Value {
    json!([
        {"tool": "Write", "input": {"file_path": app.join("a.txt"), "content": "5\n"}},
        {"tool": "Bash", "input": {"command": "touch started; exec sleep 1000"}},
        "never said",
    ])
}

/// The client in the middle of its second tool.
fn in_the_middle(claude: &Claude) -> Child {
    let mut command: Command = claude.command(&claude.app, &[PROMPT]);
    let client = command.spawn().unwrap();
    let started = claude.app.join("started");
    wait_until("the tool runs", || started.exists());
    client
}

/// Ends the tool that a killed client leaves running.
fn end_tools(claude: &Claude) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else {
            continue;
        };
        let at = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let what = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if at == claude.app && what == b"sleep\x001000\0" {
            signal(pid, "KILL");
        }
    }
}

#[test]
fn a_client_that_is_killed_in_the_middle_of_a_tool_loses_that_tool_alone() {
    let claude = Claude::new(endless);
    // Without the hook of tool uses, not even the successful tool reaches Foreword through a hook.
    claude.unhook("save");
    let mut client = in_the_middle(&claude);
    signal(client.id(), "KILL");
    client.wait().unwrap();
    end_tools(&claude);
    for _ in 0..2 {
        claude.sandbox.drain();
        assert_eq!(
            events(&claude),
            ["session_start ", "prompt ", "tool_use Write"]
        );
        assert_eq!(state(&claude), "active");
    }
}

#[test]
fn a_client_that_is_interrupted_or_ended_says_goodbye_and_its_tool_is_no_tool_use() {
    for name in ["INT", "TERM"] {
        let claude = Claude::new(endless);
        let client = in_the_middle(&claude);
        signal(client.id(), name);
        let output = client.wait_with_output().unwrap();
        end_tools(&claude);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        claude.sandbox.drain();
        let expected = [
            "session_start ",
            "prompt ",
            "tool_use Write",
            "session_end ",
        ];
        let mut events = events(&claude);
        // A client that is ended may still run the hook of its tool.
        events.retain(|event| name == "INT" || !event.starts_with("tool_failure "));
        assert_eq!(events, expected, "{name}");
        assert_eq!(state(&claude), "completed", "{name}");
    }
}

#[test]
fn what_a_subagent_did_is_in_a_file_of_its_own_and_is_found_there() {
    let claude = Claude::scripted(|app| {
        let read = json!({"tool": "Read", "input": {"file_path": app.join("check.sh")}});
        let task = json!({
            "description": "look", "prompt": "SUBTASK: read the check", "subagent_type": "general-purpose",
            "run_in_background": false,
        });
        let lane = json!({"name": "sub", "match": {"any_user_contains": "SUBTASK"}, "turns": [read, "It checks."], "repeat": true});
        let agent = json!({"tool": "Agent", "input": task});
        json!({"lanes": [lane], "turns": [agent, "Done.", agent, "Done."]})
    });
    let expected = [
        "session_start ",
        "prompt ",
        "tool_use Read",
        "tool_use Agent",
        "stop ",
        "session_end ",
    ];
    claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    assert_eq!(events(&claude), expected);
    let log = claude.sandbox.log("worker.log");
    assert!(!log.contains("came from a transcript"), "{log}");

    claude.unhook("save");
    claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    assert_eq!(events(&claude), expected);
    let by_agents = "select count(*) from events
                     where event ->> '$.tool_name' = 'Read' and event ->> '$.agent_id' is not null";
    assert_eq!(claude.sandbox.count("memory.db", by_agents), 2);
}

#[test]
fn where_hooks_told_everything_the_transcript_adds_nothing() {
    let claude = Claude::new(repair);
    let first = claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    let all: Vec<_> = events(&claude);
    assert_eq!(all, REPAIRED);
    // Resumed: the same file goes on. Forked: it is copied, in the name of the new session.
    for arguments in [&["--resume"][..], &["--fork-session", "--resume"]] {
        let arguments = [arguments, &[&first.session, "Go on"]].concat();
        claude.run(&mut claude.command(&claude.app, &arguments));
        claude.sandbox.drain();
    }
    let of_the_fork = ["session_start ", "prompt ", "stop ", "session_end "];
    assert_eq!(events(&claude), of_the_fork);
    // Cleared: another session in the same process. Compacted: the same one, summed up.
    let mut talk = claude.talk(&claude.app);
    for words in ["Hello", "/compact", "Go on", "/clear", "Go on"] {
        talk.say(words);
        claude.sandbox.drain();
    }
    talk.end();
    claude.sandbox.drain();
    let log = claude.sandbox.log("worker.log");
    assert!(!log.contains("came from a transcript"), "{log}");
    let completed = "select count(*) from sessions where state = 'completed'";
    assert_eq!(claude.sandbox.count("memory.db", completed), 4);
}
