//! Transcripts of the host: the inputs that are rebuilt from them, and lines that must do no harm.

use std::path::Path;

use foreword_core::host::{HOSTS, ReplayedInput};
use proptest::prelude::*;
use serde_json::Value;

const SESSION: &str = "687d8424-9948-4ccb-a944-74dd0307c406";

fn recorded(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/transcript");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The lines of one turn, among lines from which no input is made.
fn turn() -> Vec<u8> {
    let mut refused = recorded("user.tool_result");
    refused["permissionDecision"]["decision"] = "reject".into();
    let mut done = recorded("assistant.text");
    done["message"]["stop_reason"] = "end_turn".into();
    done["message"]["content"][0]["text"] = "Written.".into();
    let lines = [
        recorded("queue-operation"),
        recorded("user.string.meta"),
        recorded("user.string"),
        recorded("attachment.file"),
        recorded("assistant.text"),
        recorded("assistant.tool_use"),
        refused,
        recorded("assistant.tool_use"),
        recorded("user.tool_result"),
        recorded("user.tool_result"),
        done,
        recorded("system.stop_hook_summary"),
        recorded("last-prompt"),
        recorded("user.string.compact_summary"),
        recorded("system.local_command"),
    ];
    let lines = lines.map(|line| format!("{line}\n"));
    lines.concat().into_bytes()
}

fn read(bytes: &[u8]) -> Vec<ReplayedInput> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    std::fs::write(&path, bytes).unwrap();
    read_file(&path)
}

fn read_file(path: &Path) -> Vec<ReplayedInput> {
    let mut all = Vec::new();
    let read: Result<(), ()> = HOSTS[0].replay(path, SESSION, |input| {
        all.push(input);
        Ok(())
    });
    read.unwrap();
    all
}

/// The event name of each input, and its prompt, tool or reply.
fn short(replayed: &[ReplayedInput]) -> Vec<String> {
    let line = |replayed: &ReplayedInput| {
        let input: Value = serde_json::from_str(&replayed.input).unwrap();
        assert_eq!(input["session_id"], SESSION);
        assert_eq!(input["prompt_id"], replayed.prompt_id.as_str());
        let about = ["prompt", "tool_name", "last_assistant_message"];
        let about = about.iter().find_map(|name| input[name].as_str());
        format!(
            "{} {}",
            input["hook_event_name"].as_str().unwrap(),
            about.unwrap()
        )
    };
    replayed.iter().map(line).collect()
}

const TURN: [&str; 3] = [
    "UserPromptSubmit main prompt please",
    "PostToolUse Write",
    "Stop Written.",
];

#[test]
fn a_turn_is_its_prompt_the_tools_that_ran_and_the_last_words() {
    let replayed = read(&turn());
    assert_eq!(short(&replayed), TURN);
    let input: Value = serde_json::from_str(&replayed[1].input).unwrap();
    let result = recorded("user.tool_result");
    assert_eq!(input["tool_response"], result["toolUseResult"]);
    assert_eq!(input["tool_input"]["content"], "hi there\nline two\n");
    assert_eq!(input["cwd"], "/home/dev/project");
    assert_eq!(replayed[1].branch.as_deref(), Some("master"));
    assert_eq!(replayed[1].at, 1_794_770_743_207);
}

#[test]
fn a_subagents_file_yields_only_its_tool_uses() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let mut reply = recorded("assistant.tool_use.sidechain");
    reply["message"]["content"] = serde_json::json!([{"type": "text", "text": "Read."}]);
    reply["message"]["stop_reason"] = "end_turn".into();
    let mut asked = recorded("user.string");
    asked["agentId"] = "a365c1ede025e8b3e".into();
    let lines = [
        asked,
        recorded("assistant.tool_use.sidechain"),
        recorded("user.tool_result.sidechain"),
        reply,
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    std::fs::write(folder.join("agent-a365c1ede025e8b3e.jsonl"), lines).unwrap();
    let path = dir.path().join("a.jsonl");
    let replayed = read_file(&path);
    assert_eq!(short(&replayed), ["PostToolUse Read"]);
    let input: Value = serde_json::from_str(&replayed[0].input).unwrap();
    assert_eq!(input["agent_id"], "a365c1ede025e8b3e");
    assert_eq!(input["transcript_path"], path.to_str().unwrap());
    assert_eq!(input["tool_response"], "1\thi there\n2\tline 2\n3\t");
}

#[test]
fn lines_that_are_not_understood_are_skipped_and_nothing_else() {
    let other = String::from_utf8(turn()).unwrap().replace(SESSION, "other");
    let half = recorded("user.string").to_string();
    let no_turn = recorded("user.string").to_string().replace("promptId", "x");
    for junk in [
        b"\n\n".to_vec(),
        b"{\n".to_vec(),
        b"\xff\xfe\n".to_vec(),
        b"{\"sessionId\": 7}\n".to_vec(),
        half.as_bytes()[..half.len() / 2].to_vec(),
        format!("{no_turn}\n").into_bytes(),
        other.into_bytes(),
        // Longer than the longest line that is read.
        [vec![b'x'; 17 << 20], b"\n".to_vec()].concat(),
    ] {
        assert_eq!(
            short(&read(&[junk.clone(), b"\n".to_vec(), turn()].concat())),
            TURN
        );
        assert_eq!(short(&read(&[turn(), junk].concat())), TURN);
    }
    assert_eq!(read_file(Path::new("/nowhere/a.jsonl")), []);
    assert_eq!(read_file(Path::new("/dev/null")), []);
}

#[test]
fn of_a_very_long_transcript_the_end_is_read() {
    let filler = [vec![b'x'; 1 << 20], b"\n".to_vec()].concat().repeat(33);
    assert_eq!(read(&[turn(), filler.clone()].concat()), []);
    assert_eq!(short(&read(&[filler, turn()].concat())), TURN);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flipped_bytes_cost_the_lines_they_are_in_at_most(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = turn();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert!(read(&bytes).len() <= TURN.len() + 1);
    }
}
